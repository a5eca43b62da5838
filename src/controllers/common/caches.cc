#include "controllers/common/caches.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/result.h"
#include "controllers/common/native_kinds.h"
#include "controllers/common/objects.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers {
namespace {

const json::Value& controller_of(const json::Value& object) {
  for (const auto& owner : json::array_at(object, "metadata", "ownerReferences")) {
    if (json::bool_at(owner, "controller")) return owner;
  }
  return json::null_value();
}

}  // namespace

const client::Resource& resource_of(std::string_view kind) {
  namespace r = client::resources;
  static const std::map<std::string_view, const client::Resource*> kTable{
      {kinds::kPod, &r::kPods},
      {kinds::kService, &r::kServices},
      {kinds::kEndpoints, &r::kEndpoints},
      {kinds::kNode, &r::kNodes},
      {kinds::kPersistentVolumeClaim, &r::kPersistentVolumeClaims},
      {kinds::kConfigMap, &r::kConfigMaps},
      {kinds::kSecret, &r::kSecrets},
      {kinds::kServiceAccount, &r::kServiceAccounts},
      {kinds::kRole, &r::kRoles},
      {kinds::kRoleBinding, &r::kRoleBindings},
      {kinds::kJob, &r::kJobs},
      {kinds::kStatefulSet, &r::kStatefulSets},
      {kinds::kReplicaSet, &r::kReplicaSets},
      {kinds::kHorizontalPodAutoscaler, &r::kHorizontalPodAutoscalers},
      {kinds::kVolcanoPodGroup, &r::kPodGroups},
      {kinds::kPluginsPodGroup, &r::kSchedulerPluginsPodGroups},
      {kinds::kT9kPodGroup, &client::resources::kT9kPodGroups},
      {kinds::kNativePodGroup, &r::kNativePodGroups},
      {kinds::kWorkload, &client::resources::kNativeWorkloads},
      {kinds::kControllerRevision, &client::resources::kControllerRevisions},
      {kinds::kEndpointSlice, &client::resources::kEndpointSlices},
  };
  const auto found = kTable.find(kind);
  MUSTER_CHECK(found != kTable.end(), "no resource for kind " + std::string(kind));
  return *found->second;
}

Caches::Caches(client::Informers& informers)
    : informers_(informers),
      priority_classes_(informers.get(client::resources::kPriorityClasses)) {}

void Caches::follow(std::string_view kind) {
  const auto [place, added] = by_kind_.try_emplace(std::string(kind));
  if (!added) return;
  auto& cache = place->second;
  cache.informer = &informers_.get(resource_of(kind));
  client::InformerHandlers handlers;
  handlers.on_change = [this, &cache](const client::ObjectPtr& old_object,
                                      const client::ObjectPtr& new_object) {
    changed(cache, old_object, new_object);
  };
  cache.informer->add_handlers(std::move(handlers));
}

void Caches::wake_owner(const std::string& group, const std::string& kind, Wake wake) {
  owners_[group + "/" + kind].push_back(std::move(wake));
}

void Caches::on_change(std::string_view kind, OnChange callback) {
  follow(kind);
  auto& cache = by_kind_.find(kind)->second;
  // Whoever comes late is told of what is there.
  for (const auto& [key, object] : cache.informer->objects()) callback(nullptr, object);
  cache.callbacks.push_back(std::move(callback));
}

void Caches::changed(Cache& cache,
                     const client::ObjectPtr& old_object,
                     const client::ObjectPtr& new_object) {
  if (old_object) {
    const auto uid = json::text_at(controller_of(*old_object), "uid");
    if (const auto found = cache.by_owner.find(uid);
        !uid.empty() && found != cache.by_owner.end()) {
      found->second.erase(name_of(*old_object));
      if (found->second.empty()) cache.by_owner.erase(found);
    }
  }
  if (new_object) {
    const auto uid = json::text_at(controller_of(*new_object), "uid");
    if (!uid.empty()) cache.by_owner[uid][name_of(*new_object)] = new_object;
  }
  wake_owner_of(new_object ? *new_object : *old_object, 2);
  for (const auto& callback : cache.callbacks) callback(old_object, new_object);
}

void Caches::wake_owner_of(const json::Value& object, int levels) const {
  const auto& owner = controller_of(object);
  if (!owner.is_object()) return;
  const auto version = json::string_at(owner, "apiVersion");
  const auto slash = version.find('/');
  const auto group = slash == std::string_view::npos ? "" : std::string(version.substr(0, slash));
  const auto kind = json::text_at(owner, "kind");
  const auto key = namespace_of(object) + "/" + json::text_at(owner, "name");
  if (const auto found = owners_.find(group + "/" + kind); found != owners_.end()) {
    for (const auto& wake : found->second) wake(key);
  }
  if (levels > 1 && (kind == "Job" || kind == "StatefulSet" || kind == "ConfigMap")) {
    if (const auto between = find(kind, key)) wake_owner_of(*between, levels - 1);
  }
}

const Caches::Cache* Caches::cache(std::string_view kind) const {
  const auto found = by_kind_.find(kind);
  return found == by_kind_.end() ? nullptr : &found->second;
}

client::ObjectPtr Caches::find(std::string_view kind, const std::string& key) const {
  const auto* of_kind = cache(kind);
  return of_kind == nullptr ? nullptr : of_kind->informer->find(key);
}

std::vector<const json::Value*> Caches::controlled_by(std::string_view kind,
                                                      std::string_view uid) const {
  std::vector<const json::Value*> result;
  const auto* of_kind = cache(kind);
  if (of_kind == nullptr) return result;
  const auto found = of_kind->by_owner.find(std::string(uid));
  if (found == of_kind->by_owner.end()) return result;
  for (const auto& [name, object] : found->second) result.push_back(object.get());
  return result;
}

std::vector<const json::Value*> Caches::in_namespace(std::string_view kind,
                                                     const std::string& ns) const {
  std::vector<const json::Value*> result;
  const auto* of_kind = cache(kind);
  if (of_kind == nullptr) return result;
  const auto& objects = of_kind->informer->objects();
  // What belongs to no namespace is seen from each.
  const auto prefix = resource_of(kind).namespaced ? ns + "/" : std::string();
  for (auto it = objects.lower_bound(prefix); it != objects.end() && it->first.starts_with(prefix);
       ++it)
    result.push_back(it->second.get());
  return result;
}

std::optional<std::int64_t> Caches::priority_of(std::string_view name) const {
  const auto object = priority_classes_.find(std::string(name));
  if (!object) return std::nullopt;
  return json::int_at(*object, "value");
}

Snapshot::Snapshot(const Caches& caches, const std::string& ns, std::string last_error)
    : last_error_(std::move(last_error)) {
  for (const auto& [kind, cache] : caches.by_kind_) {
    const auto& objects = cache.informer->objects();
    const auto prefix = resource_of(kind).namespaced ? ns + "/" : std::string();
    Objects& copy = by_kind_[kind].objects;
    for (auto it = objects.lower_bound(prefix);
         it != objects.end() && it->first.starts_with(prefix);
         ++it)
      copy.push_back(it->second);
  }
  for (const auto& [name, object] : caches.priority_classes_.objects())
    priority_classes_.push_back(object);
}

std::vector<const json::Value*> Snapshot::controlled_by(std::string_view kind,
                                                        std::string_view uid) const {
  const auto of_kind = by_kind_.find(kind);
  if (of_kind == by_kind_.end()) return {};
  const OfKind& here = of_kind->second;
  if (!std::exchange(here.indexed, true)) {
    const auto begun = std::chrono::steady_clock::now();
    for (const auto& object : here.objects) {
      const auto owner = json::text_at(controller_of(*object), "uid");
      if (!owner.empty()) here.by_owner[owner].push_back(object.get());
    }
    indexing_ += std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - begun);
  }
  const auto found = here.by_owner.find(std::string(uid));
  return found == here.by_owner.end() ? std::vector<const json::Value*>() : found->second;
}

std::vector<const json::Value*> Snapshot::all(std::string_view kind) const {
  std::vector<const json::Value*> result;
  const auto of_kind = by_kind_.find(kind);
  if (of_kind == by_kind_.end()) return result;
  for (const auto& object : of_kind->second.objects) result.push_back(object.get());
  return result;
}

const json::Value* Snapshot::find(std::string_view kind, std::string_view name) const {
  const auto of_kind = by_kind_.find(kind);
  if (of_kind == by_kind_.end()) return nullptr;
  const Objects& objects = of_kind->second.objects;
  const auto found = std::lower_bound(
      objects.begin(), objects.end(), name, [](const client::ObjectPtr& each, auto wanted) {
        return json::string_at(*each, "metadata", "name") < wanted;
      });
  if (found == objects.end() || json::string_at(**found, "metadata", "name") != name)
    return nullptr;
  return found->get();
}

std::optional<std::int64_t> Snapshot::priority_of(std::string_view name) const {
  for (const auto& each : priority_classes_) {
    if (json::string_at(*each, "metadata", "name") == name) return json::int_at(*each, "value");
  }
  return std::nullopt;
}

}  // namespace muster::controllers
