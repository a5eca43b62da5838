// PodDisruptionBudget.
#include "kube/kinds/causes.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void validate_pdb(const Value& object, const Value*, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& least = json::at(spec, "minAvailable");
  const Value& most = json::at(spec, "maxUnavailable");
  if (!least.is_null() && !most.is_null()) {
    causes.invalid("spec", json::dump(spec), "minAvailable and maxUnavailable cannot be both set");
  }
  validate_int_or_percent(least, "spec.minAvailable", causes);
  validate_int_or_percent(most, "spec.maxUnavailable", causes);
  validate_label_selector(json::at(spec, "selector"), "spec.selector", causes);
  validate_enum(json::at(spec, "unhealthyPodEvictionPolicy"),
                "spec.unhealthyPodEvictionPolicy",
                {"AlwaysAllow", "IfHealthyBudget"},
                causes,
                false);
}

Object first_status(const Value&, Time) {
  return Object{
      {"disruptionsAllowed", 0}, {"currentHealthy", 0}, {"desiredHealthy", 0}, {"expectedPods", 0}};
}

Array pdb_cells(const Value& object, Time now) {
  const auto bound = [&](std::string_view key) {
    const Value& value = json::at(object, "spec", key);
    return value.is_null() ? std::string("N/A") : int_or_string(value);
  };
  return {name_of(object),
          bound("minAvailable"),
          bound("maxUnavailable"),
          number(object, "status", "disruptionsAllowed"),
          age_of(creation_time(object), now)};
}

}  // namespace

std::vector<KindRules> families::disruption_budget() {
  using namespace columns;
  return {{.group = "policy",
           .kind = "PodDisruptionBudget",
           .first_status = first_status,
           .validate = validate_pdb,
           .columns = {name_column(),
                       text("Min Available"),
                       text("Max Unavailable"),
                       integer("Allowed Disruptions"),
                       text("Age")},
           .cells = pdb_cells,
           .generation = true,
           .needs_version = true}};
}

}  // namespace muster::kube
