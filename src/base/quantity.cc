#include "base/quantity.h"

#include <fmt/core.h>

#include <limits>

namespace muster {
namespace {

constexpr __int128 kMax = static_cast<__int128>(std::numeric_limits<std::int64_t>::max()) * 1000;

std::int64_t clamp(__int128 value) {
  if (value > std::numeric_limits<std::int64_t>::max())
    return std::numeric_limits<std::int64_t>::max();
  if (value < std::numeric_limits<std::int64_t>::min())
    return std::numeric_limits<std::int64_t>::min();
  return static_cast<std::int64_t>(value);
}

std::string decimal_text(__int128 value) {
  if (value == 0) return "0";
  const bool negative = value < 0;
  std::string digits;
  for (__int128 rest = negative ? -value : value; rest > 0; rest /= 10) {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  return negative ? "-" + digits : digits;
}

}  // namespace

std::int64_t Quantity::units() const {
  const __int128 down = milli_ / 1000;
  return clamp(milli_ % 1000 > 0 ? down + 1 : down);
}

std::int64_t Quantity::milli() const { return clamp(milli_); }

std::string Quantity::text() const {
  if (milli_ == 0) return "0";
  if (milli_ % 1000 != 0) {
    return decimal_text(milli_) + "m";
  }
  __int128 value = milli_ / 1000;
  if (format_ == QuantityFormat::kBinarySi && (value >= 1024 || value <= -1024)) {
    static constexpr std::string_view kSuffix[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"};
    std::size_t i = 0;
    while (i + 1 < std::size(kSuffix) && value % 1024 == 0) {
      value /= 1024;
      ++i;
    }
    return decimal_text(value) + std::string(kSuffix[i]);
  }
  if (format_ == QuantityFormat::kBinarySi) return decimal_text(value);
  int thousands = 0;
  while (thousands < 6 && value % 1000 == 0) {
    value /= 1000;
    ++thousands;
  }
  if (format_ == QuantityFormat::kDecimalExponent) {
    return thousands == 0 ? decimal_text(value)
                          : fmt::format("{}e{}", decimal_text(value), thousands * 3);
  }
  static constexpr std::string_view kSuffix[] = {"", "k", "M", "G", "T", "P", "E"};
  return decimal_text(value) + std::string(kSuffix[thousands]);
}

/// One piece: a number is read from left to right, and every part decides what may follow.
Result<Quantity> parse_quantity(std::string_view text) {
  const auto bad = [] {
    return fail(
        Code::kInvalid,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
  };
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) {
    negative = rest[0] == '-';
    rest.remove_prefix(1);
  }
  // The number as value * 10^-scale; digits past what 128 bits hold exactly are beyond any real
  // quantity.
  __int128 value = 0;
  int scale = 0;
  bool point = false, any = false, overflow = false;
  while (!rest.empty() && ((rest[0] >= '0' && rest[0] <= '9') || rest[0] == '.')) {
    if (rest[0] == '.') {
      if (point) return bad();
      point = true;
    } else {
      any = true;
      if (value > kMax) {
        overflow = overflow || !point;
      } else {
        value = value * 10 + (rest[0] - '0');
        scale += point ? 1 : 0;
      }
    }
    rest.remove_prefix(1);
  }
  if (!any) return bad();

  QuantityFormat format = QuantityFormat::kDecimalSi;
  int power10 = 3;  // to milli
  int power2 = 0;
  if (rest.empty()) {
  } else if (rest == "Ki" || rest == "Mi" || rest == "Gi" || rest == "Ti" || rest == "Pi" ||
             rest == "Ei") {
    format = QuantityFormat::kBinarySi;
    power2 = 10 * static_cast<int>(std::string_view("KMGTPE").find(rest[0]) + 1);
  } else if (rest == "n")
    power10 -= 9;
  else if (rest == "u")
    power10 -= 6;
  else if (rest == "m")
    power10 -= 3;
  else if (rest == "k")
    power10 += 3;
  else if (rest == "M")
    power10 += 6;
  else if (rest == "G")
    power10 += 9;
  else if (rest == "T")
    power10 += 12;
  else if (rest == "P")
    power10 += 15;
  else if (rest == "E")
    power10 += 18;
  else if (rest[0] == 'e' || rest[0] == 'E') {
    format = QuantityFormat::kDecimalExponent;
    rest.remove_prefix(1);
    const bool down = !rest.empty() && rest[0] == '-';
    if (!rest.empty() && (rest[0] == '+' || rest[0] == '-')) rest.remove_prefix(1);
    if (rest.empty() || rest.size() > 3) return bad();
    int exponent = 0;
    for (const char c : rest) {
      if (c < '0' || c > '9') return bad();
      exponent = exponent * 10 + (c - '0');
    }
    power10 += down ? -exponent : exponent;
  } else {
    return bad();
  }

  power10 -= scale;
  bool inexact = false;
  const auto shrink = [&] {
    inexact = inexact || value % 10 != 0;
    value /= 10;
    ++power10;
  };
  // Grown past what fits only if it is that large for good, not while a fraction is still to be
  // divided away.
  constexpr __int128 kRoom = static_cast<__int128>(1) << 120;
  const auto grow = [&](int factor) {
    while (value > kRoom && power10 < 0) shrink();
    if (value > kRoom)
      overflow = true;
    else
      value *= factor;
  };
  for (; power2 > 0; --power2) grow(2);
  for (; power10 > 0 && value != 0; --power10) grow(10);
  while (power10 < 0 && value != 0) shrink();
  if (inexact) ++value;                        // Kubernetes rounds up what is finer than it keeps
  if (overflow || value > kMax) value = kMax;  // and caps at 2^63-1
  return Quantity(negative ? -value : value, format);
}

}  // namespace muster
