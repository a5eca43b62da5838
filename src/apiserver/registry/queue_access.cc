#include "apiserver/registry/queue_access.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/auth/rbac.h"
#include "apiserver/registry/guard_pods.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"
#include "kube/security/names.h"

namespace muster::apiserver {
namespace {

constexpr int kDepthMax = 32;

std::string storage_of(const kube::Resource& resource) {
  return resource.plural + "." + resource.group;
}

const std::string& groups_storage(bool t9k) {
  static const std::string kVolcano = storage_of(kube::resources::kPodGroups);
  static const std::string kT9k = storage_of(kube::resources::kT9kPodGroups);
  return t9k ? kT9k : kVolcano;
}

bool is_group(const Resource& resource) {
  return resource.storage == groups_storage(false) || resource.storage == groups_storage(true);
}

bool is_native_group(const Resource& resource) {
  return resource.storage == kube::collections::kNativePodGroups ||
         resource.storage == kube::collections::kNativeCompositePodGroups;
}

/// Null for virtual clusters, and for queues that are not there.
StoredPtr find_queue(Core& core, const std::string& ns, const kube::TenantName& tenant) {
  if (tenant.kind == kube::TenantKind::kVirtualCluster) return nullptr;
  static const std::string kVolcano = storage_of(kube::resources::kQueues);
  static const std::string kT9k = storage_of(kube::resources::kT9kQueues);
  const bool t9k = tenant.kind == kube::TenantKind::kT9kQueue;
  return core.image.collection(t9k ? kT9k : kVolcano)
      .find(t9k ? ns + "/" + tenant.name : tenant.name);
}

/// What the write names, the queue of the group that a pod joins included.
std::vector<kube::TenantName> wanted_by(Core& core,
                                        const GuardedWrite& write,
                                        const json::Value& object) {
  if (write.resource.storage == "pods") {
    bool t9k = false;
    if (const std::string key = kube::group_of_pod(object, &t9k); !key.empty()) {
      const StoredPtr group = core.image.collection(groups_storage(t9k)).find(key);
      if (group) return kube::tenants_of_member(object, group->object);
    }
  }
  return kube::tenants_of(object);
}

bool has(const std::vector<kube::TenantName>& all, const kube::TenantName& wanted) {
  return std::binary_search(all.begin(), all.end(), wanted);
}

bool is_system(std::string_view name) {
  return name == "system-node-critical" || name == "system-cluster-critical";
}

/// The first of Kubernetes' own classes that is named anywhere outside of containers.
std::string_view system_class(const json::Value& value, int depth) {
  if (depth > kDepthMax) return {};
  if (const json::Array* array = value.if_array()) {
    for (const json::Value& item : *array) {
      if (const auto found = system_class(item, depth + 1); !found.empty()) return found;
    }
  }
  if (!value.is_object()) return {};
  for (const auto& member : value.get_object()) {
    const std::string_view key = member.key();
    if (key == "containers" || key == "initContainers" || key == "metadata" || key == "status")
      continue;
    const bool names = key == "priorityClassName" || key == "priorityClass";
    if (names && is_system(json::as_string(member.value()))) return json::as_string(member.value());
    if (const auto found = system_class(member.value(), depth + 1); !found.empty()) return found;
  }
  return {};
}

/// A quota of the namespace whose scope is this class.
bool quota_names(Core& core, const std::string& ns, std::string_view name) {
  bool found = false;
  core.image.collection("resourcequotas").each_in(ns, [&](const StoredPtr& quota) {
    for (const json::Value& each :
         json::array_at(quota->object, "spec", "scopeSelector", "matchExpressions")) {
      if (json::string_at(each, "scopeName") != "PriorityClass") continue;
      const json::Array& values = json::array_at(each, "values");
      if (json::string_at(each, "operator") == "Exists") found = true;
      if (json::string_at(each, "operator") == "In" &&
          std::any_of(values.begin(), values.end(), [&](const json::Value& value) {
            return json::as_string(value) == name;
          }))
        found = true;
    }
  });
  return found;
}

}  // namespace

Result<void> may_use(Core& core,
                     const User& user,
                     const std::string& ns,
                     const kube::TenantName& tenant) {
  const StoredPtr queue = find_queue(core, ns, tenant);
  const kube::Admits said = queue ? kube::queue_admits(queue->object, ns) : kube::Admits::kUnsaid;
  if (said == kube::Admits::kYes) return {};
  const bool open = !core.options.queues_closed ||
                    (tenant.kind != kube::TenantKind::kVirtualCluster && tenant.name == "default");
  if (said == kube::Admits::kUnsaid && open) return {};
  Attributes attributes;
  attributes.verb = kube::names::access::kUse;
  attributes.group = tenant.group();
  attributes.resource = tenant.resource();
  attributes.name = tenant.name;
  attributes.ns = ns;
  if (core.authorizer->allowed(user, attributes)) return {};
  return fail(Code::kForbidden, kube::refusal(tenant, user.name, ns));
}

bool names_tenants(const Resource& resource) {
  return makes_pods(resource) || is_group(resource) || is_native_group(resource);
}

Result<void> guard_tenants(Core& core, const GuardedWrite& write) {
  if (write.user.in_group("system:masters") || !write.subresource.empty()) return {};
  const auto wanted = wanted_by(core, write, write.next);
  const auto before =
      write.live == nullptr ? std::vector<kube::TenantName>() : wanted_by(core, write, *write.live);
  for (const kube::TenantName& tenant : wanted) {
    if (has(before, tenant)) continue;
    const auto allowed = may_use(core, write.user, write.ns, tenant);
    if (!allowed)
      return fail(forbidden(write.resource, kube::name_of(write.next), allowed.error().message));
  }
  return {};
}

Result<void> guard_priority(Core& core, const GuardedWrite& write) {
  // Templates of Kubernetes' own kinds are let pass, as there: it is their pods that are judged.
  const bool judged = write.resource.storage == "pods" || write.resource.custom() ||
                      is_native_group(write.resource);
  if (!judged || write.ns == "kube-system" || !write.subresource.empty()) return {};
  const std::string_view name = system_class(json::at(write.next, "spec"), 0);
  if (name.empty() || quota_names(core, write.ns, name)) return {};
  if (write.live != nullptr && system_class(json::at(*write.live, "spec"), 0) == name) return {};
  return fail(forbidden(
      write.resource,
      kube::name_of(write.next),
      fmt::format("insufficient quota to match these scopes: [{{PriorityClass In [{}]}}]; outside "
                  "of kube-system this class needs a ResourceQuota in namespace {} whose "
                  "scopeSelector names it",
                  name,
                  quoted(write.ns))));
}

}  // namespace muster::apiserver
