#include "cli/md5.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace muster::cli {
namespace {

constexpr std::array<int, 16> kShifts{7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

std::array<std::uint32_t, 64> make_sines() {
  std::array<std::uint32_t, 64> table{};
  for (std::size_t i = 0; i < 64; ++i)
    table[i] = static_cast<std::uint32_t>(
        std::floor(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0));
  return table;
}

void digest_block(std::array<std::uint32_t, 4>& state, const unsigned char* block) {
  static const std::array<std::uint32_t, 64> kSines = make_sines();
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < 64; ++i)
    words[i / 4] |= static_cast<std::uint32_t>(block[i]) << (8 * (i % 4));
  auto [a, b, c, d] = state;
  for (std::uint32_t i = 0; i < 64; ++i) {
    std::uint32_t f = 0, g = 0;
    switch (i / 16) {
      case 0:
        f = (b & c) | (~b & d), g = i;
        break;
      case 1:
        f = (d & b) | (~d & c), g = (5 * i + 1) % 16;
        break;
      case 2:
        f = b ^ c ^ d, g = (3 * i + 5) % 16;
        break;
      default:
        f = c ^ (b | ~d), g = (7 * i) % 16;
        break;
    }
    const std::uint32_t next =
        b + std::rotl(a + f + kSines[i] + words[g], kShifts[(i / 16) * 4 + i % 4]);
    a = d, d = c, c = b, b = next;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
}

}  // namespace

std::string md5_hex(std::string_view bytes) {
  std::string padded(bytes);
  padded += '\x80';
  while (padded.size() % 64 != 56) padded += '\0';
  const std::uint64_t bits = static_cast<std::uint64_t>(bytes.size()) * 8;
  for (int i = 0; i < 8; ++i) padded += static_cast<char>(bits >> (8 * i));
  std::array<std::uint32_t, 4> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < padded.size(); at += 64)
    digest_block(state, reinterpret_cast<const unsigned char*>(padded.data()) + at);
  std::string hex;
  for (const std::uint32_t word : state) {
    for (int i = 0; i < 4; ++i) {
      const unsigned byte = (word >> (8 * i)) & 0xFF;
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
  }
  return hex;
}

}  // namespace muster::cli
