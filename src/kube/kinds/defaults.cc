#include "kube/kinds/defaults.h"

#include <unordered_map>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Object;
using json::Value;

void put(Object& object, std::string_view key, Value value) {
  Value& have = object[key];
  if (have.is_null()) have = std::move(value);
}

void put_text(Object& object, std::string_view key, std::string_view text) {
  Value& value = object[key];
  if (json::as_string(value).empty()) value = text;
}

Object& object_at(Object& object, std::string_view key) {
  Value& value = object[key];
  if (!value.is_object()) value.emplace_object();
  return value.get_object();
}

template <typename Fn>
void each(Object& object, std::string_view key, Fn fn) {
  Value* list = object.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (Value& item : list->get_array()) {
    if (item.is_object()) fn(item.get_object());
  }
}

Object* find(Object& object, std::string_view key) {
  Value* value = object.if_contains(key);
  return value == nullptr ? nullptr : value->if_object();
}

void default_template(Object& spec) {
  Object* pod = find(spec, "template");
  if (pod == nullptr) return;
  if (Value* pod_spec = pod->if_contains("spec")) default_pod_spec(*pod_spec, false);
}

void default_pod(Object& object) {
  if (Value* spec = object.if_contains("spec")) default_pod_spec(*spec, true);
}

void default_service(Object& object) {
  Object& spec = object_at(object, "spec");
  put_text(spec, "sessionAffinity", "None");
  if (json::as_string(spec["sessionAffinity"]) == "ClientIP") {
    put(object_at(object_at(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
  }
  put_text(spec, "type", "ClusterIP");
  const std::string type = json::text(spec["type"]);
  each(spec, "ports", [](Object& port) {
    put_text(port, "protocol", "TCP");
    Value number = port["port"];
    Value& target = port["targetPort"];
    if (json::is_empty(target)) target = std::move(number);
  });
  if (type != "ExternalName") put_text(spec, "internalTrafficPolicy", "Cluster");
  if (type == "NodePort" || type == "LoadBalancer")
    put_text(spec, "externalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") put(spec, "allocateLoadBalancerNodePorts", true);
}

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

void default_claim_spec(Object& claim) {
  put_text(object_at(claim, "spec"), "volumeMode", "Filesystem");
}

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
    default_claim_spec(claim);
    put(object_at(claim, "status"), "phase", "Pending");
  });
  default_template(spec);
}

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

void default_job_spec(Object& spec) {
  // Only when both are absent is one completion meant; parallelism alone is a work queue.
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec["completions"] = 1;
  put(spec, "parallelism", 1);
  const Value* per_index = spec.if_contains("backoffLimitPerIndex");
  put(spec, "backoffLimit", per_index != nullptr && !per_index->is_null() ? 2147483647 : 6);
  put_text(spec, "completionMode", "NonIndexed");
  put(spec, "suspend", false);
  put(spec, "manualSelector", false);
  const Value* failure = spec.if_contains("podFailurePolicy");
  put_text(spec,
           "podReplacementPolicy",
           failure != nullptr && failure->is_object() ? "Failed" : "TerminatingOrFailed");
  default_template(spec);
}

void default_job(Object& object) { default_job_spec(object_at(object, "spec")); }

void default_cron_job(Object& object) {
  Object& spec = object_at(object, "spec");
  put_text(spec, "concurrencyPolicy", "Allow");
  put(spec, "suspend", false);
  put(spec, "successfulJobsHistoryLimit", 3);
  put(spec, "failedJobsHistoryLimit", 1);
  // The Job in the template gets its own defaults when it is created; only its pods are defaulted
  // here.
  if (Object* job = find(spec, "jobTemplate")) {
    if (Object* job_spec = find(*job, "spec")) default_template(*job_spec);
  }
}

void default_secret(Object& object) {
  put_text(object, "type", "Opaque");
  if (Value* plain = object.if_contains("stringData")) {
    if (plain->is_object()) {
      const Object entries = plain->get_object();
      Object& data = object_at(object, "data");
      for (const auto& entry : entries)
        data[entry.key()] = base64_encode(json::as_string(entry.value()));
    }
    object.stable_erase(object.find("stringData"));
  }
}

void default_namespace(Object& object) {
  Object& metadata = object_at(object, "metadata");
  const std::string name =
      json::text(metadata.contains("name") ? metadata["name"] : json::null_value());
  if (!name.empty()) object_at(metadata, "labels")[names::kubernetes::kNamespaceName] = name;
}

void default_limit_range(Object& object) {
  Object* spec = find(object, "spec");
  if (spec == nullptr) return;
  each(*spec, "limits", [](Object& limit) {
    if (json::as_string(limit["type"]) != "Container") return;
    const auto fill = [&](std::string_view from, std::string_view to) {
      const Value* source = limit.if_contains(from);
      if (source == nullptr || !source->is_object() || source->get_object().empty()) return;
      const Object copy = source->get_object();
      Object& into = object_at(limit, to);
      for (const auto& entry : copy) put(into, entry.key(), entry.value());
    };
    fill("max", "default");
    fill("default", "defaultRequest");
    fill("min", "defaultRequest");
  });
}

void default_binding(Object& object) {
  put_text(object_at(object, "roleRef"), "apiGroup", groups::kRbac);
  each(object, "subjects", [](Object& subject) {
    const std::string_view kind = json::as_string(subject["kind"]);
    if (kind == "User" || kind == "Group") put_text(subject, "apiGroup", groups::kRbac);
  });
}

void default_endpoints(Object& object) {
  each(object, "subsets", [](Object& subset) {
    each(subset, "ports", [](Object& port) { put_text(port, "protocol", "TCP"); });
  });
}

void default_endpoint_slice(Object& object) {
  each(object, "ports", [](Object& port) {
    put(port, "name", "");
    put_text(port, "protocol", "TCP");
  });
}

/// A node that says nothing of what it can hand out hands out all it has.
void default_node(Object& object) {
  Object& status = object_at(object, "status");
  if (Object* capacity = find(status, "capacity");
      capacity != nullptr && !capacity->empty() && find(status, "allocatable") == nullptr) {
    Value all = *capacity;
    status["allocatable"] = std::move(all);
  }
  // Plain structs of Go, printed whether they say something or not.
  put(object_at(object_at(status, "daemonEndpoints"), "kubeletEndpoint"), "Port", 0);
  Object& info = object_at(status, "nodeInfo");
  for (const std::string_view key : {"machineID",
                                     "systemUUID",
                                     "bootID",
                                     "kernelVersion",
                                     "osImage",
                                     "containerRuntimeVersion",
                                     "kubeletVersion",
                                     "kubeProxyVersion",
                                     "operatingSystem",
                                     "architecture"}) {
    put(info, key, "");
  }
}

void default_persistent_volume(Object& object) {
  Object& spec = object_at(object, "spec");
  put_text(spec, "persistentVolumeReclaimPolicy", "Retain");
  put_text(spec, "volumeMode", "Filesystem");
}

void default_storage_class(Object& object) {
  put_text(object, "reclaimPolicy", "Delete");
  put_text(object, "volumeBindingMode", "Immediate");
}

void default_network_policy(Object& object) {
  Object& spec = object_at(object, "spec");
  put(spec, "podSelector", Object());
  Value& types = spec["policyTypes"];
  if (!json::is_empty(types)) return;
  json::Array list{"Ingress"};
  const Value* egress = spec.if_contains("egress");
  if (egress != nullptr && !json::is_empty(*egress)) list.emplace_back("Egress");
  spec["policyTypes"] = std::move(list);
}

void default_crd(Object& object) {
  Object& spec = object_at(object, "spec");
  Object& names = object_at(spec, "names");
  const std::string kind = json::text(names.contains("kind") ? names["kind"] : json::null_value());
  put_text(names, "singular", to_lower(kind));
  if (!kind.empty()) put_text(names, "listKind", kind + "List");
  put_text(object_at(spec, "conversion"), "strategy", "None");
}

using Defaulter = void (*)(Object&);

Defaulter defaulter_of(const Gvk& gvk) {
  static const std::unordered_map<std::string, Defaulter> kByKind = {
      {"/Pod", default_pod},
      {"/Service", default_service},
      {"/Secret", default_secret},
      {"/Namespace", default_namespace},
      {"/LimitRange", default_limit_range},
      {"/Node", default_node},
      {"/Endpoints", default_endpoints},
      {"/PersistentVolumeClaim", default_claim_spec},
      {"/PersistentVolume", default_persistent_volume},
      {"/ReplicationController", default_replication_controller},
      {"/PodTemplate", default_template},
      {"/ConfigMap", nullptr},
      {"apps/Deployment", default_deployment},
      {"apps/ReplicaSet", default_replica_set},
      {"apps/StatefulSet", default_stateful_set},
      {"apps/DaemonSet", default_daemon_set},
      {"batch/Job", default_job},
      {"batch/CronJob", default_cron_job},
      {"discovery.k8s.io/EndpointSlice", default_endpoint_slice},
      {"rbac.authorization.k8s.io/RoleBinding", default_binding},
      {"rbac.authorization.k8s.io/ClusterRoleBinding", default_binding},
      {"storage.k8s.io/StorageClass", default_storage_class},
      {"networking.k8s.io/NetworkPolicy", default_network_policy},
      {"apiextensions.k8s.io/CustomResourceDefinition", default_crd},
      {"scheduling.k8s.io/PriorityClass",
       [](Object& object) { put_text(object, "preemptionPolicy", "PreemptLowerPriority"); }},
      {"scheduling.k8s.io/PodGroup",
       [](Object& object) {
         put(object_at(object, "spec"), "disruptionMode", Object{{"single", Object()}});
       }},
      {"scheduling.k8s.io/CompositePodGroup",
       [](Object& object) {
         put(object_at(object, "spec"), "disruptionMode", Object{{"single", Object()}});
       }},
      {"autoscaling/HorizontalPodAutoscaler",
       [](Object& object) { put(object_at(object, "spec"), "minReplicas", 1); }},
      {"events.k8s.io/Event", nullptr},
  };
  const auto found = kByKind.find(gvk.group + "/" + gvk.kind);
  return found == kByKind.end() ? nullptr : found->second;
}

}  // namespace

void set_defaults(const Gvk& gvk, json::Value& object) {
  if (!object.is_object()) return;
  if (const Type* type = Schema::builtin().find_type(gvk)) canonicalise(*type, object);
  if (const Defaulter defaulter = defaulter_of(gvk)) defaulter(object.get_object());
}

}  // namespace muster::kube
