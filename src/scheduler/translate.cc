#include "scheduler/translate.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"
#include "engine/model/history.h"
#include "engine/model/names.h"
#include "hived/annotations.h"
#include "kube/framework.h"
#include "kube/kinds/pod.h"
#include "kube/kinds/t9k.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"
#include "kube/resources.h"

namespace muster::scheduler {
namespace {

// The rooms that may not include kube spell these names themselves.
static_assert(hived::kSchedulingSpec == kube::names::hived::kSchedulingSpec);
static_assert(hived::kSchedulingEnable == kube::names::hived::kSchedulingEnable);
static_assert(engine::names::kUnschedulable == kube::names::kubernetes::kUnschedulable);
static_assert(engine::names::kNotReady == kube::names::kubernetes::kNotReady);

using json::as_array;
using json::as_bool;
using json::as_int;
using json::as_object;
using json::as_string;
using json::at;
using json::text;

engine::Labels labels_of(const json::Value& object) {
  engine::Labels labels;
  for (const auto& member : as_object(object))
    labels.emplace_back(std::string(member.key()), text(member.value()));
  return labels;
}

engine::ResourceList resource_list(const kube::ResourceAmounts& amounts) {
  engine::ResourceList list;
  for (const auto& [name, value] : amounts) list.push_back({name, value});
  return list;
}

engine::Operator operator_of(std::string_view name) {
  if (name == "NotIn") return engine::Operator::kNotIn;
  if (name == "Exists") return engine::Operator::kExists;
  if (name == "DoesNotExist") return engine::Operator::kDoesNotExist;
  if (name == "Gt") return engine::Operator::kGt;
  if (name == "Lt") return engine::Operator::kLt;
  return engine::Operator::kIn;
}

std::vector<engine::Requirement> requirements(const json::Value& expressions) {
  std::vector<engine::Requirement> all;
  for (const json::Value& expression : as_array(expressions)) {
    engine::Requirement requirement;
    requirement.key = text(at(expression, "key"));
    requirement.op = operator_of(json::string_at(expression, "operator"));
    for (const json::Value& value : json::array_at(expression, "values"))
      requirement.values.push_back(text(value));
    all.push_back(std::move(requirement));
  }
  return all;
}

/// Absent for a null selector, which matches nothing.
std::optional<engine::Selector> selector_of(const json::Value& selector) {
  if (!selector.is_object()) return std::nullopt;
  engine::Selector out;
  for (const auto& member : json::object_at(selector, "matchLabels")) {
    out.all.push_back({std::string(member.key()), engine::Operator::kIn, {text(member.value())}});
  }
  for (engine::Requirement& requirement : requirements(at(selector, "matchExpressions")))
    out.all.push_back(std::move(requirement));
  return out;
}

engine::NodeTerm node_term(const json::Value& term) {
  return {requirements(at(term, "matchExpressions")), requirements(at(term, "matchFields"))};
}

engine::TaintEffect effect_of(std::string_view name) {
  if (name == "NoExecute") return engine::TaintEffect::kNoExecute;
  if (name == "PreferNoSchedule") return engine::TaintEffect::kPreferNoSchedule;
  return engine::TaintEffect::kNoSchedule;
}

engine::PodTerm pod_term(const json::Value& term, const json::Value& pod, std::int32_t weight) {
  engine::PodTerm out;
  out.weight = weight;
  out.selector = selector_of(at(term, "labelSelector"));
  // matchLabelKeys narrow the selector to the incoming pod's own values.
  if (out.selector) {
    for (const json::Value& key : json::array_at(term, "matchLabelKeys")) {
      const std::string_view value = kube::label(pod, as_string(key));
      if (!value.empty())
        out.selector->all.push_back({text(key), engine::Operator::kIn, {std::string(value)}});
    }
    for (const json::Value& key : json::array_at(term, "mismatchLabelKeys")) {
      const std::string_view value = kube::label(pod, as_string(key));
      if (!value.empty())
        out.selector->all.push_back({text(key), engine::Operator::kNotIn, {std::string(value)}});
    }
  }
  for (const json::Value& ns : json::array_at(term, "namespaces"))
    out.namespaces.push_back(text(ns));
  out.namespace_selector = selector_of(at(term, "namespaceSelector"));
  if (out.namespaces.empty() && !out.namespace_selector)
    out.namespaces.emplace_back(kube::namespace_of(pod));
  out.topology_key = text(at(term, "topologyKey"));
  return out;
}

void pod_terms(const json::Value& affinity,
               const json::Value& pod,
               std::vector<engine::PodTerm>& required,
               std::vector<engine::PodTerm>& preferred) {
  for (const json::Value& term :
       json::array_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution")) {
    required.push_back(pod_term(term, pod, 0));
  }
  for (const json::Value& term :
       json::array_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution")) {
    preferred.push_back(pod_term(at(term, "podAffinityTerm"),
                                 pod,
                                 static_cast<std::int32_t>(as_int(at(term, "weight"), 1))));
  }
}

void affinity_of(const json::Value& pod, engine::Pod& out) {
  const json::Value& affinity = at(pod, "spec", "affinity");
  const json::Value& node = at(affinity, "nodeAffinity");
  for (const json::Value& term : json::array_at(
           node, "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")) {
    out.node_affinity.push_back(node_term(term));
  }
  for (const json::Value& term :
       json::array_at(node, "preferredDuringSchedulingIgnoredDuringExecution")) {
    out.preferred_node_affinity.push_back(
        {node_term(at(term, "preference")),
         static_cast<std::int32_t>(as_int(at(term, "weight"), 1))});
  }
  pod_terms(at(affinity, "podAffinity"), pod, out.pod_affinity, out.preferred_pod_affinity);
  pod_terms(
      at(affinity, "podAntiAffinity"), pod, out.pod_anti_affinity, out.preferred_pod_anti_affinity);
}

void spread_of(const json::Value& pod, engine::Pod& out) {
  for (const json::Value& constraint : json::array_at(pod, "spec", "topologySpreadConstraints")) {
    engine::TopologySpread spread;
    spread.max_skew = static_cast<std::int32_t>(as_int(at(constraint, "maxSkew"), 1));
    spread.topology_key = text(at(constraint, "topologyKey"));
    spread.required =
        as_string(at(constraint, "whenUnsatisfiable"), "DoNotSchedule") == "DoNotSchedule";
    spread.selector = selector_of(at(constraint, "labelSelector"));
    if (spread.selector) {
      for (const json::Value& key : json::array_at(constraint, "matchLabelKeys")) {
        const std::string_view value = kube::label(pod, as_string(key));
        if (!value.empty())
          spread.selector->all.push_back({text(key), engine::Operator::kIn, {std::string(value)}});
      }
    }
    spread.min_domains = static_cast<std::int32_t>(as_int(at(constraint, "minDomains"), 1));
    spread.honor_node_affinity =
        as_string(at(constraint, "nodeAffinityPolicy"), "Honor") == "Honor";
    spread.honor_taints = as_string(at(constraint, "nodeTaintsPolicy"), "Ignore") == "Honor";
    out.topology_spread.push_back(std::move(spread));
  }
}

void tolerations_of(const json::Value& pod, engine::Pod& out) {
  for (const json::Value& toleration : json::array_at(pod, "spec", "tolerations")) {
    engine::Toleration one;
    one.key = text(at(toleration, "key"));
    one.value = text(at(toleration, "value"));
    one.exists = json::string_at(toleration, "operator") == "Exists";
    const std::string_view effect = json::string_at(toleration, "effect");
    if (!effect.empty()) one.effect = effect_of(effect);
    out.tolerations.push_back(std::move(one));
  }
}

void host_ports_of(const json::Value& pod, engine::Pod& out) {
  const bool host_network = json::bool_at(pod, "spec", "hostNetwork");
  const auto collect = [&](const json::Value& containers, bool sidecars_only) {
    for (const json::Value& container : as_array(containers)) {
      if (sidecars_only && json::string_at(container, "restartPolicy") != "Always") continue;
      for (const json::Value& port : json::array_at(container, "ports")) {
        auto number = json::int_at(port, "hostPort");
        if (number == 0 && host_network) number = json::int_at(port, "containerPort");
        if (number == 0) continue;
        out.host_ports.push_back({text(at(port, "hostIP")),
                                  std::string(as_string(at(port, "protocol"), "TCP")),
                                  static_cast<std::int32_t>(number)});
      }
    }
  };
  collect(at(pod, "spec", "containers"), false);
  collect(at(pod, "spec", "initContainers"), true);
}

Duration expected_duration(const json::Value& object) {
  const std::string_view annotated = kube::annotation(object, kube::names::kExpectedDuration);
  if (annotated.empty()) return Duration{};
  const auto parsed = parse_duration(annotated);
  return parsed && parsed->count() > 0 ? *parsed : Duration{};
}

/// Whose pod it is: as labels and annotations of its kind say, else its namespace's. Its name is that
/// of its workload, as far as the pod knows it.
std::shared_ptr<const engine::Origin> origin_of(const json::Value& pod) {
  auto origin = std::make_shared<engine::Origin>();
  for (const json::Value* where :
       {&at(pod, "metadata", "annotations"), &at(pod, "metadata", "labels")}) {
    for (const std::string_view key : {kube::names::pai::kUserName,
                                       kube::names::portal::kSubmittedBy,
                                       kube::names::kubeflow::kArenaUsername,
                                       std::string_view("user")}) {
      if (origin->user.empty()) origin->user = json::string_at(*where, key);
    }
  }
  if (origin->user.empty()) origin->user = kube::namespace_of(pod);
  const auto& owners = json::array_at(pod, "metadata", "ownerReferences");
  origin->stem =
      engine::stem_of(owners.empty() ? kube::name_of(pod) : json::string_at(owners[0], "name"));
  return origin;
}

/// A requeued job keeps the place of its first submission.
Time submitted(const json::Value& object) {
  for (const std::string_view key : {kube::names::kSubmittedAt, kube::names::kSubmitted}) {
    const std::string_view annotated = kube::annotation(object, key);
    if (annotated.empty()) continue;
    const auto parsed = parse_time(annotated);
    if (parsed) return *parsed;
  }
  return kube::creation_time(object);
}

std::vector<std::int32_t> indices(std::string_view list) {
  std::vector<std::int32_t> out;
  for (const std::string& part : split_nonempty(list, ',')) {
    if (const auto index = parse_int(trim(part))) out.push_back(static_cast<std::int32_t>(*index));
  }
  return out;
}

/// The running container states' earliest start, or status.startTime.
Time started(const json::Value& pod) {
  const auto parsed = parse_time(json::string_at(pod, "status", "startTime"));
  return parsed ? *parsed : Time{};
}

/// T9k's queues live beside Volcano's and may share names with them.
std::string t9k_queue(std::string_view name) { return "t9k:" + std::string(name); }

std::int32_t priority_of_class(const json::Value& spec, const TranslateOptions& options) {
  if (at(spec, "priority").is_number())
    return static_cast<std::int32_t>(json::int_at(spec, "priority"));
  if (!options.priority_of) return 0;
  return options.priority_of(json::string_at(spec, "priorityClassName")).first;
}

}  // namespace

std::string group_key(GroupKind kind, std::string_view ns, std::string_view name) {
  static constexpr std::string_view kPrefix[] = {
      "volcano", "native", "composite", "plugins", "t9k"};
  return std::string(kPrefix[static_cast<int>(kind)]) + ":" + std::string(ns) + "/" +
         std::string(name);
}

GroupKind group_kind_of(const json::Value& group) {
  const std::string_view version = json::string_at(group, "apiVersion");
  const auto is = [&](const kube::Resource& resource) { return version == resource.api_version(); };
  if (is(kube::resources::kNativePodGroups))
    return json::string_at(group, "kind") == kube::resources::kNativePodGroups.kind
               ? GroupKind::kNative
               : GroupKind::kComposite;
  if (is(kube::resources::kSchedulerPluginsPodGroups)) return GroupKind::kPlugins;
  return is(kube::resources::kT9kPodGroups) ? GroupKind::kT9k : GroupKind::kVolcano;
}

bool says_priority(GroupKind kind, const json::Value& group) {
  const json::Value& spec = at(group, "spec");
  return kind == GroupKind::kT9k || at(spec, "priority").is_number() ||
         !json::string_at(spec, "priorityClassName").empty();
}

std::string group_key_of_pod(const json::Value& pod) {
  const std::string_view ns = kube::namespace_of(pod);
  if (const std::string_view native =
          json::string_at(pod, "spec", "schedulingGroup", "podGroupName");
      !native.empty()) {
    return group_key(GroupKind::kNative, ns, native);
  }
  for (const std::string_view key :
       {kube::names::volcano::kGroupName, kube::names::volcano::kNewGroupName}) {
    if (const std::string_view name = kube::annotation(pod, key); !name.empty())
      return group_key(GroupKind::kVolcano, ns, name);
  }
  for (const std::string_view key :
       {kube::names::plugins::kPodGroup, kube::names::plugins::kOldPodGroup}) {
    if (const std::string_view name = kube::label(pod, key); !name.empty())
      return group_key(GroupKind::kPlugins, ns, name);
  }
  if (const std::string_view name = kube::label(pod, kube::names::t9k::kGroupName); !name.empty()) {
    return group_key(GroupKind::kT9k, ns, name);
  }
  return {};
}

bool is_ours(const json::Value& pod, const TranslateOptions& options) {
  if (options.scheduler_names.empty()) return true;
  return options.scheduler_names.contains(
      as_string(at(pod, "spec", "schedulerName"), "default-scheduler"));
}

engine::Node translate_node(const json::Value& node, const TranslateOptions& options) {
  engine::Node out;
  out.name = std::string(kube::name_of(node));
  out.labels = labels_of(at(node, "metadata", "labels"));
  for (const json::Value& taint : json::array_at(node, "spec", "taints")) {
    out.taints.push_back({text(at(taint, "key")),
                          text(at(taint, "value")),
                          effect_of(json::string_at(taint, "effect"))});
  }
  out.unschedulable = json::bool_at(node, "spec", "unschedulable");
  // A node without a Ready condition was made by hand and counts as ready, as for kube-scheduler,
  // which reads taints only.
  const json::Value& ready = kube::condition(node, "Ready");
  out.ready = ready.is_null() || json::string_at(ready, "status") == "True";
  const json::Value& allocatable = at(node, "status", "allocatable");
  const kube::ResourceAmounts amounts = kube::resource_amounts(
      allocatable.is_object() ? allocatable : at(node, "status", "capacity"));
  out.allocatable = resource_list(amounts);

  const std::string model(kube::label(node, "nvidia.com/gpu.product"));
  const std::vector<std::int32_t> unhealthy =
      indices(kube::annotation(node, kube::names::kGpuUnhealthy));
  const auto devices = amounts.find(options.device_resource);
  if (devices != amounts.end() && (!model.empty() || !unhealthy.empty())) {
    // Allocatable counts healthy devices; indices run over all of them.
    const auto count =
        static_cast<std::int32_t>(devices->second) + static_cast<std::int32_t>(unhealthy.size());
    for (std::int32_t i = 0; i < count; ++i) {
      const bool healthy = std::find(unhealthy.begin(), unhealthy.end(), i) == unhealthy.end();
      out.devices.push_back({i, model, healthy});
    }
  }
  return out;
}

engine::Pod translate_pod(const json::Value& pod, const TranslateOptions& options) {
  engine::Pod out;
  out.ns = std::string(kube::namespace_of(pod));
  out.key = out.ns + "/" + std::string(kube::name_of(pod));
  out.uid = std::string(kube::uid_of(pod));
  out.labels = labels_of(at(pod, "metadata", "labels"));
  out.group = group_key_of_pod(pod);
  for (const std::string_view key : {kube::names::volcano::kTaskSpec,
                                     kube::names::kubeflow::kReplicaType,
                                     kube::names::t9k::kRole}) {
    if (out.role.empty()) out.role = std::string(kube::annotation(pod, key));
    if (out.role.empty()) out.role = std::string(kube::label(pod, key));
  }
  out.queue = std::string(kube::annotation(pod, kube::names::volcano::kQueueName));
  if (const std::string_view t9k = kube::label(pod, kube::names::t9k::kQueue); !t9k.empty())
    out.queue = t9k_queue(t9k);

  out.priority = priority_of_class(at(pod, "spec"), options);
  if (json::string_at(pod, "spec", "preemptionPolicy") == "Never")
    out.preemption_policy = engine::PreemptionPolicy::kNever;
  std::string_view preemptable = kube::annotation(pod, kube::names::volcano::kPreemptable);
  if (preemptable.empty()) preemptable = kube::label(pod, kube::names::volcano::kPreemptable);
  out.preemptable = preemptable.empty() || preemptable == "true";
  const std::string_view priority_class = json::string_at(pod, "spec", "priorityClassName");
  out.critical = out.ns == "kube-system" || priority_class == "system-cluster-critical" ||
                 priority_class == "system-node-critical";

  out.requests = resource_list(kube::pod_requests(pod));
  if (const auto share = parse_int(kube::annotation(pod, kube::names::kGpuMilli));
      share && *share > 0 && *share < 1000) {
    out.device_share_milli = static_cast<std::int32_t>(*share);
    std::erase_if(out.requests, [&](const engine::Amount& amount) {
      return amount.name == options.device_resource;
    });
  }
  out.device_models = split_nonempty(kube::annotation(pod, kube::names::kGpuModel), ',');

  out.node_selector = labels_of(at(pod, "spec", "nodeSelector"));
  affinity_of(pod, out);
  spread_of(pod, out);
  tolerations_of(pod, out);
  host_ports_of(pod, out);

  out.gated = !json::array_at(pod, "spec", "schedulingGates").empty();
  out.ours = is_ours(pod, options);
  out.node = text(at(pod, "spec", "nodeName"));
  out.device_indexes = indices(kube::annotation(pod, kube::names::kGpuIndices));
  // Pods that HiveD bound before Muster took the cluster over say it in HiveD's words.
  if (out.device_indexes.empty())
    out.device_indexes = indices(kube::annotation(pod, hived::kLeafCellIsolation));
  out.nominated_node = text(at(pod, "status", "nominatedNodeName"));
  out.terminating = kube::is_deleting(pod);
  if (out.terminating) out.terminating_until = kube::deletion_time(pod);
  const std::string_view phase = json::string_at(pod, "status", "phase");
  out.finished = phase == "Succeeded" || phase == "Failed";
  out.succeeded = phase == "Succeeded";
  out.created = submitted(pod);
  out.started = started(pod);
  out.expected_duration = expected_duration(pod);
  out.limit = std::chrono::seconds(json::int_at(pod, "spec", "activeDeadlineSeconds"));
  out.origin = origin_of(pod);
  return out;
}

engine::Group translate_group(GroupKind kind,
                              const json::Value& group,
                              const TranslateOptions& options) {
  engine::Group out;
  const json::Value& spec = at(group, "spec");
  out.key = group_key(kind, kube::namespace_of(group), kube::name_of(group));
  out.created = submitted(group);
  out.expected_duration = expected_duration(group);
  out.priority = priority_of_class(spec, options);
  if (json::string_at(spec, "preemptionPolicy") == "Never")
    out.preemption_policy = engine::PreemptionPolicy::kNever;

  if (kind == GroupKind::kNative || kind == GroupKind::kComposite) {
    const json::Value& gang = at(spec, "schedulingPolicy", "gang");
    out.disruption = at(spec, "disruptionMode", "all").is_object()
                         ? engine::DisruptionMode::kWhole
                         : engine::DisruptionMode::kSingle;
    for (const json::Value& level : json::array_at(spec, "schedulingConstraints", "topology"))
      out.topology.push_back({text(at(level, "key")), true});
    const std::string_view parent = json::string_at(spec, "parentCompositePodGroupName");
    if (!parent.empty())
      out.parent = group_key(GroupKind::kComposite, kube::namespace_of(group), parent);
    if (kind == GroupKind::kComposite) {
      out.is_parent = true;
      out.min_groups = static_cast<std::int32_t>(as_int(at(gang, "minGroupCount"), 1));
    } else {
      out.min_member = static_cast<std::int32_t>(as_int(at(gang, "minCount"), 1));
    }
    out.admitted = true;
    return out;
  }

  out.queue = text(at(spec, "queue"));
  out.min_member = static_cast<std::int32_t>(as_int(at(spec, "minMember"), 1));
  for (const auto& member : json::object_at(spec, "minTaskMember")) {
    out.min_task_member.emplace_back(std::string(member.key()),
                                     static_cast<std::int32_t>(as_int(member.value())));
  }
  if (kind == GroupKind::kVolcano && options.topology_of)
    out.topology = options.topology_of(at(spec, "networkTopology"));
  if (at(spec, "minResources").is_object())
    out.min_resources = resource_list(kube::resource_amounts(at(spec, "minResources")));
  std::string_view waiting = kube::annotation(group, kube::names::volcano::kSlaWaitingTime);
  if (waiting.empty()) waiting = kube::annotation(group, "sla-waiting-time");
  if (!waiting.empty()) {
    const auto parsed = parse_duration(waiting);
    if (parsed) out.sla_waiting_time = *parsed;
  }
  const std::string_view phase = json::string_at(group, "status", "phase");
  out.admitted = !phase.empty() && phase != "Pending";
  if (kind == GroupKind::kT9k) {
    out.queue = t9k_queue(as_string(at(spec, "queue"), "default"));
    out.priority = static_cast<std::int32_t>(json::int_at(spec, "priority"));
    for (const json::Value& role : json::array_at(spec, "roles")) {
      out.min_task_member.emplace_back(text(at(role, "name")),
                                       static_cast<std::int32_t>(json::int_at(role, "minMember")));
    }
  }
  return out;
}

engine::Queue translate_queue(const json::Value& queue, const TranslateOptions& options) {
  engine::Queue out;
  out.backfill = options.backfill;
  const json::Value& spec = at(queue, "spec");
  out.name = std::string(kube::name_of(queue));
  out.parent = text(at(spec, "parent"));
  if (out.parent == "root") out.parent.clear();
  out.weight = static_cast<std::int32_t>(as_int(at(spec, "weight"), 1));
  out.priority = static_cast<std::int32_t>(json::int_at(spec, "priority"));
  out.reclaimable = as_bool(at(spec, "reclaimable"), true);
  const std::string_view state = json::string_at(queue, "status", "state");
  out.state = state == "Closed"    ? engine::QueueState::kClosed
              : state == "Closing" ? engine::QueueState::kClosing
                                   : engine::QueueState::kOpen;
  out.capability = resource_list(kube::resource_amounts(at(spec, "capability")));
  out.guarantee = resource_list(kube::resource_amounts(at(spec, "guarantee", "resource")));
  out.deserved = resource_list(kube::resource_amounts(at(spec, "deserved")));
  out.hierarchy = std::string(kube::annotation(queue, kube::names::volcano::kHierarchy));
  out.hierarchy_weights =
      std::string(kube::annotation(queue, kube::names::volcano::kHierarchyWeights));
  // Volcano names a strategy that its scheduler never honoured; here fifo means it.
  // muster.dev/backfill asks for the rest.
  const std::string_view mode = kube::annotation(queue, kube::names::kBackfill);
  if (mode == "reservation") out.backfill = engine::BackfillMode::kReservation;
  if (mode == "skip") out.backfill = engine::BackfillMode::kSkip;
  if (mode == "fifo" || json::string_at(spec, "dequeueStrategy") == "fifo")
    out.backfill = engine::BackfillMode::kFifo;
  out.virtual_cluster = std::string(kube::annotation(queue, kube::names::kVirtualCluster));
  return out;
}

engine::Queue translate_t9k_queue(const json::Value& queue, const TranslateOptions& options) {
  engine::Queue out;
  out.backfill = options.backfill;
  const json::Value& spec = at(queue, "spec");
  out.name = t9k_queue(kube::name_of(queue));
  out.t9k = true;
  out.priority = static_cast<std::int32_t>(json::int_at(spec, "priority"));
  out.preemptible = as_bool(at(spec, "preemptible"), true);
  out.state =
      json::bool_at(spec, "closed") ? engine::QueueState::kClosed : engine::QueueState::kOpen;
  out.capability = resource_list(kube::resource_amounts(at(spec, "quota", "requests")));
  out.max_duration = kube::t9k_duration(json::string_at(spec, "maxDuration"));
  out.node_selector = selector_of(at(spec, "nodeSelector"));
  return out;
}

engine::DisruptionBudget translate_budget(const json::Value& budget) {
  engine::DisruptionBudget out;
  out.ns = std::string(kube::namespace_of(budget));
  out.key = out.ns + "/" + std::string(kube::name_of(budget));
  out.selector = selector_of(at(budget, "spec", "selector"));
  out.disruptions_allowed =
      static_cast<std::int32_t>(json::int_at(budget, "status", "disruptionsAllowed"));
  return out;
}

engine::Namespace translate_namespace(const json::Value& ns) {
  return {std::string(kube::name_of(ns)), labels_of(at(ns, "metadata", "labels"))};
}

std::vector<engine::NodeTerm> node_terms(const json::Value& terms) {
  std::vector<engine::NodeTerm> out;
  for (const json::Value& term : as_array(terms)) out.push_back(node_term(term));
  return out;
}

bool node_matches(const json::Value& node, const json::Value& terms) {
  if (as_array(terms).empty()) return true;
  const auto& labels = at(node, "metadata", "labels");
  const auto holds = [](const engine::Requirement& requirement, const json::Value& value) {
    const bool listed =
        value.is_string() &&
        std::find(requirement.values.begin(), requirement.values.end(), as_string(value)) !=
            requirement.values.end();
    switch (requirement.op) {
      case engine::Operator::kIn:
        return listed;
      case engine::Operator::kNotIn:
        return !listed;
      case engine::Operator::kExists:
        return value.is_string();
      case engine::Operator::kDoesNotExist:
        return !value.is_string();
      case engine::Operator::kGt:
      case engine::Operator::kLt: {
        const auto number = parse_int(as_string(value)),
                   bound = requirement.values.empty() ? std::nullopt
                                                      : parse_int(requirement.values.front());
        return number && bound &&
               (requirement.op == engine::Operator::kGt ? *number > *bound : *number < *bound);
      }
    }
    return false;
  };
  for (const engine::NodeTerm& term : node_terms(terms)) {
    const bool labelled = std::all_of(term.labels.begin(), term.labels.end(), [&](const auto& one) {
      return holds(one, at(labels, one.key));
    });
    const bool named = std::all_of(term.fields.begin(), term.fields.end(), [&](const auto& one) {
      return holds(one, at(node, "metadata", "name"));
    });
    if (labelled && named && !(term.labels.empty() && term.fields.empty())) return true;
  }
  return false;
}

std::string unsupported(const json::Value& pod) {
  if (!json::array_at(pod, "spec", "resourceClaims").empty()) {
    return "pod uses spec.resourceClaims (dynamic resource allocation), which Muster does not allocate: ask for the extended resource, such as "
           "nvidia.com/gpu, instead, or name another scheduler in spec.schedulerName";
  }
  return {};
}

}  // namespace muster::scheduler
