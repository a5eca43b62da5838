/// Amounts inside a Volcano session: exact fixed point, a thousand times finer than Volcano's own
/// milli-units, so that shares of thirds add up as its floating point does, with no floating point.
#pragma once

#include <array>
#include <cstdint>

#include "engine/model/resources.h"

namespace muster::engine::volcano {

using Wide = __int128;

/// Volcano treats amounts closer than 0.1 milli-units as equal.
inline constexpr Wide kTolerance = 100;
inline constexpr Wide kInfinite = static_cast<Wide>(1) << 100;

/// Parts per thousand million.
using Share = std::int64_t;
inline constexpr Share kWhole = 1'000'000'000;

struct Amounts {
  std::array<Wide, ResourceVector::kMax> v{};

  static Amounts of(const ResourceVector& r) {
    Amounts a;
    for (std::size_t i = 0; i < r.size(); ++i) {
      const bool milli =
          i == ResourceNames::kCpu || i == ResourceNames::kMemory || i == ResourceNames::kDevice;
      a.v[i] = static_cast<Wide>(r[i]) * (milli ? 1000 : 1'000'000);
    }
    return a;
  }

  Wide& operator[](std::size_t i) { return v[i]; }
  Wide operator[](std::size_t i) const { return v[i]; }
  Amounts& operator+=(const Amounts& o) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] += o.v[i];
    return *this;
  }
  Amounts& operator-=(const Amounts& o) {
    for (std::size_t i = 0; i < v.size(); ++i) v[i] -= o.v[i];
    return *this;
  }
  friend Amounts operator+(Amounts a, const Amounts& b) { return a += b; }
  friend Amounts operator-(Amounts a, const Amounts& b) { return a -= b; }
  bool operator==(const Amounts&) const = default;
};

/// `pods` is a dimension of every request, but no limit compares it.
inline bool compared(std::size_t i) { return i != ResourceNames::kPods; }

inline bool less_equal(Wide a, Wide b) { return a < b + kTolerance; }

/// In every dimension, pods too.
inline bool everywhere_less_equal(const Amounts& a, const Amounts& b) {
  for (std::size_t i = 0; i < a.v.size(); ++i) {
    if (!less_equal(a[i], b[i])) return false;
  }
  return true;
}

/// Is there room for the request? Pod slots count.
inline bool fits(const Amounts& request, const Amounts& room) {
  for (std::size_t i = 0; i < request.v.size(); ++i) {
    if (request[i] > 0 && !less_equal(request[i], room[i])) return false;
  }
  return true;
}

/// Only in the dimensions that `request` names.
inline bool requested_less_equal(const Amounts& a, const Amounts& b, const Amounts& request) {
  for (std::size_t i = 0; i < a.v.size(); ++i) {
    if (compared(i) && request[i] > 0 && !less_equal(a[i], b[i])) return false;
  }
  return true;
}

inline bool is_empty(const Amounts& a) {
  for (std::size_t i = 0; i < a.v.size(); ++i) {
    if (compared(i) && a[i] >= kTolerance) return false;
  }
  return true;
}

/// Per dimension max(a - b, 0).
inline Amounts exceeded(const Amounts& a, const Amounts& b) {
  Amounts out;
  for (std::size_t i = 0; i < a.v.size(); ++i) out[i] = a[i] > b[i] ? a[i] - b[i] : 0;
  return out;
}

inline Share share_of(Wide part, Wide whole) {
  if (whole <= 0) return part > 0 ? kWhole : 0;
  return static_cast<Share>(part * kWhole / whole);
}

}  // namespace muster::engine::volcano
