// ResourceQuota.
#include <fmt/core.h>

#include <map>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

Array quota_cells(const Value& quota, Time now) {
  std::map<std::string, std::string> hard;
  for (const auto& member : json::object_at(quota, "status", "hard"))
    hard[std::string(member.key())] = int_or_string(member.value());
  std::vector<std::string> requests, limits;
  for (const auto& [name, amount] : hard) {
    const Value& used = json::at(quota, "status", "used", name);
    const std::string text = fmt::format(
        "{}: {}/{}", name, used.is_null() ? std::string("0") : int_or_string(used), amount);
    (name.starts_with("limits") ? limits : requests).push_back(text);
  }
  return {
      name_of(quota), join(requests, ", "), join(limits, ", "), age_of(creation_time(quota), now)};
}

void validate(const Value& object, const Value* live, Causes& causes) {
  validate_quota(object, causes);
  if (live == nullptr) return;
  const auto scopes = [](const Value& quota) {
    std::set<std::string> all;
    for (const Value& scope : json::array_at(quota, "spec", "scopes"))
      all.insert(json::text(scope));
    return all;
  };
  if (scopes(object) != scopes(*live))
    causes.invalid(
        "spec.scopes", json::dump(json::at(object, "spec", "scopes")), "field is immutable");
}

void usage(const Value&, Usage& used) { used["resourcequotas"] = Quantity::from_units(1); }

}  // namespace

std::vector<KindRules> families::resource_quota() {
  using namespace columns;
  return {{.group = "",
           .kind = "ResourceQuota",
           .validate = validate,
           .usage = usage,
           .columns = {name_column(), text("Request"), text("Limit"), text("Age")},
           .cells = quota_cells,
           .answers_object = true}};
}

}  // namespace muster::kube
