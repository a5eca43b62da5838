#include "scheduler/volumes.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/quantity.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "scheduler/translate.h"

namespace muster::scheduler {
namespace {

namespace resources = client::resources;
using client::ObjectPtr;
using json::as_array;
using json::as_string;
using json::at;

/// As kube-scheduler's bindTimeoutSeconds.
constexpr Duration kBindTimeout = std::chrono::minutes(10);

/// Both must hold: every pair of one term of each.
void require_also(std::vector<engine::NodeTerm>& terms, const std::vector<engine::NodeTerm>& more) {
  if (more.empty()) return;
  if (terms.empty()) {
    terms = more;
    return;
  }
  std::vector<engine::NodeTerm> both;
  for (const auto& a : terms) {
    for (const auto& b : more) {
      engine::NodeTerm term = a;
      term.labels.insert(term.labels.end(), b.labels.begin(), b.labels.end());
      term.fields.insert(term.fields.end(), b.fields.begin(), b.fields.end());
      both.push_back(std::move(term));
    }
  }
  terms = std::move(both);
}

std::vector<engine::NodeTerm> places_of(const json::Value& volume) {
  return node_terms(at(volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms"));
}

std::vector<engine::NodeTerm> allowed_topologies(const json::Value& storage_class) {
  std::vector<engine::NodeTerm> terms;
  for (const auto& topology : json::array_at(storage_class, "allowedTopologies")) {
    engine::NodeTerm term;
    for (const auto& label : json::array_at(topology, "matchLabelExpressions")) {
      engine::Requirement requirement;
      requirement.key = json::text_at(label, "key");
      requirement.op = engine::Operator::kIn;
      for (const auto& value : json::array_at(label, "values"))
        requirement.values.push_back(json::text(value));
      term.labels.push_back(std::move(requirement));
    }
    terms.push_back(std::move(term));
  }
  return terms;
}

std::int64_t bytes_of(const json::Value& storage) {
  const auto quantity = parse_quantity(as_string(storage));
  return quantity ? quantity->units() : 0;
}

bool serves(const json::Value& volume, const json::Value& claim) {
  if (json::string_at(volume, "spec", "storageClassName") !=
      json::string_at(claim, "spec", "storageClassName"))
    return false;
  const auto& owner = at(volume, "spec", "claimRef");
  if (owner.is_object()) {
    return json::string_at(owner, "name") == kube::name_of(claim) &&
           json::string_at(owner, "namespace") == kube::namespace_of(claim);
  }
  if (json::string_at(volume, "status", "phase") != "Available" || kube::is_deleting(volume))
    return false;
  if (as_string(at(volume, "spec", "volumeMode"), "Filesystem") !=
      as_string(at(claim, "spec", "volumeMode"), "Filesystem"))
    return false;
  const auto& modes = json::array_at(volume, "spec", "accessModes");
  for (const auto& mode : json::array_at(claim, "spec", "accessModes")) {
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) return false;
  }
  return bytes_of(at(volume, "spec", "capacity", "storage")) >=
         bytes_of(at(claim, "spec", "resources", "requests", "storage"));
}

}  // namespace

Volumes::Volumes(Env& env,
                 client::Client& client,
                 client::Informers& informers,
                 std::function<void(const std::set<std::string>&)> changed)
    : env_(env),
      client_(client),
      claims_(&informers.get(resources::kPersistentVolumeClaims)),
      volumes_(&informers.get(resources::kPersistentVolumes)),
      classes_(&informers.get(resources::kStorageClasses)),
      nodes_(&informers.get(resources::kNodes)),
      moved_(env.make_signal()) {
  for (client::Informer* informer : {claims_, volumes_, classes_}) {
    const auto on_change = [this, changed](const ObjectPtr&, const ObjectPtr&) {
      moved_->notify();
      if (!pods_.empty()) changed(std::set<std::string>(pods_));
    };
    informer->add_handlers({on_change, [this, changed] { changed(std::set<std::string>(pods_)); }});
  }
}

std::vector<client::Resource> Volumes::kinds() {
  return {resources::kPersistentVolumeClaims,
          resources::kPersistentVolumes,
          resources::kStorageClasses};
}

std::vector<Volumes::Claim> Volumes::claims_of(const json::Value& pod) {
  std::vector<Claim> claims;
  for (const auto& volume : json::array_at(pod, "spec", "volumes")) {
    const auto name = json::string_at(volume, "persistentVolumeClaim", "claimName");
    if (!name.empty()) claims.push_back({std::string(name), false});
    if (at(volume, "ephemeral").is_object())
      claims.push_back(
          {fmt::format("{}-{}", kube::name_of(pod), json::string_at(volume, "name")), true});
  }
  return claims;
}

bool Volumes::is_bound(const json::Value& claim) {
  return !json::string_at(claim, "spec", "volumeName").empty() &&
         !kube::annotation(claim, kube::names::kubernetes::kBindCompleted).empty();
}

std::string Volumes::constrain(engine::Pod& pod, const json::Value& object) {
  const auto claims = claims_of(object);
  if (claims.empty() || !pod.node.empty()) {
    pods_.erase(pod.key);
    return {};
  }
  pods_.insert(pod.key);
  for (const auto& [name, ephemeral] : claims) {
    const ObjectPtr claim = claims_->find(fmt::format("{}/{}", pod.ns, name));
    if (!claim && ephemeral)
      return fmt::format(
          "waiting for ephemeral volume controller to create the persistentvolumeclaim \"{}\"",
          name);
    if (!claim) return fmt::format("persistentvolumeclaim \"{}\" not found", name);
    if (kube::is_deleting(*claim))
      return fmt::format("persistentvolumeclaim \"{}\" is being deleted", name);
    const auto volume_name = json::string_at(*claim, "spec", "volumeName");
    if (is_bound(*claim)) {
      const ObjectPtr volume = volumes_->find(std::string(volume_name));
      if (!volume)
        return fmt::format(
            "persistentvolumeclaim \"{}\" bound to non-existent persistentvolume \"{}\"",
            name,
            volume_name);
      require_also(pod.node_affinity, places_of(*volume));
      continue;
    }
    const ObjectPtr storage_class =
        classes_->find(json::text_at(*claim, "spec", "storageClassName"));
    if (!storage_class ||
        as_string(at(*storage_class, "volumeBindingMode"), "Immediate") != "WaitForFirstConsumer" ||
        !volume_name.empty()) {
      return fmt::format("pod has unbound immediate PersistentVolumeClaims: \"{}\"", name);
    }
    if (auto why = constrain_delayed(pod, *claim, *storage_class); !why.empty()) return why;
  }
  return {};
}

/// A claim that somebody (perhaps we, before a restart) has promised a node stays there.
std::string Volumes::constrain_delayed(engine::Pod& pod,
                                       const json::Value& claim,
                                       const json::Value& storage_class) const {
  if (const auto node = kube::annotation(claim, kube::names::kubernetes::kSelectedNode);
      !node.empty()) {
    engine::NodeTerm there;
    there.fields.push_back({"metadata.name", engine::Operator::kIn, {std::string(node)}});
    require_also(pod.node_affinity, {there});
    return {};
  }
  if (json::string_at(storage_class, "provisioner") != kube::names::kubernetes::kNoProvisioner) {
    require_also(pod.node_affinity, allowed_topologies(storage_class));
    return {};
  }
  std::vector<engine::NodeTerm> places;
  bool anywhere = false;
  for (const ObjectPtr& volume : candidates(claim)) {
    const auto there = places_of(*volume);
    anywhere = anywhere || there.empty();
    places.insert(places.end(), there.begin(), there.end());
  }
  if (anywhere) return {};
  if (places.empty())
    return fmt::format("didn't find available persistent volumes to bind for \"{}\"",
                       kube::name_of(claim));
  require_also(pod.node_affinity, places);
  return {};
}

/// The smallest first, so that a large volume is kept for a claim that needs it.
std::vector<ObjectPtr> Volumes::candidates(const json::Value& claim) const {
  std::vector<ObjectPtr> found;
  for (const auto& [name, volume] : volumes_->objects()) {
    if (serves(*volume, claim)) found.push_back(volume);
  }
  std::stable_sort(found.begin(), found.end(), [](const ObjectPtr& a, const ObjectPtr& b) {
    return bytes_of(at(*a, "spec", "capacity", "storage")) <
           bytes_of(at(*b, "spec", "capacity", "storage"));
  });
  return found;
}

Task<Result<void>> Volumes::choose_for(const json::Value& claim, const std::string& node) {
  const std::string ns(kube::namespace_of(claim)), name(kube::name_of(claim));
  const ObjectPtr storage_class = classes_->find(json::text_at(claim, "spec", "storageClassName"));
  if (storage_class &&
      json::string_at(*storage_class, "provisioner") != kube::names::kubernetes::kNoProvisioner) {
    if (kube::annotation(claim, kube::names::kubernetes::kSelectedNode) == node)
      co_return Result<void>{};
    json::Value patch = json::Object{};
    json::make_object(patch, {"metadata", "annotations"})[kube::names::kubernetes::kSelectedNode] =
        node;
    const auto told = co_await client_.patch(resources::kPersistentVolumeClaims,
                                             ns,
                                             name,
                                             "",
                                             client::PatchType::kMerge,
                                             std::move(patch));
    if (!told) co_return fail(told.error());
    co_return Result<void>{};
  }
  const ObjectPtr where = nodes_->find(node);
  for (const ObjectPtr& volume : candidates(claim)) {
    if (!where ||
        !node_matches(*where, at(*volume, "spec", "nodeAffinity", "required", "nodeSelectorTerms")))
      continue;
    json::Value patch = json::Object{};
    // The version keeps two claims from getting the same volume.
    json::make(patch, {"metadata", "resourceVersion"}) = kube::resource_version_of(*volume);
    json::make_object(
        patch, {"metadata", "annotations"})[kube::names::kubernetes::kBoundByController] = "yes";
    json::make(patch, {"spec", "claimRef"}) = json::Object{{"apiVersion", "v1"},
                                                           {"kind", "PersistentVolumeClaim"},
                                                           {"namespace", ns},
                                                           {"name", name},
                                                           {"uid", kube::uid_of(claim)}};
    const auto given = co_await client_.patch(resources::kPersistentVolumes,
                                              "",
                                              std::string(kube::name_of(*volume)),
                                              "",
                                              client::PatchType::kMerge,
                                              std::move(patch));
    if (given) co_return Result<void>{};
    if (given.error().code != Code::kConflict) co_return fail(given.error());
  }
  co_return fail(
      Code::kConflict,
      fmt::format("no volume of node {} is left for persistentvolumeclaim \"{}\"", node, name));
}

Task<Result<std::vector<std::string>>> Volumes::choose(ObjectPtr pod, std::string node) {
  std::vector<std::string> open;
  for (const auto& claim : claims_of(*pod)) {
    const ObjectPtr object =
        claims_->find(fmt::format("{}/{}", kube::namespace_of(*pod), claim.name));
    if (!object)
      co_return fail(Code::kNotFound,
                     fmt::format("persistentvolumeclaim \"{}\" not found", claim.name));
    if (is_bound(*object)) continue;
    const auto chosen = co_await choose_for(*object, node);
    if (!chosen) co_return fail(chosen.error());
    open.push_back(claim.name);
  }
  co_return open;
}

Task<Result<void>> Volumes::bound(std::string ns,
                                  std::vector<std::string> claims,
                                  std::string node,
                                  std::function<bool()> wanted) {
  const auto moved = moved_;
  const Duration end = env_.monotonic() + kBindTimeout;
  /// Whose node we have seen in the claim: only such a one can be given back.
  std::set<std::string> told;
  while (wanted()) {
    for (auto at = claims.begin(); at != claims.end();) {
      const ObjectPtr claim = claims_->find(fmt::format("{}/{}", ns, *at));
      if (!claim)
        co_return fail(Code::kNotFound, fmt::format("persistentvolumeclaim \"{}\" is gone", *at));
      const bool here = kube::annotation(*claim, kube::names::kubernetes::kSelectedNode) == node;
      if (here) told.insert(*at);
      if (is_bound(*claim)) {
        at = claims.erase(at);
        continue;
      }
      if (!here && told.contains(*at))
        co_return fail(
            Code::kConflict,
            fmt::format(
                "persistentvolumeclaim \"{}\" cannot be provisioned for node {}", *at, node));
      ++at;
    }
    if (claims.empty()) co_return Result<void>{};
    const Duration left = end - env_.monotonic();
    if (left <= Duration::zero())
      co_return fail(
          Code::kTimeout,
          fmt::format("persistentvolumeclaim \"{}\" was not bound in time", claims.front()));
    co_await moved->wait(std::min<Duration>(left, std::chrono::seconds(1)));
  }
  co_return fail(Code::kNotFound, "nobody waits for it any more");
}

}  // namespace muster::scheduler
