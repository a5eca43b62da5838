#include "answers/normal.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace muster::answers {
namespace {

constexpr int kSteps = 64;  ///< A standard deviation.
constexpr int kReach = 8;   ///< Standard deviations to each side.
constexpr std::size_t kSize = 2 * kReach * kSteps + 1;

/// e to the power y, for y of at most 0: by squaring what the series gives for a small part of it.
constexpr double exponential(double y) {
  const double part = y / 1024;
  double sum = 1, term = 1;
  for (int i = 1; i < 8; ++i) {
    term *= part / i;
    sum += term;
  }
  for (int i = 0; i < 10; ++i) sum *= sum;
  return sum;
}

constexpr double density(double x) { return 0.3989422804014327 * exponential(-x * x / 2); }

/// The normal distribution at every step, in 2^-32, by Simpson's rule.
constexpr std::array<std::uint32_t, kSize> make_table() {
  std::array<std::uint32_t, kSize> table{};
  double below = 0;
  const double step = 1.0 / kSteps;
  for (std::size_t i = 1; i < kSize; ++i) {
    const double from = -kReach + static_cast<double>(i - 1) * step;
    below += step / 6 * (density(from) + 4 * density(from + step / 2) + density(from + step));
    table[i] = static_cast<std::uint32_t>(std::min(below, 0.9999999997) * 4294967296.0);
  }
  return table;
}

constexpr std::array<std::uint32_t, kSize> kTable = make_table();
constexpr std::int32_t kOne = 65536;
constexpr std::int32_t kStep = kOne / kSteps;

}  // namespace

std::int32_t normal_from(std::uint32_t bits) {
  const auto above = std::upper_bound(kTable.begin(), kTable.end(), bits);
  if (above == kTable.begin()) return -kReach * kOne;
  if (above == kTable.end()) return kReach * kOne;
  const auto i = above - kTable.begin() - 1;
  const std::uint64_t low = kTable[static_cast<std::size_t>(i)];
  const std::uint64_t width = std::max<std::uint64_t>(*above - low, 1);
  return static_cast<std::int32_t>(i) * kStep - kReach * kOne +
         static_cast<std::int32_t>((bits - low) * kStep / width);
}

std::uint32_t share_below(std::int32_t z) {
  const std::int32_t at = std::clamp(z + kReach * kOne, 0, 2 * kReach * kOne - 1);
  const auto i = static_cast<std::size_t>(at / kStep);
  const std::uint64_t part = static_cast<std::uint64_t>(at % kStep);
  const std::uint64_t low = kTable[i];
  return static_cast<std::uint32_t>(low + (kTable[i + 1] - low) * part / kStep);
}

std::uint32_t bits_of(std::uint64_t seed, std::int32_t draw, std::uint64_t name) {
  std::uint64_t z = seed + 0x9e3779b97f4a7c15ULL * (static_cast<std::uint64_t>(draw) + 1);
  z ^= name;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  z ^= z >> 31;
  return static_cast<std::uint32_t>(z >> 32);
}

std::uint32_t even_bits_of(std::uint64_t seed,
                           std::int32_t draw,
                           std::int32_t draws,
                           std::uint64_t name) {
  const std::uint32_t own = bits_of(seed, draw, name);
  if (draw >= draws) return own;
  // Its part is its rank among all of them; where in the part, another hash says.
  std::uint64_t part = 0;
  for (std::int32_t other = 0; other < draws; ++other) {
    const std::uint32_t bits = bits_of(seed, other, name);
    part += bits < own || (bits == own && other < draw) ? 1 : 0;
  }
  const std::uint64_t within = bits_of(seed + 1, draw, name);
  return static_cast<std::uint32_t>(((part << 32) + within) / static_cast<std::uint64_t>(draws));
}

}  // namespace muster::answers
