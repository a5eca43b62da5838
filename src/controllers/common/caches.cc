#include "controllers/common/caches.h"

#include <algorithm>
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

std::vector<const json::Value*> pointers(const std::vector<client::ObjectPtr>* objects) {
  std::vector<const json::Value*> result;
  if (objects == nullptr) return result;
  result.reserve(objects->size());
  for (const auto& object : *objects) result.push_back(object.get());
  return result;
}

/// `objects` are in the order of their names.
const json::Value* find_named(const std::vector<client::ObjectPtr>& objects,
                              std::string_view name) {
  const auto found = std::lower_bound(
      objects.begin(), objects.end(), name, [](const client::ObjectPtr& each, auto wanted) {
        return json::string_at(*each, "metadata", "name") < wanted;
      });
  if (found == objects.end() || json::string_at(**found, "metadata", "name") != name)
    return nullptr;
  return found->get();
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

Snapshot::Snapshot(const Caches& caches,
                   const json::Value& job,
                   std::string last_error,
                   Questions asked)
    : caches_(caches),
      ns_(namespace_of(job)),
      uid_(uid_of(job)),
      last_error_(std::move(last_error)),
      asked_(std::move(asked)) {
  fetch();
}

void Snapshot::fetch() {
  asked_.merge(missed_);
  missed_.clear();
  answers_.clear();
  lists_.clear();
  take_controlled(uid_);
  for (const std::string_view between : {kinds::kJob, kinds::kStatefulSet, kinds::kConfigMap}) {
    const Objects here = answers_[{Question::What::kControlled, std::string(between), uid_}];
    for (const auto& object : here) take_controlled(uid_of(*object));
  }
  for (const auto& question : asked_) {
    const auto* cache = caches_.cache(question.kind);
    if (cache == nullptr) continue;
    Objects& objects = answers_[question];
    objects.clear();
    if (question.what == Question::What::kFind) {
      if (auto found = caches_.find(question.kind, ns_ + "/" + question.word))
        objects.push_back(std::move(found));
      continue;
    }
    if (question.what == Question::What::kControlled) {
      if (const auto found = cache->by_owner.find(question.word); found != cache->by_owner.end()) {
        for (const auto& [name, object] : found->second) objects.push_back(object);
      }
    } else {
      // What belongs to no namespace is seen from each.
      const auto prefix = resource_of(question.kind).namespaced ? ns_ + "/" : std::string();
      const auto& every = cache->informer->objects();
      for (auto it = every.lower_bound(prefix); it != every.end() && it->first.starts_with(prefix);
           ++it)
        objects.push_back(it->second);
    }
    if (!objects.empty()) lists_[question.kind].push_back(&objects);
  }
  priority_classes_.clear();
  for (const auto& [name, object] : caches_.priority_classes_.objects())
    priority_classes_.push_back(object);
}

/// Of every kind what this owner controls.
void Snapshot::take_controlled(const std::string& uid) {
  for (const auto& [kind, cache] : caches_.by_kind_) {
    Objects& objects = answers_[{Question::What::kControlled, kind, uid}];
    const auto found = cache.by_owner.find(uid);
    if (found == cache.by_owner.end()) continue;
    for (const auto& [name, object] : found->second) objects.push_back(object);
    lists_[kind].push_back(&objects);
  }
}

/// Null, and noted, when it does not know.
const Snapshot::Objects* Snapshot::answer(Question question) const {
  if (const auto found = answers_.find(question); found != answers_.end()) return &found->second;
  if (!asked_.contains(question)) missed_.insert(std::move(question));
  return nullptr;
}

std::vector<const json::Value*> Snapshot::controlled_by(std::string_view kind,
                                                        std::string_view uid) const {
  return pointers(answer({Question::What::kControlled, std::string(kind), std::string(uid)}));
}

std::vector<const json::Value*> Snapshot::all(std::string_view kind) const {
  return pointers(answer({Question::What::kAll, std::string(kind), ""}));
}

const json::Value* Snapshot::find(std::string_view kind, std::string_view name) const {
  if (const auto lists = lists_.find(kind); lists != lists_.end()) {
    for (const Objects* objects : lists->second) {
      if (const auto* found = find_named(*objects, name)) return found;
    }
  }
  const auto* objects = answer({Question::What::kFind, std::string(kind), std::string(name)});
  return objects == nullptr || objects->empty() ? nullptr : objects->front().get();
}

std::optional<std::int64_t> Snapshot::priority_of(std::string_view name) const {
  const auto* found = find_named(priority_classes_, name);
  return found == nullptr ? std::nullopt : std::optional(json::int_at(*found, "value"));
}

}  // namespace muster::controllers
