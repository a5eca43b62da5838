#include "engine/state/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/model/names.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {

bool devices_fit(const TaskClass& cls, const NodeState& node) {
  if (cls.devices > 0) {
    if (node.devices_whole < cls.devices) return false;
    if (cls.models.empty()) return true;
    std::int32_t n = 0;
    for (const auto& d : node.devices) n += d.open_milli() == 1000 && cls.allows(d) ? 1 : 0;
    return n >= cls.devices;
  }
  if (cls.share_milli > 0) {
    if (node.share_max < cls.share_milli) return false;
    if (cls.models.empty()) return true;
    return std::any_of(node.devices.begin(), node.devices.end(), [&](const auto& d) {
      return d.open_milli() >= cls.share_milli && cls.allows(d);
    });
  }
  return true;
}

bool ports_free(const State& state, const TaskClass& cls, const NodeState& node) {
  for (const auto& wanted : cls.spec.host_ports) {
    for (const PodId p : node.pods) {
      for (const auto& taken : state.cls_of(p).spec.host_ports) {
        if (ports_conflict(wanted, taken)) return false;
      }
    }
  }
  return true;
}

using Gone = std::set<PodId>;

bool counts_for_affinity(const State& state, PodId id, const Gone* gone) {
  const PodState& pod = state.pod(id);
  return pod.live && pod.node.valid() && pod.phase != PodPhase::kFinished &&
         (gone == nullptr || !gone->contains(id));
}

bool term_matches(const State& state, const PodTerm& term, const PodState& pod) {
  if (!term.selector || !matches(*term.selector, pod.labels)) return false;
  if (std::find(term.namespaces.begin(), term.namespaces.end(), pod.ns) != term.namespaces.end())
    return true;
  return term.namespace_selector &&
         matches(*term.namespace_selector, state.namespace_labels(pod.ns));
}

const std::string* domain_of(const NodeState& node, const std::string& key) {
  return find_label(node.spec->labels, key);
}

/// Some pod that the term selects runs in the node's domain.
bool domain_has(const State& state,
                const PodTerm& term,
                const std::string& value,
                const Gone* gone) {
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    const NodeState& node = state.node(NodeId(n));
    if (!node.live || node.pods.empty()) continue;
    const std::string* v = domain_of(node, term.topology_key);
    if (v == nullptr || *v != value) continue;
    for (const PodId p : node.pods) {
      if (counts_for_affinity(state, p, gone) && term_matches(state, term, state.pod(p)))
        return true;
    }
  }
  return false;
}

bool matched_anywhere(const State& state, const PodTerm& term, const Gone* gone) {
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    const NodeState& node = state.node(NodeId(n));
    if (!node.live || domain_of(node, term.topology_key) == nullptr) continue;
    for (const PodId p : node.pods) {
      if (counts_for_affinity(state, p, gone) && term_matches(state, term, state.pod(p)))
        return true;
    }
  }
  return false;
}

Misfit fit_affinity(const State& state,
                    const PodState& pod,
                    const TaskClass& cls,
                    const NodeState& node,
                    const Gone* gone) {
  for (const auto& term : cls.spec.pod_affinity) {
    const std::string* value = domain_of(node, term.topology_key);
    if (value == nullptr) return {Cause::kPodAffinity};
    if (domain_has(state, term, *value, gone)) continue;
    // The first pod of a series that wants its own kind may go anywhere.
    if (term_matches(state, term, pod) && !matched_anywhere(state, term, gone)) continue;
    return {Cause::kPodAffinity};
  }
  for (const auto& term : cls.spec.pod_anti_affinity) {
    const std::string* value = domain_of(node, term.topology_key);
    if (value != nullptr && domain_has(state, term, *value, gone)) return {Cause::kPodAntiAffinity};
  }
  for (const PodId other : state.anti_affinity_pods()) {
    const PodState& o = state.pod(other);
    if (!counts_for_affinity(state, other, gone) || o.key == pod.key) continue;
    for (const auto& term : state.cls(o.cls).spec.pod_anti_affinity) {
      if (!term_matches(state, term, pod)) continue;
      const std::string* here = domain_of(node, term.topology_key);
      const std::string* there = domain_of(state.node(o.node), term.topology_key);
      if (here != nullptr && there != nullptr && *here == *there)
        return {Cause::kExistingAntiAffinity};
    }
  }
  return {};
}

Misfit fit_spread(const State& state,
                  const PodState& pod,
                  const TaskClass& cls,
                  const NodeState& node,
                  const Gone* gone) {
  for (const auto& rule : cls.spec.topology_spread) {
    if (!rule.required) continue;
    const std::string* value = domain_of(node, rule.topology_key);
    if (value == nullptr) return {Cause::kSpreadLabel};
    std::map<std::string, std::int32_t> by_domain;
    for (std::uint32_t n = 0; n < state.node_count(); ++n) {
      const NodeState& other = state.node(NodeId(n));
      if (!other.live) continue;
      const std::string* v = domain_of(other, rule.topology_key);
      if (v == nullptr) continue;
      if (rule.honor_node_affinity) {
        const Misfit m = fit_static(state, cls, other);
        if (m.cause == Cause::kAffinity) continue;
      }
      if (rule.honor_taints &&
          find_untolerated(other.spec->taints, cls.spec.tolerations) != nullptr)
        continue;
      std::int32_t& count = by_domain[*v];
      for (const PodId p : other.pods) {
        const PodState& o = state.pod(p);
        if (!counts_for_affinity(state, p, gone) || o.phase == PodPhase::kReleasing ||
            o.ns != pod.ns)
          continue;
        if (rule.selector && matches(*rule.selector, o.labels)) ++count;
      }
    }
    std::int32_t least = by_domain.empty() ? 0 : by_domain.begin()->second;
    for (const auto& [_, count] : by_domain) least = std::min(least, count);
    if (static_cast<std::int32_t>(by_domain.size()) < rule.min_domains) least = 0;
    const std::int32_t self = rule.selector && matches(*rule.selector, pod.labels) ? 1 : 0;
    if (by_domain[*value] + self - least > rule.max_skew) return {Cause::kSpread};
  }
  return {};
}

}  // namespace

Misfit fit_static(const State& state, const TaskClass& cls, const NodeState& node) {
  (void)state;
  if (!node.live) return {Cause::kGone};
  if (!node.spec->ready) return {Cause::kNotReady};
  if (node.spec->unschedulable) {
    static const Taint kCordon{std::string(names::kUnschedulable), "", TaintEffect::kNoSchedule};
    const auto& t = cls.spec.tolerations;
    if (std::none_of(t.begin(), t.end(), [](const auto& x) { return tolerates(x, kCordon); }))
      return {Cause::kUnschedulable};
  }
  if (!node.spec->taints.empty() &&
      find_untolerated(node.spec->taints, cls.spec.tolerations) != nullptr)
    return {Cause::kTaint};
  for (const auto& [key, value] : cls.spec.node_selector) {
    const std::string* have = find_label(node.spec->labels, key);
    if (have == nullptr || *have != value) return {Cause::kAffinity};
  }
  if (!cls.spec.node_affinity.empty()) {
    const auto& terms = cls.spec.node_affinity;
    if (std::none_of(terms.begin(), terms.end(), [&](const auto& t) {
          return matches(t, node.spec->labels, node.spec->name);
        })) {
      return {Cause::kAffinity};
    }
  }
  if (cls.tenant_nodes && !matches(*cls.tenant_nodes, node.spec->labels)) return {Cause::kAffinity};
  if (cls.spec.allowed_nodes) {
    const auto& names = *cls.spec.allowed_nodes;
    if (std::find(names.begin(), names.end(), node.spec->name) == names.end())
      return {Cause::kAllowedNodes};
  }
  return {};
}

Misfit fit_room(const State& state, const TaskClass& cls, const NodeState& node) {
  if (cls.unknown_resource) return {Cause::kResource, ResourceNames::kNone};
  if (node.free[ResourceNames::kPods] < 1) return {Cause::kTooManyPods};
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    if (cls.request[i] > 0 && cls.request[i] > node.free[i]) return {Cause::kResource, i};
  }
  if (!devices_fit(cls, node)) return {Cause::kDevices, ResourceNames::kDevice};
  if (!cls.spec.host_ports.empty() && !ports_free(state, cls, node)) return {Cause::kPorts};
  return {};
}

Misfit fit_held(const State& state, PodId id) {
  const PodState& pod = state.pod(id);
  const TaskClass& cls = state.cls(pod.cls);
  const NodeState& node = state.node(pod.nominated);
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    if (cls.request[i] > 0 && cls.request[i] > node.allocatable[i] - node.used[i])
      return {Cause::kResource, i};
  }
  const auto there = [&](std::uint16_t i) {
    return node.devices[i].healthy && node.devices[i].free_milli >= cls.device_milli();
  };
  if (pod.devices.size() < cls.device_count() ||
      !std::all_of(pod.devices.begin(), pod.devices.end(), there)) {
    return {Cause::kDevices, ResourceNames::kDevice};
  }
  if (!cls.spec.host_ports.empty() && !ports_free(state, cls, node)) return {Cause::kPorts};
  return {};
}

bool needs_between(const State& state, PodId pod) {
  if (state.cls_of(pod).between_pods) return true;
  for (const PodId other : state.anti_affinity_pods()) {
    const PodState& o = state.pod(other);
    for (const auto& term : state.cls(o.cls).spec.pod_anti_affinity) {
      if (term_matches(state, term, state.pod(pod))) return true;
    }
  }
  return false;
}

Misfit fit_between(const State& state, PodId pod, NodeId node, const std::set<PodId>* gone) {
  const PodState& p = state.pod(pod);
  const TaskClass& cls = state.cls(p.cls);
  const Misfit affinity = fit_affinity(state, p, cls, state.node(node), gone);
  if (!affinity.ok()) return affinity;
  return fit_spread(state, p, cls, state.node(node), gone);
}

std::vector<PodId> repelled(const State& state, PodId pod, NodeId node) {
  const PodState& mine = state.pod(pod);
  const NodeState& here = state.node(node);
  const auto same_domain = [&](const NodeState& there, const std::string& key) {
    const std::string* x = domain_of(here, key);
    const std::string* y = there.live ? domain_of(there, key) : nullptr;
    return x != nullptr && y != nullptr && *x == *y;
  };
  std::set<PodId> out;
  for (const auto& term : state.cls(mine.cls).spec.pod_anti_affinity) {
    for (std::uint32_t n = 0; n < state.node_count(); ++n) {
      if (!same_domain(state.node(NodeId(n)), term.topology_key)) continue;
      for (const PodId p : state.node(NodeId(n)).pods) {
        if (p != pod && counts_for_affinity(state, p, nullptr) &&
            term_matches(state, term, state.pod(p)))
          out.insert(p);
      }
    }
  }
  for (const PodId p : state.anti_affinity_pods()) {
    if (p == pod || !counts_for_affinity(state, p, nullptr)) continue;
    for (const auto& term : state.cls_of(p).spec.pod_anti_affinity) {
      if (term_matches(state, term, mine) &&
          same_domain(state.node(state.pod(p).node), term.topology_key))
        out.insert(p);
    }
  }
  return {out.begin(), out.end()};
}

Misfit fit(const State& state, PodId pod, NodeId node) {
  const TaskClass& cls = state.cls_of(pod);
  Misfit m = fit_static(state, cls, state.node(node));
  if (m.ok()) m = fit_room(state, cls, state.node(node));
  if (m.ok() && needs_between(state, pod)) m = fit_between(state, pod, node);
  return m;
}

std::int32_t fit_count(const State& state,
                       const TaskClass& cls,
                       const NodeState& node,
                       std::int32_t limit) {
  if (!fit_static(state, cls, node).ok() || !fit_room(state, cls, node).ok()) return 0;
  if (!cls.spec.host_ports.empty()) return 1;
  std::int64_t n = limit;
  for (std::size_t i = 0; i < cls.request.size(); ++i) {
    if (cls.request[i] > 0) n = std::min(n, node.free[i] / cls.request[i]);
  }
  if (cls.devices > 0) n = std::min<std::int64_t>(n, node.devices_whole / cls.devices);
  if (cls.share_milli > 0) {
    std::int64_t shares = 0;
    for (const auto& d : node.devices)
      shares += cls.allows(d) ? std::max(d.open_milli(), 0) / cls.share_milli : 0;
    n = std::min(n, shares);
  }
  return static_cast<std::int32_t>(n);
}

std::string misfit_text(const State& state, ClassId cls, NodeId node, const Misfit& misfit) {
  switch (misfit.cause) {
    case Cause::kNone:
    case Cause::kGone:
      return "";
    case Cause::kNotReady:
      return fmt::format("node(s) had untolerated taint(s) {{{}: }}", names::kNotReady);
    case Cause::kUnschedulable:
      return "node(s) were unschedulable";
    case Cause::kTaint: {
      const Taint* t =
          find_untolerated(state.node(node).spec->taints, state.cls(cls).spec.tolerations);
      return t == nullptr
                 ? "node(s) had untolerated taint(s)"
                 : fmt::format("node(s) had untolerated taint {{{}: {}}}", t->key, t->value);
    }
    case Cause::kAffinity:
      return "node(s) didn't match Pod's node affinity/selector";
    case Cause::kAllowedNodes:
      return "node(s) had volume node affinity conflict";
    case Cause::kPorts:
      return "node(s) didn't have free ports for the requested pod ports";
    case Cause::kTooManyPods:
      return "Too many pods";
    case Cause::kResource:
    case Cause::kDevices:
      return misfit.resource == ResourceNames::kNone
                 ? "Insufficient resources of an unknown kind"
                 : "Insufficient " + state.names().name(misfit.resource);
    case Cause::kPodAffinity:
      return "node(s) didn't match pod affinity rules";
    case Cause::kPodAntiAffinity:
      return "node(s) didn't match pod anti-affinity rules";
    case Cause::kExistingAntiAffinity:
      return "node(s) didn't satisfy existing pods anti-affinity rules";
    case Cause::kSpread:
      return "node(s) didn't match pod topology spread constraints";
    case Cause::kSpreadLabel:
      return "node(s) didn't match pod topology spread constraints (missing required label)";
  }
  return "";
}

}  // namespace muster::engine
