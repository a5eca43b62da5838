// StatefulSet.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_stateful_set(Object& object) {
  Object& spec = object_at(object, "spec");
  put(spec, "replicas", 1);
  put(spec, "serviceName", "");
  put_text(spec, "podManagementPolicy", "OrderedReady");
  Object& strategy = object_at(spec, "updateStrategy");
  put_text(strategy, "type", "RollingUpdate");
  if (json::as_string(strategy["type"]) == "RollingUpdate") {
    put(object_at(strategy, "rollingUpdate"), "partition", 0);
    put(object_at(strategy, "rollingUpdate"), "maxUnavailable", 1);
  }
  put(spec, "revisionHistoryLimit", 10);
  Object& retention = object_at(spec, "persistentVolumeClaimRetentionPolicy");
  put_text(retention, "whenDeleted", "Retain");
  put_text(retention, "whenScaled", "Retain");
  each(spec, "volumeClaimTemplates", [](Object& claim) {
    put_text(claim, "kind", "PersistentVolumeClaim");
    put_text(claim, "apiVersion", "v1");
    default_claim(claim);
    put(object_at(claim, "status"), "phase", "Pending");
  });
  default_template(spec);
}

void validate_strategy(const Value& spec, Causes& causes) {
  const std::string_view policy = json::string_at(spec, "podManagementPolicy");
  if (policy.empty())
    causes.required("spec.podManagementPolicy");
  else if (policy != "OrderedReady" && policy != "Parallel")
    causes.invalid(
        "spec.podManagementPolicy", quoted(policy), "must be 'OrderedReady' or 'Parallel'");
  const Value& strategy = json::at(spec, "updateStrategy");
  const std::string_view type = json::string_at(strategy, "type");
  if (type.empty())
    causes.required("spec.updateStrategy");
  else if (type != "RollingUpdate" && type != "OnDelete")
    causes.invalid(
        "spec.updateStrategy", json::dump(strategy), "must be 'RollingUpdate' or 'OnDelete'");
  validate_non_negative(json::at(strategy, "rollingUpdate", "partition"),
                        "spec.updateStrategy.rollingUpdate.partition",
                        causes);
  validate_non_negative(json::at(spec, "ordinals", "start"), "spec.ordinals.start", causes);
  const std::string_view service = json::string_at(spec, "serviceName");
  if (!service.empty()) causes.check("spec.serviceName", service, check_dns_label(service));
}

/// Of its spec only a few fields may change.
void validate_kept(const Value& spec, const Value& before, Causes& causes) {
  for (const std::string_view key :
       {"serviceName", "podManagementPolicy", "volumeClaimTemplates"}) {
    const Value& old = json::at(before, key);
    if (!(json::is_empty(json::at(spec, key)) && json::is_empty(old)))
      immutable(json::at(spec, key), old, fmt::format("spec.{}", key), causes);
  }
  Value now = spec;
  Value old = before;
  for (Value* value : {&now, &old}) {
    for (const std::string_view key : {"replicas",
                                       "ordinals",
                                       "template",
                                       "updateStrategy",
                                       "revisionHistoryLimit",
                                       "persistentVolumeClaimRetentionPolicy",
                                       "minReadySeconds",
                                       "serviceName",
                                       "podManagementPolicy",
                                       "volumeClaimTemplates",
                                       "selector"}) {
      json::remove(*value, {key});
    }
  }
  if (!json::equal(now, old)) {
    causes.forbidden(
        "spec",
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
        "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
  }
}

void validate(const Value& object, const Value* live, Causes& causes) {
  validate_replicated(object, live, {.kind = "StatefulSet", .strategy = validate_strategy}, causes);
  if (live != nullptr) validate_kept(json::at(object, "spec"), json::at(*live, "spec"), causes);
}

Object first_status(const Value&, Time) {
  return Object{{"replicas", 0}, {"availableReplicas", 0}};
}

Array stateful_set_cells(const Value& object, Time now) {
  const auto [names, images] = containers_of(json::at(object, "spec", "template", "spec"));
  return {
      name_of(object),
      fmt::format(
          "{}/{}", number(object, "status", "readyReplicas"), number(object, "spec", "replicas")),
      age_of(creation_time(object), now),
      names,
      images};
}

}  // namespace

std::vector<KindRules> families::stateful_set() {
  using namespace columns;
  return {{.group = "apps",
           .kind = "StatefulSet",
           .defaults = default_stateful_set,
           .first_status = first_status,
           .validate = validate,
           .columns = {name_column(),
                       text("Ready"),
                       text("Age"),
                       text("Containers", kWide),
                       text("Images", kWide)},
           .cells = stateful_set_cells,
           .generation = true}};
}

}  // namespace muster::kube
