#include "apiserver/registry/admission.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/housekeeping/protection.h"
#include "apiserver/registry/crds.h"
#include "apiserver/registry/finalizers.h"
#include "apiserver/registry/limit_ranges.h"
#include "apiserver/registry/writer.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

/// The member as a list, made if need be.
json::Array& list_at(json::Value& member) {
  return member.is_array() ? member.get_array() : member.emplace_array();
}

/// A copy of `sample` at the end of the list, in the list's memory.
json::Object& add_copy(json::Array& list, const json::Value& sample) {
  return list.emplace_back(sample).get_object();
}

void add_token_volume(json::Array& volumes, const std::string& name) {
  static const json::Value kVolume = {
      {"name", ""},
      {"projected",
       {{"sources",
         json::Array{
             json::Value{{"serviceAccountToken", {{"expirationSeconds", 3607}, {"path", "token"}}}},
             json::Value{
                 {"configMap",
                  {{"name", "kube-root-ca.crt"},
                   {"items", json::Array{json::Value{{"key", "ca.crt"}, {"path", "ca.crt"}}}}}}},
             json::Value{{"downwardAPI",
                          {{"items",
                            json::Array{json::Value{{"path", "namespace"},
                                                    {"fieldRef",
                                                     {{"apiVersion", "v1"},
                                                      {"fieldPath", "metadata.namespace"}}}}}}}}}}},
        {"defaultMode", 420}}}};
  add_copy(volumes, kVolume)["name"] = name;
}

void mount_token(json::Value& pod, const std::string& volume) {
  static const json::Value kMount = {
      {"name", ""}, {"readOnly", true}, {"mountPath", kube::kServiceAccountFolder}};
  for (const std::string_view list : {"initContainers", "containers"}) {
    if (!json::at(pod, "spec", list).is_array()) continue;
    for (json::Value& container : json::make(pod, {"spec", list}).get_array()) {
      if (!container.is_object()) continue;
      json::Array& mounts = list_at(container.get_object()["volumeMounts"]);
      const bool mounted = std::any_of(mounts.begin(), mounts.end(), [](const json::Value& mount) {
        return json::string_at(mount, "mountPath") == kube::kServiceAccountFolder;
      });
      if (!mounted) add_copy(mounts, kMount)["name"] = volume;
    }
  }
}

std::string account_of(const json::Value& pod) {
  std::string account = json::text_at(pod, "spec", "serviceAccountName");
  if (account.empty()) account = json::text_at(pod, "spec", "serviceAccount");
  return account.empty() ? "default" : account;
}

/// What keeps a text from being a part of a path; empty if nothing does.
std::string wrong_segment(std::string_view text) {
  if (text == "." || text == "..") return fmt::format("may not be '{}'", text);
  for (const char c : {'/', '%'}) {
    if (text.find(c) != std::string_view::npos) return fmt::format("may not contain '{}'", c);
  }
  return "";
}

bool tolerates(const json::Value& pod, std::string_view key) {
  for (const json::Value& each : json::array_at(pod, "spec", "tolerations")) {
    const std::string_view effect = json::string_at(each, "effect");
    const std::string_view its_key = json::string_at(each, "key");
    if ((its_key == key || its_key.empty()) && (effect.empty() || effect == "NoExecute"))
      return true;
  }
  return false;
}

/// Kubernetes' struct prints these always; nobody owns them.
void complete_event(json::Value& event) {
  json::Object& members = event.get_object();
  for (const std::string_view key : {"eventTime", "firstTimestamp", "lastTimestamp"})
    members.emplace(key, nullptr);
  for (const std::string_view key : {"reportingComponent", "reportingInstance"})
    members.emplace(key, "");
  members.emplace("source", json::Object());
}

}  // namespace

Result<void> Admission::create(const Resource& resource,
                               const std::string& ns,
                               json::Value& object,
                               const User& user,
                               std::vector<std::string>* warnings) {
  (void)user;
  (void)warnings;
  if (resource.storage == "pods") {
    const auto account = service_account(resource, ns, object);
    if (!account) return account;
    const auto ranked = pod_priority(resource, object);
    if (!ranked) return ranked;
    const auto runtime = runtime_class(resource, object);
    if (!runtime) return runtime;
    tolerations(object);
    // Held against the limits once the object is found valid.
    if (set_limit_defaults(core_, ns, object))
      json::make(object, {"status", "qosClass"}) = kube::qos_class(object);
    return {};
  }
  if (resource.storage == "events" && resource.info.group.empty()) complete_event(object);
  if (resource.storage == kube::collections::kNativePodGroups ||
      resource.storage == kube::collections::kNativeCompositePodGroups)
    return group_priority(resource, object);
  if (resource.storage == "persistentvolumeclaims") return claim(resource, object);
  if (resource.storage == kube::collections::kCustomResourceDefinitions)
    return core_.crds->admit(object);
  return {};
}

bool Admission::awaits_account(const Resource& resource,
                               const std::string& ns,
                               const json::Value& object) const {
  if (resource.storage != "pods" || account_of(object) != "default") return false;
  return !core_.image.collection("serviceaccounts").find(ns + "/default");
}

Result<void> Admission::service_account(const Resource& resource,
                                        const std::string& ns,
                                        json::Value& pod) {
  json::Object& spec = json::make_object(pod, {"spec"});
  const std::string account = account_of(pod);
  spec["serviceAccountName"] = account;
  spec["serviceAccount"] = account;
  if (const std::string wrong = wrong_segment(account); !wrong.empty()) {
    return fail(forbidden(
        resource,
        kube::name_of(pod),
        fmt::format("error looking up service account {}/{}: invalid resource name {}: [{}]",
                    ns,
                    account,
                    quoted(account),
                    wrong)));
  }
  const StoredPtr found = core_.image.collection("serviceaccounts").find(ns + "/" + account);
  if (!found) {
    return fail(
        forbidden(resource,
                  kube::name_of(pod),
                  fmt::format("error looking up service account {}/{}: serviceaccount {} not found",
                              ns,
                              account,
                              quoted(account))));
  }
  const json::Value& wish = json::at(pod, "spec", "automountServiceAccountToken");
  const bool automount =
      wish.is_bool() ? wish.get_bool()
                     : json::as_bool(json::at(found->object, "automountServiceAccountToken"), true);
  if (automount) {
    const std::string volume = generate_name(core_.env, "kube-api-access-");
    add_token_volume(list_at(json::make(pod, {"spec", "volumes"})), volume);
    mount_token(pod, volume);
  }
  const json::Value& secrets = json::at(found->object, "imagePullSecrets");
  if (json::array_at(pod, "spec", "imagePullSecrets").empty() && !json::as_array(secrets).empty()) {
    json::make(pod, {"spec", "imagePullSecrets"}) = secrets;
  }
  return {};
}

StoredPtr Admission::priority_class(std::string_view name) const {
  const Collection& classes = core_.image.collection(kube::collections::kPriorityClasses);
  if (!name.empty()) return classes.find(name);
  StoredPtr chosen;
  for (const auto& [key, stored] : classes.objects()) {
    if (!json::bool_at(stored->object, "globalDefault")) continue;
    // Of several defaults the lowest counts.
    if (!chosen || json::int_at(stored->object, "value") < json::int_at(chosen->object, "value"))
      chosen = stored;
  }
  return chosen;
}

Result<void> Admission::pod_priority(const Resource& resource, json::Value& pod) {
  json::Object& spec = json::make_object(pod, {"spec"});
  const std::string name = json::text_at(pod, "spec", "priorityClassName");
  const StoredPtr found = priority_class(name);
  if (!name.empty() && !found)
    return fail(forbidden(resource,
                          kube::name_of(pod),
                          fmt::format("no PriorityClass with name {} was found", name)));
  const std::int64_t value = found ? json::int_at(found->object, "value") : 0;
  const std::string policy =
      found ? std::string(json::as_string(json::at(found->object, "preemptionPolicy"),
                                          "PreemptLowerPriority"))
            : "PreemptLowerPriority";
  const json::Value& given = json::at(pod, "spec", "priority");
  if (given.is_number() && json::as_int(given) != value) {
    return fail(forbidden(
        resource,
        kube::name_of(pod),
        fmt::format(
            "the integer value of priority ({}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            json::as_int(given),
            value)));
  }
  const std::string_view given_policy = json::string_at(pod, "spec", "preemptionPolicy");
  if (!given_policy.empty() && given_policy != policy) {
    return fail(forbidden(
        resource,
        kube::name_of(pod),
        fmt::format(
            "the string value of PreemptionPolicy ({}) must not be provided in pod spec; priority admission controller computed {} from the given PriorityClass name",
            given_policy,
            policy)));
  }
  if (name.empty() && found) spec["priorityClassName"] = std::string(found->name());
  spec["priority"] = value;
  spec["preemptionPolicy"] = policy;
  return {};
}

Result<void> Admission::group_priority(const Resource& resource, json::Value& group) {
  json::Object& spec = json::make_object(group, {"spec"});
  const std::string name = json::text_at(group, "spec", "priorityClassName");
  const StoredPtr found = priority_class(name);
  if (!name.empty() && !found)
    return fail(forbidden(resource,
                          kube::name_of(group),
                          fmt::format("no PriorityClass with name {} was found", name)));
  const std::int64_t value = found ? json::int_at(found->object, "value") : 0;
  const json::Value& given = json::at(group, "spec", "priority");
  if (given.is_number() && json::as_int(given) != value) {
    return fail(forbidden(
        resource,
        kube::name_of(group),
        fmt::format(
            "priority set in the pod group ({}) must match the priority computed ({}) based on the priority class set in the spec",
            json::as_int(given),
            value)));
  }
  const std::string policy =
      found ? std::string(json::as_string(json::at(found->object, "preemptionPolicy"),
                                          "PreemptLowerPriority"))
            : "PreemptLowerPriority";
  const std::string_view given_policy = json::string_at(group, "spec", "preemptionPolicy");
  if (!given_policy.empty() && given_policy != policy) {
    return fail(forbidden(
        resource,
        kube::name_of(group),
        fmt::format(
            "the string value of PreemptionPolicy ({}) must not be provided in pod group spec; priority admission controller computed {} from the given PriorityClass name",
            given_policy,
            policy)));
  }
  if (name.empty() && found) spec["priorityClassName"] = std::string(found->name());
  spec["priority"] = value;
  spec["preemptionPolicy"] = policy;
  if (resource.storage == kube::collections::kNativePodGroups) {
    set_finalizer(group, kube::names::kubernetes::kPodGroupProtection, true);
  }
  return {};
}

Result<void> Admission::runtime_class(const Resource& resource, const json::Value& pod) {
  const std::string name = json::text_at(pod, "spec", "runtimeClassName");
  const bool overhead = !json::object_at(pod, "spec", "overhead").empty();
  if (name.empty()) {
    if (!overhead) return {};
    return fail(forbidden(
        resource,
        kube::name_of(pod),
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"));
  }
  if (core_.image.collection(kube::collections::kRuntimeClasses).find(name)) return {};
  return fail(forbidden(resource,
                        kube::name_of(pod),
                        fmt::format("pod rejected: RuntimeClass {} not found", quoted(name))));
}

void Admission::tolerations(json::Value& pod) {
  static const json::Value kToleration = {
      {"key", ""}, {"operator", "Exists"}, {"effect", "NoExecute"}, {"tolerationSeconds", 300}};
  for (const std::string_view key :
       {kube::names::kubernetes::kNotReady, kube::names::kubernetes::kUnreachable}) {
    if (tolerates(pod, key)) continue;
    add_copy(list_at(json::make(pod, {"spec", "tolerations"})), kToleration)["key"] = key;
  }
}

Result<void> Admission::claim(const Resource& resource, json::Value& claim) {
  (void)resource;
  if (!json::at(claim, "spec", "storageClassName").is_null()) return {};
  for (const auto& [key, stored] :
       core_.image.collection(kube::collections::kStorageClasses).objects()) {
    if (kube::annotation(stored->object, kube::names::kubernetes::kDefaultClass) != "true")
      continue;
    json::make(claim, {"spec", "storageClassName"}) = std::string(stored->name());
    return {};
  }
  return {};
}

}  // namespace muster::apiserver
