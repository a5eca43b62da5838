// HorizontalPodAutoscaler.
#include <fmt/core.h>

#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_autoscaler(Object& object) { put(object_at(object, "spec"), "minReplicas", 1); }

void validate_autoscaler(const Value& object, const Value*, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& most = json::at(spec, "maxReplicas");
  if (json::as_int(most) < 0)
    causes.invalid("spec.maxReplicas", json::dump(most), "must be greater than 0");
  if (json::as_int(most) < json::as_int(json::at(spec, "minReplicas"), 1)) {
    causes.invalid("spec.maxReplicas",
                   json::dump(most.is_null() ? Value(0) : most),
                   "must be greater than or equal to `minReplicas`");
  }
  for (const std::string_view key : {"kind", "name"}) {
    if (json::is_empty(json::at(spec, "scaleTargetRef", key)))
      causes.required(fmt::format("spec.scaleTargetRef.{}", key));
  }
  if (json::string_at(spec, "scaleTargetRef", "apiVersion").empty()) {
    causes.invalid("spec.scaleTargetRef.apiVersion", "\"\"", "apiVersion must specify API group");
  }
  if (json::as_int(most) == 0) causes.required("spec.maxReplicas");
}

Array hpa_cells(const Value& object, Time now) {
  const Value& spec = json::at(object, "spec");
  const Value& least = json::at(spec, "minReplicas");
  return {name_of(object),
          fmt::format("{}/{}",
                      json::string_at(spec, "scaleTargetRef", "kind"),
                      json::string_at(spec, "scaleTargetRef", "name")),
          "<unknown>",
          least.is_null() ? "<unset>" : json::dump(least),
          json::int_at(spec, "maxReplicas"),
          number(object, "status", "currentReplicas"),
          age_of(creation_time(object), now)};
}

}  // namespace

std::vector<KindRules> families::autoscaler() {
  using namespace columns;
  return {{.group = "autoscaling",
           .kind = "HorizontalPodAutoscaler",
           .defaults = default_autoscaler,
           .validate = validate_autoscaler,
           .columns = {name_column(),
                       text("Reference"),
                       text("Targets"),
                       text("MinPods"),
                       text("MaxPods"),
                       text("Replicas"),
                       text("Age")},
           .cells = hpa_cells}};
}

}  // namespace muster::kube
