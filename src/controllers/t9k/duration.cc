#include "controllers/t9k/duration.h"

#include "kube/kinds/t9k.h"
#include "kube/names.h"

namespace muster::controllers::t9k {
namespace {

/// system-cluster-critical.
constexpr std::int64_t kExemptPriority = 2'000'000'000;

const json::Value& controller_of(const json::Value& object) {
  for (const auto& owner : json::array_at(object, "metadata", "ownerReferences")) {
    if (json::bool_at(owner, "controller")) return owner;
  }
  return json::null_value();
}

struct Known {
  std::string_view group, kind, plural;
  const char* patch;
};
constexpr Known kKnown[] = {{kube::groups::kT9kBatch,
                             "MPIJob",
                             "mpijobs",
                             R"({"spec":{"runMode":{"pause":{"enabled":true}}}})"},
                            {"apps", "Deployment", "deployments", R"({"spec":{"replicas":0}})"},
                            {"apps", "StatefulSet", "statefulsets", R"({"spec":{"replicas":0}})"},
                            {"apps", "ReplicaSet", "replicasets", R"({"spec":{"replicas":0}})"},
                            {"batch", "Job", "jobs", R"({"spec":{"suspend":true}})"}};

}  // namespace

std::string queue_of(const json::Value& pod) { return label_of(pod, kube::names::t9k::kQueue); }

std::optional<Time> time_over(const json::Value& pod, const json::Value& queue) {
  const Duration limit = kube::t9k_duration(json::string_at(queue, "spec", "maxDuration"));
  if (limit <= Duration::zero() || is_deleting(pod)) return std::nullopt;
  const auto phase = phase_of(pod);
  if (phase == "Succeeded" || phase == "Failed") return std::nullopt;
  if (json::string_at(controller_of(pod), "kind") == "DaemonSet") return std::nullopt;
  if (json::int_at(pod, "spec", "priority") >= kExemptPriority) return std::nullopt;
  return time_at(json::at(pod, "metadata", "creationTimestamp")) + limit;
}

std::optional<Stop> stop_of_owner(const json::Value& pod) {
  const auto& owner = controller_of(pod);
  const auto api_version = json::text_at(owner, "apiVersion"), uid = json::text_at(owner, "uid");
  auto kind = json::text_at(owner, "kind"), name = json::text_at(owner, "name");
  // A Deployment names its ReplicaSets after itself and the hash of their template, which the pods
  // carry.
  const auto hash = label_of(pod, kube::names::kubernetes::kPodTemplateHash);
  if (kind == "ReplicaSet" && !hash.empty() && name.ends_with("-" + hash)) {
    kind = "Deployment";
    name.resize(name.size() - hash.size() - 1);
  }
  for (const Known& known : kKnown) {
    if (kind != known.kind || !api_version.starts_with(std::string(known.group) + "/")) continue;
    return Stop{api_version, kind, std::string(known.plural), name, uid, *json::parse(known.patch)};
  }
  return std::nullopt;
}

}  // namespace muster::controllers::t9k
