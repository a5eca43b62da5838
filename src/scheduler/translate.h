/// Kubernetes objects as engine values. Pure; tolerant of odd objects: what cannot be understood
/// counts as absent, because the API server has validated what matters.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/model/model.h"
#include "json/json.h"

namespace muster::scheduler {

struct TranslateOptions {
  std::string device_resource = "nvidia.com/gpu";
  /// Scheduler names whose pods are ours to place. Empty: every pod.
  std::set<std::string, std::less<>> scheduler_names;
  /// Value of a PriorityClass; the second is false when it does not exist. "" asks for the global
  /// default.
  std::function<std::pair<std::int32_t, bool>(std::string_view)> priority_of;
  /// spec.networkTopology of a Volcano group as levels; absent: the cluster has no HyperNodes.
  std::function<std::vector<engine::TopologyLevel>(const json::Value&)> topology_of;
  /// Of queues that do not say it themselves.
  engine::BackfillMode backfill = engine::BackfillMode::kReservation;
};

/// Keys of gangs tell the kinds of group apart: a Volcano and a native PodGroup may share a name.
enum class GroupKind { kVolcano, kNative, kComposite, kPlugins, kT9k };
std::string group_key(GroupKind kind, std::string_view ns, std::string_view name);
/// Of a PodGroup, by its apiVersion.
GroupKind group_kind_of(const json::Value& group);
/// False: it is as important as its pods.
bool says_priority(GroupKind kind, const json::Value& group);
/// The gang that a pod names, or empty.
std::string group_key_of_pod(const json::Value& pod);

bool is_ours(const json::Value& pod, const TranslateOptions& options);
engine::Node translate_node(const json::Value& node, const TranslateOptions& options);
engine::Pod translate_pod(const json::Value& pod, const TranslateOptions& options);
engine::Group translate_group(GroupKind kind,
                              const json::Value& group,
                              const TranslateOptions& options);
engine::Queue translate_queue(const json::Value& queue, const TranslateOptions& options);
engine::Queue translate_t9k_queue(const json::Value& queue, const TranslateOptions& options);
engine::DisruptionBudget translate_budget(const json::Value& budget);
engine::Namespace translate_namespace(const json::Value& ns);
/// nodeSelectorTerms, as pods and volumes carry them: any one of them must hold. Empty: any node.
std::vector<engine::NodeTerm> node_terms(const json::Value& terms);
bool node_matches(const json::Value& node, const json::Value& terms);

/// A reason why this pod can never be ours to place yet (unsupported features), or empty.
std::string unsupported(const json::Value& pod);

}  // namespace muster::scheduler
