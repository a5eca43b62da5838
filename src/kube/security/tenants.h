/// Which queues and virtual clusters an object wants to use, and what a queue says about who may.
/// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace muster::kube {

enum class TenantKind : std::uint8_t { kQueue, kT9kQueue, kVirtualCluster };

/// A queue or virtual cluster by its name; equal when both are.
struct TenantName {
  TenantKind kind = TenantKind::kQueue;
  std::string name;
  auto operator<=>(const TenantName&) const = default;
  /// `queue "gold"`, for people.
  [[nodiscard]] std::string text() const;
  /// What a role names: queues.scheduling.volcano.sh, virtualclusters.muster.dev.
  [[nodiscard]] std::string_view group() const;
  [[nodiscard]] std::string_view resource() const;
};

/// What is wanted by a pod, a PodGroup, or anything that becomes pods: in fields called `queue`, in
/// annotations and labels of the object and of its templates. Who names no queue wants "default".
/// A HiveD annotation that cannot be read wants the virtual cluster "", which nobody may use.
/// Sorted, each once.
std::vector<TenantName> tenants_of(const json::Value& object);
/// The same for a pod of a group: what it names itself, and what the group wants.
std::vector<TenantName> tenants_of_member(const json::Value& pod, const json::Value& group);

/// Key of the PodGroup that a pod belongs to: "ns/name", of Volcano's kind or, if `*t9k`, of T9k's.
/// Empty: none.
std::string group_of_pod(const json::Value& pod, bool* t9k);

/// What the annotation of a queue says about a namespace.
enum class Admits : std::uint8_t { kUnsaid, kYes, kNo };
Admits queue_admits(const json::Value& queue, std::string_view ns);

/// Why somebody may not: who, what, where, and what would help.
std::string refusal(const TenantName& tenant, std::string_view user, std::string_view ns);

}  // namespace muster::kube
