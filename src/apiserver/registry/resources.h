/// What the server serves: each group-version-resource, built in or from a
/// CustomResourceDefinition.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/crd/crd.h"
#include "kube/kinds/kind.h"
#include "kube/schema/schema.h"

namespace muster::apiserver {

struct Resource {
  kube::ResourceInfo info;
  const kube::Kind* kind = nullptr;  // what is known of it; never null
  std::string storage;  // the collection: "pods", "jobs.batch"; versions of one kind share it
  std::string storage_api_version;   // apiVersion of stored objects
  const kube::Type* type = nullptr;  // built-in kinds
  std::shared_ptr<const kube::Crd> crd;
  const kube::CrdVersion* version = nullptr;  // custom resources
  std::string crd_name;
  bool stored = true;  // reviews and bindings are not

  [[nodiscard]] bool custom() const { return version != nullptr; }
  [[nodiscard]] std::string api_version() const {
    return info.group.empty() ? info.version : info.group + "/" + info.version;
  }
  [[nodiscard]] bool same_as_storage() const { return api_version() == storage_api_version; }
  /// "pods", "pytorchjobs.kubeflow.org": as error messages name it.
  [[nodiscard]] std::string group_resource() const {
    return info.group.empty() ? info.plural : info.plural + "." + info.group;
  }
  [[nodiscard]] bool has_verb(std::string_view verb) const;
  [[nodiscard]] bool has_subresource(std::string_view name) const;
  [[nodiscard]] const kube::Shape* shape() const;
  [[nodiscard]] std::string key(std::string_view ns, std::string_view name) const {
    return info.namespaced ? std::string(ns) + "/" + std::string(name) : std::string(name);
  }
  [[nodiscard]] std::string list_kind() const;
};
using ResourcePtr = std::shared_ptr<const Resource>;

struct GroupVersion {
  std::string group, version;
  std::vector<ResourcePtr> resources;
};

class Resources {
 public:
  Resources();  // the built-in kinds

  [[nodiscard]] ResourcePtr find(std::string_view group,
                                 std::string_view version,
                                 std::string_view plural) const;
  [[nodiscard]] ResourcePtr find_kind(const kube::Gvk& gvk) const;
  [[nodiscard]] bool has_group(std::string_view group) const;
  [[nodiscard]] const GroupVersion* find_group_version(std::string_view group,
                                                       std::string_view version) const;
  /// Groups in the order of discovery; within a group the preferred version first.
  [[nodiscard]] const std::vector<GroupVersion>& group_versions() const { return group_versions_; }
  /// The resource in its storage version, one per collection.
  [[nodiscard]] std::vector<ResourcePtr> stored() const;
  [[nodiscard]] ResourcePtr by_storage(std::string_view storage) const;
  /// The built-in resource; must exist.
  [[nodiscard]] ResourcePtr get(std::string_view group,
                                std::string_view version,
                                std::string_view plural) const;

  /// A CRD now serves these versions (replacing what it served before).
  void set_crd(const std::string& crd_name, std::shared_ptr<const kube::Crd> crd);
  void remove_crd(const std::string& crd_name);
  [[nodiscard]] std::vector<kube::Crd> crds_of(std::string_view group) const;
  /// Goes up whenever discovery changes.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  void add(std::shared_ptr<Resource> resource);
  void rebuild();

  std::vector<ResourcePtr> builtin_;
  std::map<std::string, std::vector<ResourcePtr>> custom_;  // by CRD name
  std::vector<GroupVersion> group_versions_;
  std::map<std::string, ResourcePtr, std::less<>> by_path_;  // "group/version/plural"
  std::map<std::string, ResourcePtr, std::less<>> by_storage_;
  std::uint64_t generation_ = 1;
};

}  // namespace muster::apiserver
