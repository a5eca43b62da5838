#include "kube/security/tenants.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/security/names.h"

namespace muster::kube {
namespace {

constexpr int kDepthMax = 32;

/// Finds names in one object.
class Search {
 public:
  explicit Search(bool t9k) : queue_(t9k ? TenantKind::kT9kQueue : TenantKind::kQueue) {}

  void object(const json::Value& value, int depth) {
    if (depth > kDepthMax) return;
    if (const json::Array* array = value.if_array()) {
      for (const json::Value& item : *array) object(item, depth + 1);
      return;
    }
    if (!value.is_object()) return;
    for (const auto& member : value.get_object()) {
      const std::string_view key = member.key();
      if (key == "metadata")
        marks(value);
      else if (key == "queue" && member.value().is_string())
        add(queue_, member.value());
      else if (!leaf(key))
        object(member.value(), depth + 1);
    }
  }

  /// Who names neither a queue nor cells wants the queue "default".
  std::set<TenantName> take() {
    if (found_.empty()) add(queue_, json::Value("default"));
    return std::move(found_);
  }
  std::set<TenantName> named() { return std::move(found_); }

 private:
  /// What containers and volumes hold is their own business.
  static bool leaf(std::string_view key) {
    return key == "containers" || key == "initContainers" || key == "ephemeralContainers" ||
           key == "volumes" || key == "volumeClaimTemplates" || key == "status";
  }

  void add(TenantKind kind, const json::Value& name) {
    if (!json::as_string(name).empty()) found_.insert({kind, json::text(name)});
  }

  void marks(const json::Value& owner) {
    for (const std::string_view key : {names::volcano::kQueueName, names::volcano::kJobQueue})
      add(TenantKind::kQueue, json::at(owner, "metadata", "annotations", key));
    add(TenantKind::kT9kQueue, json::at(owner, "metadata", "labels", names::t9k::kQueue));
    const std::string_view cells = annotation(owner, names::hived::kSchedulingSpec);
    if (cells.empty()) return;
    // A key that is there twice is an error, so that nobody reads another one than HiveD's reader.
    const auto spec = json::parse_yaml_one(cells);
    found_.insert({TenantKind::kVirtualCluster,
                   spec ? json::text_at(*spec, "virtualCluster") : std::string()});
  }

  const TenantKind queue_;
  std::set<TenantName> found_;
};

bool is_t9k(const json::Value& object) {
  const std::string_view version = json::string_at(object, "apiVersion");
  return version.substr(0, version.find('/')).ends_with(kT9kDomain);
}

}  // namespace

std::string TenantName::text() const {
  switch (kind) {
    case TenantKind::kQueue:
      return "queue " + quoted(name);
    case TenantKind::kT9kQueue:
      return "T9k queue " + quoted(name);
    case TenantKind::kVirtualCluster:
      return "virtual cluster " + quoted(name);
  }
  return "";
}

std::string_view TenantName::group() const {
  switch (kind) {
    case TenantKind::kQueue:
      return groups::kVolcanoScheduling;
    case TenantKind::kT9kQueue:
      return groups::kT9kScheduling;
    case TenantKind::kVirtualCluster:
      return names::access::kVirtualClusterGroup;
  }
  return "";
}

std::string_view TenantName::resource() const {
  return kind == TenantKind::kVirtualCluster ? names::access::kVirtualClusters : "queues";
}

std::vector<TenantName> tenants_of(const json::Value& object) {
  Search search(is_t9k(object));
  search.object(object, 0);
  const auto found = search.take();
  return {found.begin(), found.end()};
}

std::vector<TenantName> tenants_of_member(const json::Value& pod, const json::Value& group) {
  Search search(false);
  search.object(pod, 0);
  std::set<TenantName> all = search.named();
  const auto wanted = tenants_of(group);
  all.insert(wanted.begin(), wanted.end());
  return {all.begin(), all.end()};
}

std::string group_of_pod(const json::Value& pod, bool* t9k) {
  *t9k = false;
  std::string_view name;
  for (const std::string_view key : {names::volcano::kGroupName, names::volcano::kNewGroupName}) {
    if (name.empty()) name = annotation(pod, key);
  }
  for (const std::string_view found :
       {label(pod, names::t9k::kGroupName), annotation(pod, names::t9k::kGroupName)}) {
    if (!name.empty() || found.empty()) continue;
    name = found;
    *t9k = true;
  }
  return name.empty() ? "" : std::string(namespace_of(pod)) + "/" + std::string(name);
}

Admits queue_admits(const json::Value& queue, std::string_view ns) {
  const json::Value& said =
      json::at(queue, "metadata", "annotations", names::access::kAllowedNamespaces);
  if (!said.is_string()) return Admits::kUnsaid;
  for (const std::string& each : split(json::as_string(said), ',')) {
    if (trim(each) == "*" || trim(each) == ns) return Admits::kYes;
  }
  return Admits::kNo;
}

std::string refusal(const TenantName& tenant, std::string_view user, std::string_view ns) {
  const std::string what =
      fmt::format("user {} may not use {} in namespace {}: ask for the verb \"use\" on {}.{} {}",
                  quoted(user),
                  tenant.text(),
                  quoted(ns),
                  tenant.resource(),
                  tenant.group(),
                  quoted(tenant.name));
  if (tenant.kind == TenantKind::kVirtualCluster) return what;
  return fmt::format("{}, or for the namespace in the queue's annotation {}",
                     what,
                     quoted(names::access::kAllowedNamespaces));
}

}  // namespace muster::kube
