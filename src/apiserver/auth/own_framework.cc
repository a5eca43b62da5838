#include "apiserver/auth/own_framework.h"

#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

std::string extra_of(const User& user, std::string_view key) {
  const auto found = user.extra.find(std::string(key));
  return found == user.extra.end() || found->second.size() != 1 ? "" : found->second.front();
}

/// The object of this name, if it is that very one.
StoredPtr find_same(Core& core,
                    std::string_view collection,
                    const std::string& ns,
                    const std::string& name,
                    const std::string& uid) {
  if (name.empty() || uid.empty()) return nullptr;
  StoredPtr found = core.image.collection(collection).find(ns + "/" + name);
  return found && kube::uid_of(found->object) == uid ? found : nullptr;
}

}  // namespace

bool reads_own_framework(Core& core, const User& user, const Attributes& attributes) {
  const kube::Resource& frameworks = kube::resources::kFrameworks;
  const bool reads =
      attributes.verb == "get" || attributes.verb == "list" || attributes.verb == "watch";
  if (!reads || attributes.group != frameworks.group || attributes.resource != frameworks.plural ||
      !attributes.subresource.empty() || attributes.name.empty())
    return false;
  const std::string& ns = attributes.ns;
  if (!user.name.starts_with("system:serviceaccount:" + ns + ":")) return false;
  const StoredPtr pod = find_same(core,
                                  "pods",
                                  ns,
                                  extra_of(user, kube::names::kubernetes::kTokenPodName),
                                  extra_of(user, kube::names::kubernetes::kTokenPodUid));
  if (!pod) return false;
  const kube::OwnerReference map_owner = kube::controller_of(pod->object);
  if (map_owner.kind != "ConfigMap") return false;
  const StoredPtr map = find_same(core, "configmaps", ns, map_owner.name, map_owner.uid);
  if (!map) return false;
  const kube::OwnerReference owner = kube::controller_of(map->object);
  return owner.kind == "Framework" && owner.name == attributes.name &&
         find_same(core, frameworks.plural + "." + frameworks.group, ns, owner.name, owner.uid) !=
             nullptr;
}

}  // namespace muster::apiserver
