#include "controllers/common/training/pass.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::controllers {
namespace {

std::vector<ReplicaSpec> read_replicas(const Traits& traits, const json::Value& job) {
  std::vector<ReplicaSpec> result;
  const auto& specs = json::at(job, "spec", std::string_view(traits.specs_field));
  for (const auto& type : traits.types) {
    const auto& spec = json::at(specs, std::string_view(type));
    if (!spec.is_object()) continue;
    result.push_back({type,
                      static_cast<int>(json::int_at(spec, "replicas")),
                      json::text_at(spec, "restartPolicy"),
                      &json::at(spec, "template")});
  }
  return result;
}

}  // namespace

const json::Value& run_policy(const json::Value& job) { return json::at(job, "spec", "runPolicy"); }

bool is_suspended(const json::Value& job) { return json::bool_at(run_policy(job), "suspend"); }

json::Object base_labels(const Pass& pass, const std::string& type, int index) {
  return json::Object{{kube::names::kubeflow::kOperatorName, pass.traits.controller},
                      {kube::names::kubeflow::kJobName, pass.name()},
                      {kube::names::kubeflow::kReplicaType, to_lower(type)},
                      {kube::names::kubeflow::kReplicaIndex, std::to_string(index)}};
}

const ReplicaSpec* replica_of(const Pass& pass, const json::Value& pod) {
  for (const auto& replica : pass.replicas) {
    if (to_lower(replica.type) == label_of(pod, kube::names::kubeflow::kReplicaType))
      return &replica;
  }
  return nullptr;
}

std::string child_name(const Pass& pass, const std::string& type, int index) {
  return replace_all(fmt::format("{}-{}-{}", pass.name(), to_lower(type), index), "/", "-");
}

Pass::Pass(const Traits& t, const json::Value& j, const View& v, const Settings& s, Time n, Plan& p)
    : traits(t),
      job(j),
      replicas(read_replicas(t, j)),
      view(v),
      settings(s),
      now(n),
      plan(p),
      status(json::at(j, "status").is_object() ? json::at(j, "status")
                                               : json::Value(json::Object{})),
      conditions(status, true, n) {
  for (const auto* pod : v.controlled_by(kinds::kPod, uid_of(j))) pods.push_back(pod);
}

int Pass::total() const {
  int sum = 0;
  for (const auto& replica : replicas) sum += replica.replicas;
  return sum;
}

const ReplicaSpec* Pass::find(std::string_view type) const {
  for (const auto& replica : replicas) {
    if (replica.type == type) return &replica;
  }
  return nullptr;
}

void Pass::complete() {
  if (json::at(status, "completionTime").is_null())
    status.as_object()["completionTime"] = time_value(now);
}

// The events are recorded even where the condition stays as it is (another type failed first,
// Failed is final): they say which replicas did it.
void Pass::succeed(const std::string& message) {
  complete();
  conditions.set("Succeeded", true, reason("Succeeded"), message);
  event(false, reason("Succeeded"), message);
}

void Pass::fail(const std::string& message) {
  complete();
  conditions.set("Failed", true, reason("Failed"), message);
  event(false, reason("Failed"), message);
}

void Pass::restart(const std::string& message) {
  // A pod that takes long to end is looked at many times: said once, until something else was said.
  if (!conditions.set("Restarting", true, reason("Restarting"), message) &&
      conditions.message("Restarting") == message)
    return;
  event(true, reason("Restarting"), message);
}

void count(Counts& counts, const json::Value& pod) {
  const auto phase = phase_of(pod);
  if (phase == "Running") {
    // A pod that is being taken away counts as failed: it may never reach the phase Failed.
    ++(is_deleting(pod) ? counts.failed : counts.active);
  } else if (phase == "Succeeded") {
    ++counts.succeeded;
  } else if (phase == "Failed") {
    ++counts.failed;
  }
}

void write_counts(Pass& pass, bool selector) {
  // A type that the spec no longer has keeps the last that was said of it.
  json::Object statuses = json::object_at(pass.status, "replicaStatuses");
  for (const auto& replica : pass.replicas) {
    const auto& counts = pass.counts[replica.type];
    json::Object entry;
    if (counts.active > 0) entry["active"] = counts.active;
    if (counts.succeeded > 0) entry["succeeded"] = counts.succeeded;
    if (counts.failed > 0) entry["failed"] = counts.failed;
    if (selector) {
      entry["selector"] = fmt::format("{}={},{}={},{}={}",
                                      kube::names::kubeflow::kJobName,
                                      pass.name(),
                                      kube::names::kubeflow::kOperatorName,
                                      pass.traits.controller,
                                      kube::names::kubeflow::kReplicaType,
                                      to_lower(replica.type));
    }
    statuses[replica.type] = std::move(entry);
  }
  pass.status.as_object()["replicaStatuses"] = std::move(statuses);
}

}  // namespace muster::controllers
