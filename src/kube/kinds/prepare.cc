// What a write resets and keeps before it is validated and stored.
#include <algorithm>
#include <unordered_set>

#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Object;
using json::Value;

bool builtin(const Gvk& gvk) { return Schema::builtin().find_type(gvk) != nullptr; }

bool has_status_subresource(const Gvk& gvk) {
  static const auto kKinds = [] {
    std::unordered_set<std::string> kinds;
    for (const ResourceInfo& info : Schema::builtin().resources()) {
      if (info.find_subresource("status") != nullptr)
        kinds.insert(info.group + "/" + info.version + "/" + info.kind);
    }
    return kinds;
  }();
  return kKinds.contains(gvk.group + "/" + gvk.version + "/" + gvk.kind);
}

/// Kinds whose metadata.generation Kubernetes maintains. Custom resources all have one.
bool has_generation(const Gvk& gvk) {
  static const std::unordered_set<std::string> kKinds = {
      "/Pod",
      "/ReplicationController",
      "/PodTemplate",
      "apps/Deployment",
      "apps/ReplicaSet",
      "apps/StatefulSet",
      "apps/DaemonSet",
      "batch/Job",
      "batch/CronJob",
      "policy/PodDisruptionBudget",
      "networking.k8s.io/Ingress",
      "networking.k8s.io/NetworkPolicy",
      "networking.k8s.io/IngressClass",
      "discovery.k8s.io/EndpointSlice",
      "scheduling.k8s.io/PriorityClass",
      "apiextensions.k8s.io/CustomResourceDefinition",
      "admissionregistration.k8s.io/MutatingWebhookConfiguration",
      "admissionregistration.k8s.io/ValidatingWebhookConfiguration",
      "admissionregistration.k8s.io/ValidatingAdmissionPolicy",
      "admissionregistration.k8s.io/ValidatingAdmissionPolicyBinding",
      "flowcontrol.apiserver.k8s.io/FlowSchema",
      "flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration",
      "resource.k8s.io/DeviceClass",
      "resource.k8s.io/ResourceSlice"};
  return !builtin(gvk) || kKinds.contains(gvk.group + "/" + gvk.kind);
}

Value empty_status(const Gvk& gvk, const Value& object, Time now) {
  if (gvk.group.empty()) {
    if (gvk.kind == "Pod") {
      Object status{{"phase", "Pending"}, {"qosClass", qos_class(object)}};
      if (!json::array_at(object, "spec", "schedulingGates").empty()) {
        status["conditions"] = json::Array{
            Object{{"type", "PodScheduled"},
                   {"status", "False"},
                   {"lastProbeTime", nullptr},
                   {"lastTransitionTime", format_time(now)},
                   {"reason", "SchedulingGated"},
                   {"message", "Scheduling is blocked due to non-empty scheduling gates"}}};
      }
      return status;
    }
    if (gvk.kind == "Namespace") return Object{{"phase", "Active"}};
    if (gvk.kind == "PersistentVolumeClaim" || gvk.kind == "PersistentVolume")
      return Object{{"phase", "Pending"}};
    if (gvk.kind == "Service") return Object{{"loadBalancer", Object()}};
    if (gvk.kind == "ReplicationController") return Object{{"replicas", 0}};
  }
  if (gvk.kind == "PodDisruptionBudget")
    return Object{{"disruptionsAllowed", 0},
                  {"currentHealthy", 0},
                  {"desiredHealthy", 0},
                  {"expectedPods", 0}};
  if (gvk.kind == "ReplicaSet") return Object{{"replicas", 0}};
  if (gvk.kind == "StatefulSet") return Object{{"replicas", 0}, {"availableReplicas", 0}};
  if (gvk.kind == "DaemonSet") {
    return Object{{"currentNumberScheduled", 0},
                  {"numberMisscheduled", 0},
                  {"desiredNumberScheduled", 0},
                  {"numberReady", 0}};
  }
  return Object();
}

/// A Job finds its pods by its own uid unless the owner chose a selector by hand.
void generate_job_selector(Value& job) {
  const std::string uid(uid_of(job));
  if (uid.empty() || json::bool_at(job, "spec", "manualSelector")) return;
  Object& labels = json::make_object(job, {"spec", "template", "metadata", "labels"});
  labels[names::kubernetes::kControllerUid] = uid;
  labels[names::kubernetes::kJobName] = name_of(job);
  labels[names::kubernetes::kOldControllerUid] = uid;
  labels[names::kubernetes::kOldJobName] = name_of(job);
  json::make_object(job, {"spec", "selector", "matchLabels"})[names::kubernetes::kControllerUid] =
      uid;
  // A job without labels of its own bears those of its pods.
  if (json::object_at(job, "metadata", "labels").empty()) {
    json::make(job, {"metadata", "labels"}) =
        json::at(job, "spec", "template", "metadata", "labels");
  }
}

/// The template's own generation, which tools of old read from this annotation.
void count_template(Value& daemon_set, std::int64_t number) {
  json::make_object(daemon_set,
                    {"metadata", "annotations"})["deprecated.daemonset.template.generation"] =
      std::to_string(number);
}

void prepare_workload(const Gvk& gvk, Value& object) {
  if (gvk.kind != "Workload") return;
  // Written without omit-empty upstream, so they stand as null.
  Value& spec = json::make(object, {"spec"});
  if (!spec.is_object()) return;
  Value& templates = spec.get_object()["podGroupTemplates"];
  if (!templates.is_array()) return;
  for (Value& pod_group : templates.get_array()) {
    if (pod_group.is_object()) pod_group.get_object().emplace("schedulingConstraints", nullptr);
  }
}

bool same_outside_metadata(const Value& a, const Value& b, bool status_too) {
  const Object& left = json::as_object(a);
  const Object& right = json::as_object(b);
  const auto skip = [&](std::string_view key) {
    return key == "metadata" || key == "apiVersion" || key == "kind" ||
           (status_too && key == "status");
  };
  const auto covered = [&](const Object& from, const Object& in) {
    return std::all_of(from.begin(), from.end(), [&](const auto& member) {
      if (skip(member.key())) return true;
      const Value* other = in.if_contains(member.key());
      return other != nullptr && json::equal(member.value(), *other);
    });
  };
  return covered(left, right) && covered(right, left);
}

void keep(Value& updated, const Value& live, std::string_view key) {
  const Value& value = json::at(live, "metadata", key);
  if (value.is_null())
    json::remove(updated, {"metadata", key});
  else
    json::make(updated, {"metadata", key}) = value;
}

void keep_top(Value& updated, const Value& live, std::string_view key) {
  const Value& value = json::at(live, key);
  if (value.is_null())
    json::remove(updated, {key});
  else
    json::make(updated, {key}) = value;
}

/// The usual case, which then needs no copy of the rest.
bool only_status_differs(const Value& updated, const Value& live) {
  const Object& mine = json::as_object(updated);
  const Object& theirs = json::as_object(live);
  if (mine.size() - mine.count("status") != theirs.size() - theirs.count("status")) return false;
  for (const auto& member : mine) {
    if (member.key() == "status") continue;
    const Value* other = theirs.if_contains(member.key());
    if (other == nullptr || !json::equal(member.value(), *other)) return false;
  }
  return true;
}

}  // namespace

void prepare_create(const Gvk& gvk, json::Value& object, Time now) {
  if (!object.is_object()) return;
  Object& metadata = json::make_object(object, {"metadata"});
  for (const std::string_view key : {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    json::remove(object, {"metadata", key});
  if (has_generation(gvk))
    metadata["generation"] = 1;
  else
    json::remove(object, {"metadata", "generation"});

  if (gvk.group.empty() && gvk.kind == "Namespace") {
    Value& finalizers = json::make(object, {"spec", "finalizers"});
    if (!finalizers.is_array()) finalizers.emplace_array();
    const auto& list = finalizers.get_array();
    if (std::none_of(list.begin(), list.end(), [](const Value& value) {
          return json::as_string(value) == "kubernetes";
        })) {
      finalizers.get_array().emplace_back("kubernetes");
    }
  }
  if (gvk.group.empty() && gvk.kind == "Pod" &&
      json::int_at(object, "spec", "terminationGracePeriodSeconds") < 0) {
    json::make(object, {"spec", "terminationGracePeriodSeconds"}) = 1;
  }
  if (gvk.group == "batch" && gvk.kind == "Job") generate_job_selector(object);
  if (gvk.group == "apps" && gvk.kind == "DaemonSet") count_template(object, 1);
  if (gvk.group == groups::kScheduling) prepare_workload(gvk, object);
  // A node registers with its status; everybody else's status is for the status subresource.
  const bool node = gvk.group.empty() && gvk.kind == "Node";
  if (has_status_subresource(gvk) && !node)
    json::make(object, {"status"}) = empty_status(gvk, object, now);
}

void prepare_update(const Gvk& gvk, json::Value& updated, const json::Value& live) {
  if (!updated.is_object()) return;
  json::make_object(updated, {"metadata"});
  for (const std::string_view key : {"uid", "creationTimestamp", "generation"})
    keep(updated, live, key);
  // Nobody takes these away; who would set them is refused by validate_update().
  for (const std::string_view key : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (json::at(updated, "metadata", key).is_null()) keep(updated, live, key);
  }
  json::remove(updated, {"metadata", "selfLink"});
  if (has_status_subresource(gvk)) keep_top(updated, live, "status");
  if (gvk.group.empty() && gvk.kind == "Namespace") keep_top(updated, live, "spec");
  if (gvk.group == groups::kScheduling) prepare_workload(gvk, updated);
  if (gvk.group == "apps" && gvk.kind == "DaemonSet") {
    const auto before =
        parse_int(annotation(live, "deprecated.daemonset.template.generation")).value_or(1);
    const bool kept =
        json::equal(json::at(updated, "spec", "template"), json::at(live, "spec", "template"));
    count_template(updated, kept ? before : before + 1);
  }
  if (!has_generation(gvk)) return;
  bool same = same_outside_metadata(updated, live, builtin(gvk));
  if (gvk.group == "apps" && gvk.kind == "Deployment") {
    same = same && json::equal(json::at(updated, "metadata", "annotations"),
                               json::at(live, "metadata", "annotations"));
  }
  if (!same)
    json::make(updated, {"metadata", "generation"}) =
        json::int_at(live, "metadata", "generation") + 1;
}

void prepare_status_update(const Gvk& gvk, json::Value& updated, const json::Value& live) {
  if (!updated.is_object() || only_status_differs(updated, live)) return;
  Value result = live;
  keep_top(result, updated, "status");
  // Pods and nodes may change labels and annotations through their status as well; nobody else may.
  const bool free_metadata = gvk.group.empty() && (gvk.kind == "Pod" || gvk.kind == "Node");
  if (free_metadata) {
    for (const std::string_view key : {"labels", "annotations", "finalizers"})
      keep(result, updated, key);
  }
  keep(result, updated, "managedFields");
  updated = std::move(result);
}

}  // namespace muster::kube
