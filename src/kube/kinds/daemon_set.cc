// DaemonSet.
#include "base/strings.h"
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

void default_daemon_set(Object& object) {
  Object& spec = object_at(object, "spec");
  Object& strategy = object_at(spec, "updateStrategy");
  put_text(strategy, "type", "RollingUpdate");
  if (json::as_string(strategy["type"]) == "RollingUpdate") {
    Object& rolling = object_at(strategy, "rollingUpdate");
    put(rolling, "maxUnavailable", 1);
    put(rolling, "maxSurge", 0);
  }
  put(spec, "revisionHistoryLimit", 10);
  default_template(spec);
}

constexpr std::string_view kGeneration = "deprecated.daemonset.template.generation";

/// The template's own generation, which tools of old read from this annotation.
void count_template(Value& daemon_set, std::int64_t number) {
  json::make_object(daemon_set, {"metadata", "annotations"})[kGeneration] = std::to_string(number);
}

void prepare_create(Value& object) { count_template(object, 1); }

void prepare_update(Value& updated, const Value& live) {
  const auto before = parse_int(annotation(live, kGeneration)).value_or(1);
  const bool kept =
      json::equal(json::at(updated, "spec", "template"), json::at(live, "spec", "template"));
  count_template(updated, kept ? before : before + 1);
}

Object first_status(const Value&, Time) {
  return Object{{"currentNumberScheduled", 0},
                {"numberMisscheduled", 0},
                {"desiredNumberScheduled", 0},
                {"numberReady", 0}};
}

void validate_strategy(const Value& spec, Causes& causes) {
  validate_enum(json::at(spec, "updateStrategy", "type"),
                "spec.updateStrategy.type",
                {"RollingUpdate", "OnDelete"},
                causes);
}

void validate(const Value& object, const Value* live, Causes& causes) {
  validate_replicated(
      object, live, {.kind = "DaemonSet", .history = true, .strategy = validate_strategy}, causes);
}

Array daemon_set_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  return {name_of(object),
          number(object, "status", "desiredNumberScheduled"),
          number(object, "status", "currentNumberScheduled"),
          number(object, "status", "numberReady"),
          number(object, "status", "updatedNumberScheduled"),
          number(object, "status", "numberAvailable"),
          labels_text(json::at(object, "spec", "template", "spec", "nodeSelector")),
          age_of(creation_time(object), now),
          names,
          images,
          selector_text(json::at(object, "spec", "selector"))};
}

}  // namespace

std::vector<KindRules> families::daemon_set() {
  using namespace columns;
  return {{.group = "apps",
           .kind = "DaemonSet",
           .defaults = default_daemon_set,
           .prepare_create = prepare_create,
           .prepare_update = prepare_update,
           .first_status = first_status,
           .validate = validate,
           .columns = {name_column(),
                       integer("Desired"),
                       integer("Current"),
                       integer("Ready"),
                       integer("Up-to-date"),
                       integer("Available"),
                       text("Node Selector"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide),
                       text("Selector", kWide)},
           .cells = daemon_set_cells,
           .generation = true}};
}

}  // namespace muster::kube
