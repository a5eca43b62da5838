// ReplicaSet and its elder, ReplicationController.
#include "base/quantity.h"
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

void default_replica_set(Object& object) {
  Object& spec = object_at(object, "spec");
  put(spec, "replicas", 1);
  default_template(spec);
}

void default_replication_controller(Object& object) {
  Object& spec = object_at(object, "spec");
  put(spec, "replicas", 1);
  if (Object* pod = find(spec, "template")) {
    Object* metadata = find(*pod, "metadata");
    Object* labels = metadata == nullptr ? nullptr : find(*metadata, "labels");
    if (labels != nullptr && json::is_empty(spec["selector"])) spec["selector"] = *labels;
  }
  default_template(spec);
}

void validate_replica_set(const Value& object, const Value* live, Causes& causes) {
  validate_replicated(object, live, {.kind = "ReplicaSet"}, causes);
}

void validate_replication_controller(const Value& object, const Value* live, Causes& causes) {
  validate_replicated(object, live, {.kind = "ReplicationController", .selector = false}, causes);
}

Object first_status(const Value&, Time) { return Object{{"replicas", 0}}; }

void usage(const Value&, Usage& used) { used["replicationcontrollers"] = Quantity::from_units(1); }

Array replica_set_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  const Value& selector = json::at(object, "spec", "selector");
  const bool plain = json::string_at(object, "kind") == "ReplicationController";
  return {name_of(object),
          number(object, "spec", "replicas"),
          number(object, "status", "replicas"),
          number(object, "status", "readyReplicas"),
          age_of(creation_time(object), now),
          names,
          images,
          plain ? labels_text(selector) : selector_text(selector)};
}

}  // namespace

std::vector<KindRules> families::replica_set() {
  using namespace columns;
  return {{.group = "apps",
           .kind = "ReplicaSet",
           .defaults = default_replica_set,
           .first_status = first_status,
           .validate = validate_replica_set,
           .columns = {name_column(),
                       integer("Desired"),
                       integer("Current"),
                       integer("Ready"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide),
                       text("Selector", kWide)},
           .cells = replica_set_cells,
           .fields = {"metadata.name", "metadata.namespace", "status.replicas"},
           .generation = true},
          {.group = "",
           .kind = "ReplicationController",
           .defaults = default_replication_controller,
           .first_status = first_status,
           .validate = validate_replication_controller,
           .usage = usage,
           .columns = {name_column(),
                       integer("Desired"),
                       integer("Current"),
                       integer("Ready"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide),
                       text("Selector", kWide)},
           .cells = replica_set_cells,
           .fields = {"metadata.name", "metadata.namespace", "status.replicas"},
           .generation = true}};
}

}  // namespace muster::kube
