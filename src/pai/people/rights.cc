#include "pai/people/rights.h"

#include <map>

#include "kube/meta.h"
#include "kube/resources.h"
#include "kube/security/names.h"

namespace muster::pai {
namespace {

constexpr std::string_view kPrefix = "muster-pai-vc-";

kube::Resource cluster_wide(const char* plural, const char* kind) {
  kube::Resource resource = kube::resources::kRoles;
  resource.plural = plural;
  resource.kind = kind;
  resource.namespaced = false;
  return resource;
}
const kube::Resource& roles() {
  static const kube::Resource kRoles = cluster_wide("clusterroles", "ClusterRole");
  return kRoles;
}
const kube::Resource& bindings() {
  static const kube::Resource kBindings = cluster_wide("clusterrolebindings", "ClusterRoleBinding");
  return kBindings;
}

json::Object head(const kube::Resource& resource, const std::string& name) {
  return {{"apiVersion", resource.api_version()},
          {"kind", resource.kind},
          {"metadata", {{"name", name}}}};
}

json::Object rule(std::string_view group, std::string_view resource, const std::string& vc) {
  return {{"apiGroups", json::Array{json::Value(group)}},
          {"resources", json::Array{json::Value(resource)}},
          {"resourceNames", json::Array{json::Value(vc)}},
          {"verbs", json::Array{json::Value(kube::names::access::kUse)}}};
}

json::Object role_of(const std::string& vc) {
  json::Object role = head(roles(), std::string(kPrefix) + vc);
  role["rules"] = json::Array{
      rule(kube::names::access::kVirtualClusterGroup, kube::names::access::kVirtualClusters, vc),
      rule(kube::resources::kQueues.group, kube::resources::kQueues.plural, vc)};
  return role;
}

json::Object binding_of(const Directory& directory, const std::string& vc) {
  const std::string name = std::string(kPrefix) + vc;
  json::Object binding = head(bindings(), name);
  binding["roleRef"] =
      json::Object{{"apiGroup", roles().group}, {"kind", roles().kind}, {"name", name}};
  json::Array subjects;
  for (const GroupRecord* group : directory.groups())
    if (contains(group->vcs(), vc))
      subjects.push_back(json::Object{
          {"apiGroup", roles().group}, {"kind", "Group"}, {"name", "pai:" + group->name}});
  binding["subjects"] = std::move(subjects);
  return binding;
}

/// `field`: what must be as wanted.
Task<Result<void>> match(client::Client& client,
                         const kube::Resource& resource,
                         std::string_view field,
                         std::map<std::string, json::Object> wanted) {
  const auto listed = co_await client.list(resource, {});
  if (!listed) co_return fail(listed.error());
  for (const json::Value& object : listed->items) {
    const std::string name(kube::name_of(object));
    if (!name.starts_with(kPrefix)) continue;
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      const auto removed = co_await client.remove(resource, "", name, {});
      if (!removed && removed.error().code != Code::kNotFound) co_return fail(removed.error());
      continue;
    }
    const json::Value next = found->second[field];
    wanted.erase(found);
    if (json::equal(json::at(object, field), next)) continue;
    const auto patched = co_await client.patch(
        resource, "", name, "", client::PatchType::kMerge, json::Object{{field, next}});
    if (!patched) co_return fail(patched.error());
  }
  for (auto& [name, object] : wanted) {
    const auto made = co_await client.create(resource, "", std::move(object));
    if (!made && made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  }
  co_return Result<void>();
}

}  // namespace

Task<Result<void>> write_rights(client::Client& client,
                                const Directory& directory,
                                std::vector<std::string> vcs) {
  std::map<std::string, json::Object> wanted_roles, wanted_bindings;
  for (const std::string& vc : vcs) {
    const std::string name = std::string(kPrefix) + vc;
    wanted_roles[name] = role_of(vc);
    wanted_bindings[name] = binding_of(directory, vc);
  }
  const auto made = co_await match(client, roles(), "rules", std::move(wanted_roles));
  if (!made) co_return made;
  auto bound = co_await match(client, bindings(), "subjects", std::move(wanted_bindings));
  co_return bound;
}

}  // namespace muster::pai
