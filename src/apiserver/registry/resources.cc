#include "apiserver/registry/resources.h"

#include <algorithm>
#include <set>

#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

std::string path_key(std::string_view group, std::string_view version, std::string_view plural) {
  return std::string(group) + "/" + std::string(version) + "/" + std::string(plural);
}

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

/// Kinds served in two groups or versions share one collection, stored in the first form.
std::shared_ptr<Resource> make_builtin(const kube::ResourceInfo& info) {
  auto resource = std::make_shared<Resource>();
  resource->info = info;
  resource->kind = &kube::kind_of(info.gvk());
  resource->type = kube::Schema::builtin().find_type(info.gvk());
  resource->storage = info.group.empty() ? info.plural : info.plural + "." + info.group;
  resource->storage_api_version = resource->api_version();
  resource->stored = contains(info.verbs, "list") && info.plural != "componentstatuses";
  if (info.group == kube::groups::kEvents) {
    resource->storage = "events";
    resource->storage_api_version = "v1";
  } else if (info.group == "autoscaling") {
    resource->storage_api_version = "autoscaling/v2";
  } else if (info.group == kube::groups::kScheduling && info.version == "v1alpha3" &&
             info.plural != "compositepodgroups") {
    resource->storage_api_version = kube::resources::kNativePodGroups.api_version();
  }
  return resource;
}

std::shared_ptr<Resource> make_metrics(const std::string& plural,
                                       const std::string& kind,
                                       bool namespaced) {
  auto resource = std::make_shared<Resource>();
  resource->info.group = std::string(kube::groups::kMetrics);
  resource->info.version = "v1beta1";
  resource->info.plural = plural;
  resource->info.singular = plural.substr(0, plural.size() - 1);
  resource->info.kind = kind;
  resource->info.namespaced = namespaced;
  resource->info.verbs = {"get", "list"};
  resource->kind = &kube::kind_of(resource->info.gvk());
  resource->storage = resource->group_resource();
  resource->storage_api_version = resource->api_version();
  resource->stored = false;
  return resource;
}

}  // namespace

bool Resource::has_verb(std::string_view verb) const { return contains(info.verbs, verb); }

bool Resource::has_subresource(std::string_view name) const {
  if (info.find_subresource(name) != nullptr) return true;
  if (!custom()) return false;
  return (name == "status" && version->status_subresource) ||
         (name == "scale" && version->scale.has_value());
}

const kube::Shape* Resource::shape() const {
  if (custom()) return version->schema ? &version->schema->shape() : nullptr;
  return type != nullptr ? &kube::shape_of(*type) : nullptr;
}

std::string Resource::list_kind() const {
  if (custom() && !crd->list_kind.empty()) return crd->list_kind;
  return info.kind + "List";
}

Resources::Resources() {
  for (const kube::ResourceInfo& info : kube::Schema::builtin().resources()) {
    auto resource = make_builtin(info);
    const bool priority_class =
        info.group == kube::groups::kScheduling && info.plural == "priorityclasses";
    builtin_.push_back(resource);
    if (priority_class) {
      // The removed v1beta1 is still what some clients of training clusters send.
      auto old = std::make_shared<Resource>(*resource);
      old->info.version = "v1beta1";
      builtin_.push_back(std::move(old));
    }
  }
  builtin_.push_back(make_metrics("nodes", "NodeMetrics", false));
  builtin_.push_back(make_metrics("pods", "PodMetrics", true));
  rebuild();
}

ResourcePtr Resources::find(std::string_view group,
                            std::string_view version,
                            std::string_view plural) const {
  const auto found = by_path_.find(path_key(group, version, plural));
  return found == by_path_.end() ? nullptr : found->second;
}

ResourcePtr Resources::find_kind(const kube::Gvk& gvk) const {
  const GroupVersion* group_version = find_group_version(gvk.group, gvk.version);
  if (group_version == nullptr) return nullptr;
  for (const ResourcePtr& resource : group_version->resources) {
    if (resource->info.kind == gvk.kind) return resource;
  }
  return nullptr;
}

bool Resources::has_group(std::string_view group) const {
  return std::any_of(group_versions_.begin(), group_versions_.end(), [&](const GroupVersion& each) {
    return each.group == group;
  });
}

const GroupVersion* Resources::find_group_version(std::string_view group,
                                                  std::string_view version) const {
  for (const GroupVersion& each : group_versions_) {
    if (each.group == group && each.version == version) return &each;
  }
  return nullptr;
}

std::vector<ResourcePtr> Resources::stored() const {
  std::vector<ResourcePtr> result;
  for (const auto& [storage, resource] : by_storage_) result.push_back(resource);
  return result;
}

ResourcePtr Resources::by_storage(std::string_view storage) const {
  const auto found = by_storage_.find(storage);
  return found == by_storage_.end() ? nullptr : found->second;
}

ResourcePtr Resources::get(std::string_view group,
                           std::string_view version,
                           std::string_view plural) const {
  ResourcePtr found = find(group, version, plural);
  MUSTER_CHECK(found != nullptr, path_key(group, version, plural));
  return found;
}

void Resources::set_crd(const std::string& crd_name, std::shared_ptr<const kube::Crd> crd) {
  std::string storage_version;
  for (const kube::CrdVersion& version : crd->versions) {
    if (version.storage) storage_version = version.name;
  }
  std::vector<ResourcePtr> served;
  for (const kube::CrdVersion& version : crd->versions) {
    if (!version.served) continue;
    auto resource = std::make_shared<Resource>();
    resource->info = version.info;
    resource->kind = &kube::kind_of(version.info.gvk());
    resource->storage = crd->plural + "." + crd->group;
    resource->storage_api_version = crd->group + "/" + storage_version;
    resource->crd = crd;
    resource->version = &version;
    resource->crd_name = crd_name;
    served.push_back(std::move(resource));
  }
  custom_[crd_name] = std::move(served);
  rebuild();
}

void Resources::remove_crd(const std::string& crd_name) {
  if (custom_.erase(crd_name) > 0) rebuild();
}

std::vector<kube::Crd> Resources::crds_of(std::string_view group) const {
  std::vector<kube::Crd> result;
  for (const auto& [name, versions] : custom_) {
    if (!versions.empty() && versions.front()->info.group == group)
      result.push_back(*versions.front()->crd);
  }
  return result;
}

void Resources::add(std::shared_ptr<Resource> resource) { builtin_.push_back(std::move(resource)); }

/// A name that several groups have means the kind of the first group listed. Where people type
/// `kubectl get podgroup` or `queue` they mean Volcano's, as on clusters that have Volcano; T9k's
/// kinds are asked for by their full names.
static int group_rank(const std::string& group) {
  if (group.empty()) return 0;
  if (group == kube::groups::kVolcanoScheduling) return 1;
  return group.ends_with(kube::kT9kDomain) ? 3 : 2;
}

void Resources::rebuild() {
  ++generation_;
  group_versions_.clear();
  by_path_.clear();
  by_storage_.clear();
  const auto insert = [&](const ResourcePtr& resource) {
    auto found =
        std::find_if(group_versions_.begin(), group_versions_.end(), [&](const GroupVersion& each) {
          return each.group == resource->info.group && each.version == resource->info.version;
        });
    if (found == group_versions_.end()) {
      // Versions of a group stand together, in the order they were met.
      auto after = std::find_if(
          group_versions_.rbegin(), group_versions_.rend(), [&](const GroupVersion& each) {
            return each.group == resource->info.group;
          });
      GroupVersion made;
      made.group = resource->info.group;
      made.version = resource->info.version;
      found = group_versions_.insert(
          after == group_versions_.rend() ? group_versions_.end() : after.base(), std::move(made));
    }
    found->resources.push_back(resource);
    by_path_[path_key(resource->info.group, resource->info.version, resource->info.plural)] =
        resource;
    if (resource->stored &&
        (resource->same_as_storage() || !by_storage_.contains(resource->storage)))
      by_storage_[resource->storage] = resource;
  };
  for (const ResourcePtr& resource : builtin_) insert(resource);
  for (const auto& [name, versions] : custom_) {
    for (const ResourcePtr& resource : versions) insert(resource);
  }
  std::stable_sort(group_versions_.begin(),
                   group_versions_.end(),
                   [](const GroupVersion& a, const GroupVersion& b) {
                     return group_rank(a.group) < group_rank(b.group);
                   });
}

}  // namespace muster::apiserver
