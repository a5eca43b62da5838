#include "controllers/statefulset/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "controllers/common/revisions.h"
#include "controllers/common/training.h"
#include "controllers/common/workload.h"
#include "kube/names.h"

namespace muster::controllers::statefulset {
namespace {

json::Value make_pod(const json::Value& set, int index, const std::string& revision) {
  const auto name = fmt::format("{}-{}", name_of(set), index);
  auto pod = pod_from_template(set, json::at(set, "spec", "template"), name);
  set_label(pod, kube::names::kubernetes::kStatefulPodName, name);
  set_label(pod, kube::names::kubernetes::kStatefulPodIndex, std::to_string(index));
  set_label(pod, kube::names::kubernetes::kRevisionHash, revision);
  auto& spec = json::make_object(pod, {"spec"});
  spec["hostname"] = name;
  spec["subdomain"] = json::at(set, "spec", "serviceName");
  for (const auto& claim : json::array_at(set, "spec", "volumeClaimTemplates")) {
    const auto volume = json::text_at(claim, "metadata", "name");
    auto& volumes = array_at(pod, {"spec", "volumes"});
    // A claim takes the place of a volume of its name.
    volumes.erase(
        std::remove_if(volumes.begin(),
                       volumes.end(),
                       [&](const auto& each) { return json::string_at(each, "name") == volume; }),
        volumes.end());
    volumes.push_back(
        json::Object{{"name", volume},
                     {"persistentVolumeClaim",
                      json::Object{{"claimName", fmt::format("{}-{}", volume, name)}}}});
  }
  return pod;
}

/// The claims of the pod of this index that do not exist. They outlive the pod, and the set unless
/// its retention policy says that they go with it.
void ensure_claims(Plan& plan, const json::Value& set, const View& view, int index) {
  const bool go_with_set =
      json::string_at(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") ==
      "Delete";
  for (const auto& from : json::array_at(set, "spec", "volumeClaimTemplates")) {
    const auto name =
        fmt::format("{}-{}-{}", json::string_at(from, "metadata", "name"), name_of(set), index);
    if (view.find(kinds::kPersistentVolumeClaim, name) != nullptr) continue;
    json::Value claim =
        json::Object{{"apiVersion", "v1"},
                     {"kind", "PersistentVolumeClaim"},
                     {"metadata", json::Object{{"name", name}, {"namespace", namespace_of(set)}}}};
    for (const std::string_view field : {"labels", "annotations"}) {
      if (const auto& value = json::at(from, "metadata", field); !json::is_empty(value))
        json::make_object(claim, {"metadata"})[field] = value;
    }
    for (const auto& [key, value] : json::object_at(set, "spec", "selector", "matchLabels"))
      json::make_object(claim, {"metadata", "labels"})[key] = value;
    if (go_with_set)
      json::make_object(claim, {"metadata"})["ownerReferences"] = json::Array{owner_reference(set)};
    claim.as_object()["spec"] = json::at(from, "spec");
    auto action = create(kinds::kPersistentVolumeClaim, std::move(claim));
    action.events.push_back({false,
                             "SuccessfulCreate",
                             fmt::format("create Claim {} Pod {}-{} in StatefulSet {} success",
                                         name,
                                         name_of(set),
                                         index,
                                         name_of(set))});
    action.failed_reason = "FailedCreate";
    action.failed_prefix = "create Claim failed: ";
    plan.actions.push_back(std::move(action));
  }
}

int ordinal(const json::Value& set, const json::Value& pod) {
  const auto prefix = name_of(set) + "-";
  const auto name = name_of(pod);
  if (!name.starts_with(prefix)) return -1;
  return static_cast<int>(parse_int(name.substr(prefix.size())).value_or(-1));
}

Action delete_one(const json::Value& pod, const json::Value& set) {
  auto action = remove(kinds::kPod, pod);
  action.events.push_back(
      {false,
       "SuccessfulDelete",
       fmt::format("delete Pod {} in StatefulSet {} successful", name_of(pod), name_of(set))});
  return action;
}

using Pods = std::map<int, const json::Value*>;  // by ordinal

/// Makes what is missing and sends away what has ended, in order if the set wants it so. True: every
/// pod that is wanted runs and is available.
bool fill(Plan& plan,
          const json::Value& set,
          const View& view,
          const Pods& pods,
          int wanted,
          const std::string& revision,
          Time now) {
  const bool ordered = json::string_at(set, "spec", "podManagementPolicy") != "Parallel";
  bool settled = true;  // every pod so far
  for (int index = 0; index < wanted; ++index) {
    const auto found = pods.find(index);
    if (found == pods.end()) {
      if (!ordered || settled) {
        ensure_claims(plan, set, view, index);
        auto action = create(kinds::kPod, make_pod(set, index, revision));
        action.events.push_back(
            {false,
             "SuccessfulCreate",
             fmt::format("create Pod {} in StatefulSet {} successful", action.name, name_of(set))});
        action.failed_reason = "FailedCreate";
        action.failed_prefix = "create Pod failed: ";
        plan.actions.push_back(std::move(action));
      }
      settled = false;
      continue;
    }
    const auto& pod = *found->second;
    const auto phase = phase_of(pod);
    if ((phase == "Failed" || phase == "Succeeded") && !is_deleting(pod)) {
      plan.actions.push_back(delete_one(pod, set));
      settled = false;
    }
    settled = settled && is_available(pod, set, now, plan);
  }
  return settled;
}

/// From the top.
void remove_surplus(Plan& plan, const json::Value& set, const Pods& pods, int wanted) {
  for (auto it = pods.rbegin(); it != pods.rend(); ++it) {
    if (it->first < wanted) break;
    if (!is_deleting(*it->second)) plan.actions.push_back(delete_one(*it->second, set));
    if (json::string_at(set, "spec", "podManagementPolicy") != "Parallel") break;
  }
}

/// From the top, one at a time: pods of an older template.
void renew_one(Plan& plan, const json::Value& set, const Pods& pods, const std::string& revision) {
  if (json::string_at(set, "spec", "updateStrategy", "type") == "OnDelete") return;
  const auto partition = json::int_at(set, "spec", "updateStrategy", "rollingUpdate", "partition");
  for (auto it = pods.rbegin(); it != pods.rend(); ++it) {
    if (it->first < partition ||
        label_of(*it->second, kube::names::kubernetes::kRevisionHash) == revision)
      continue;
    plan.actions.push_back(delete_one(*it->second, set));
    break;
  }
}

json::Value counted(
    Plan& plan, const json::Value& set, const Pods& pods, const std::string& revision, Time now) {
  int ready = 0, available = 0, updated = 0;
  for (const auto& [index, pod] : pods) {
    ready += is_ready(*pod) && !is_deleting(*pod);
    available += is_available(*pod, set, now, plan);
    updated += label_of(*pod, kube::names::kubernetes::kRevisionHash) == revision;
  }
  auto status = status_or_empty(set);
  auto& object = status.as_object();
  object["observedGeneration"] = json::at(set, "metadata", "generation");
  object["replicas"] = static_cast<int>(pods.size());
  object["readyReplicas"] = ready;
  object["availableReplicas"] = available;
  object["currentReplicas"] = updated;
  object["updatedReplicas"] = updated;
  object["updateRevision"] = revision;
  if (updated == static_cast<int>(pods.size()) || !json::at(status, "currentRevision").is_string())
    object["currentRevision"] = revision;
  object["collisionCount"] = 0;
  return status;
}

}  // namespace

Plan plan(const json::Value& set, const View& view, const Settings& settings, Time now) {
  Plan plan;
  if (is_deleting(set)) return plan;
  const auto wanted = static_cast<int>(json::as_int(json::at(set, "spec", "replicas"), 1));
  const auto hash = template_hash(json::at(set, "spec", "template"));
  const auto revision = fmt::format("{}-{}", name_of(set), hash);
  Pods pods;
  std::set<std::string> hashes;
  for (const auto* pod : view.controlled_by(kinds::kPod, uid_of(set))) {
    if (const int index = ordinal(set, *pod); index >= 0) pods[index] = pod;
  }
  for (const auto& [index, pod] : pods) {
    // A pod's label is the revision's whole name.
    const auto label = label_of(*pod, kube::names::kubernetes::kRevisionHash);
    hashes.insert(label.substr(std::min(label.size(), name_of(set).size() + 1)));
  }
  sync_revisions(plan, set, view, hash, hashes);
  const bool settled = fill(plan, set, view, pods, wanted, revision, now);
  remove_surplus(plan, set, pods, wanted);
  if (settled && static_cast<int>(pods.size()) == wanted) renew_one(plan, set, pods, revision);
  Objects all;
  for (const auto& [index, pod] : pods) all.push_back(pod);
  force_delete_stuck(plan, all, settings, now);
  plan.status = counted(plan, set, pods, revision, now);
  return plan;
}

}  // namespace muster::controllers::statefulset
