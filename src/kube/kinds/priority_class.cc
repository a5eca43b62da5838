// PriorityClass.
#include <fmt/core.h>

#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_priority_class(Object& object) {
  put_text(object, "preemptionPolicy", "PreemptLowerPriority");
}

void validate_priority_class(const Value& object, const Value* live, Causes& causes) {
  const std::string_view name = name_of(object);
  const std::int64_t value = json::int_at(object, "value");
  const bool system = name.starts_with("system-");
  if (system && name != "system-node-critical" && name != "system-cluster-critical") {
    causes.forbidden(
        "metadata.name",
        "priority class names with 'system-' prefix are reserved for system use only. error: " +
            std::string(name) + " is not a known system priority class");
  } else if (!system && value > 1'000'000'000) {
    causes.forbidden(
        "value",
        fmt::format("maximum allowed value of a user defined priority is {}", 1'000'000'000));
  }
  validate_enum(json::at(object, "preemptionPolicy"),
                "preemptionPolicy",
                {"PreemptLowerPriority", "Never"},
                causes,
                false);
  if (live != nullptr) {
    if (value != json::int_at(*live, "value"))
      causes.forbidden("value", "may not be changed in an update.");
    const Value& policy = json::at(object, "preemptionPolicy");
    const Value& old = json::at(*live, "preemptionPolicy");
    if (!json::equal(policy, old))
      causes.invalid("preemptionPolicy", shown(policy), "field is immutable");
  }
}

}  // namespace

std::vector<KindRules> families::priority_class() {
  using namespace columns;
  return {{.group = groups::kScheduling,
           .kind = "PriorityClass",
           .defaults = default_priority_class,
           .validate = validate_priority_class,
           .columns = {name_column(),
                       integer("Value"),
                       boolean("Global-Default"),
                       text("Age"),
                       text("PreemptionPolicy")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{name_of(o),
                              json::int_at(o, "value"),
                              json::bool_at(o, "globalDefault"),
                              age_of(creation_time(o), now),
                              json::text_at(o, "preemptionPolicy")};
               },
           .generation = true,
           .needs_version = true}};
}

}  // namespace muster::kube
