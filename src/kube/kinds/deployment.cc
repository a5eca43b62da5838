// Deployment.
#include <fmt/core.h>

#include "base/strings.h"
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

void default_deployment(Object& object) {
  Object& spec = object_at(object, "spec");
  put(spec, "replicas", 1);
  Object& strategy = object_at(spec, "strategy");
  put_text(strategy, "type", "RollingUpdate");
  if (json::as_string(strategy["type"]) == "RollingUpdate") {
    Object& rolling = object_at(strategy, "rollingUpdate");
    put(rolling, "maxUnavailable", "25%");
    put(rolling, "maxSurge", "25%");
  }
  put(spec, "revisionHistoryLimit", 10);
  put(spec, "progressDeadlineSeconds", 600);
  default_template(spec);
}

void validate_strategy(const Value& spec, Causes& causes) {
  const Value& strategy = json::at(spec, "strategy");
  const std::string_view type = json::string_at(strategy, "type");
  if (type == "Recreate" && json::at(strategy, "rollingUpdate").is_object()) {
    causes.forbidden("spec.strategy.rollingUpdate",
                     "may not be specified when strategy `type` is 'Recreate'");
  } else if (type != "Recreate" && type != "RollingUpdate") {
    causes.add(
        {"FieldValueNotSupported",
         fmt::format("Unsupported value: {}: supported values: \"Recreate\", \"RollingUpdate\"",
                     json::dump(strategy)),
         "spec.strategy"});
  }
  const auto zero = [](const Value& value) {
    return json::is_empty(value) || json::as_string(value) == "0%";
  };
  const Value& rolling = json::at(strategy, "rollingUpdate");
  if (type == "RollingUpdate") {
    validate_int_or_percent(
        json::at(rolling, "maxUnavailable"), "spec.strategy.rollingUpdate.maxUnavailable", causes);
    const Value& surge = json::at(rolling, "maxSurge");
    const bool above =
        json::as_string(surge).ends_with('%') &&
        parse_int(json::as_string(surge).substr(0, json::as_string(surge).size() - 1));
    // A surge may exceed 100%.
    if (!above) validate_int_or_percent(surge, "spec.strategy.rollingUpdate.maxSurge", causes);
  }
  const Value& deadline = json::at(spec, "progressDeadlineSeconds");
  if (!deadline.is_null()) {
    validate_non_negative(deadline, "spec.progressDeadlineSeconds", causes);
    if (json::as_int(deadline) <= json::int_at(spec, "minReadySeconds")) {
      causes.invalid("spec.progressDeadlineSeconds",
                     json::dump(deadline),
                     "must be greater than minReadySeconds");
    }
  }
  if (type == "RollingUpdate" && zero(json::at(rolling, "maxUnavailable")) &&
      zero(json::at(rolling, "maxSurge"))) {
    causes.invalid("spec.strategy.rollingUpdate.maxUnavailable",
                   shown(json::at(rolling, "maxUnavailable")),
                   "may not be 0 when `maxSurge` is 0");
  }
}

void validate(const Value& object, const Value* live, Causes& causes) {
  validate_replicated(
      object, live, {.kind = "Deployment", .history = true, .strategy = validate_strategy}, causes);
}

Array deployment_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  return {
      name_of(object),
      fmt::format(
          "{}/{}", number(object, "status", "readyReplicas"), number(object, "spec", "replicas")),
      number(object, "status", "updatedReplicas"),
      number(object, "status", "availableReplicas"),
      age_of(creation_time(object), now),
      names,
      images,
      selector_text(json::at(object, "spec", "selector"))};
}

}  // namespace

std::vector<KindRules> families::deployment() {
  using namespace columns;
  return {{.group = "apps",
           .kind = "Deployment",
           .defaults = default_deployment,
           .validate = validate,
           .columns = {name_column(),
                       text("Ready"),
                       text("Up-to-date"),
                       text("Available"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide),
                       text("Selector", kWide)},
           .cells = deployment_cells,
           .generation = true,
           .annotations_count = true}};
}

}  // namespace muster::kube
