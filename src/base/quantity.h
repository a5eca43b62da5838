/// Kubernetes quantities ("500m", "1.5Gi", "2e3") as exact integers in milli-units.
///
/// A decision never sees a double: cpu is compared in milli-cores, memory in bytes, devices in
/// whole units, and all of them are exact in milli-units of 128 bits.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster {

enum class QuantityFormat : std::uint8_t { kDecimalSi, kBinarySi, kDecimalExponent };

class Quantity {
 public:
  Quantity() = default;
  static Quantity from_units(std::int64_t units,
                             QuantityFormat format = QuantityFormat::kDecimalSi) {
    return Quantity(static_cast<__int128>(units) * 1000, format);
  }
  static Quantity from_milli(std::int64_t milli) {
    return Quantity(milli, QuantityFormat::kDecimalSi);
  }

  /// Rounded up, as Kubernetes' Value() and MilliValue() do; clamped to 64 bits.
  [[nodiscard]] std::int64_t units() const;
  [[nodiscard]] std::int64_t milli() const;
  [[nodiscard]] bool is_zero() const { return milli_ == 0; }
  [[nodiscard]] bool is_negative() const { return milli_ < 0; }
  /// True when it is a whole number of units.
  [[nodiscard]] bool is_whole() const { return milli_ % 1000 == 0; }
  [[nodiscard]] QuantityFormat format() const { return format_; }

  Quantity operator+(const Quantity& other) const {
    return Quantity(milli_ + other.milli_, format_);
  }
  Quantity operator-(const Quantity& other) const {
    return Quantity(milli_ - other.milli_, format_);
  }
  std::strong_ordering operator<=>(const Quantity& other) const { return milli_ <=> other.milli_; }
  bool operator==(const Quantity& other) const { return milli_ == other.milli_; }

  /// The canonical text: "500m", "1536Mi", "2". Format follows how the value was written.
  [[nodiscard]] std::string text() const;

 private:
  Quantity(__int128 milli, QuantityFormat format) : milli_(milli), format_(format) {}
  friend Result<Quantity> parse_quantity(std::string_view text);

  __int128 milli_ = 0;
  QuantityFormat format_ = QuantityFormat::kDecimalSi;
};

/// Error message is Kubernetes' own, so it can stand behind a field path.
Result<Quantity> parse_quantity(std::string_view text);

}  // namespace muster
