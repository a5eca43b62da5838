#include "kube/kinds/t9k.h"

#include <algorithm>
#include <iterator>

#include "base/strings.h"

namespace muster::kube {

Duration t9k_duration(std::string_view text) {
  using std::chrono::hours;
  static const std::pair<std::string_view, Duration> kUnits[] = {
      {"y", hours(24 * 365)},
      {"w", hours(24 * 7)},
      {"d", hours(24)},
      {"h", hours(1)},
      {"ms", std::chrono::milliseconds(1)},
      {"m", std::chrono::minutes(1)},
      {"s", std::chrono::seconds(1)}};
  Duration sum{};
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const auto number = parse_int(text.substr(0, digits));
    text.remove_prefix(digits);
    const auto* unit = std::find_if(std::begin(kUnits), std::end(kUnits), [&](const auto& u) {
      return text.starts_with(u.first);
    });
    if (!number || unit == std::end(kUnits)) return Duration{};
    sum += *number * unit->second;
    text.remove_prefix(unit->first.size());
  }
  return sum;
}

}  // namespace muster::kube
