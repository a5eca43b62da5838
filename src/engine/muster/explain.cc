// Why something waits, with numbers.
#include <algorithm>

#include "engine/muster/planner.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

namespace {

constexpr std::size_t kAheadShown = 3;

/// Could the node take the pod if others left it?
bool eviction_may_help(Cause cause) {
  switch (cause) {
    case Cause::kPorts:
    case Cause::kTooManyPods:
    case Cause::kResource:
    case Cause::kDevices:
    case Cause::kPodAntiAffinity:
    case Cause::kExistingAntiAffinity:
    case Cause::kSpread:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Planner::refuse(GangId id, Refusal refusal) {
  GangWait& wait = waits_[id.index()];
  if (wait.told && wait.refusal.same_story(refusal)) return;
  wait.refusal = std::move(refusal);
  wait.told = false;
  untold_.push_back(id);
}

void Planner::tell(GangId id) {
  GangWait& wait = waits_[id.index()];
  const GangState& gang = state_.gang(id);
  if (wait.told || !gang.live || gang.pending == 0 || wait.refusal.reason == Reason::kNone) return;
  wait.told = true;
  wait.told_group = gang.has_group || gang.spec.key.empty() ? gang.key : "";
  wait.told_pod = wait.told_group.empty() ? gang.key : "";
  add_ahead(id, wait.refusal);
  plan_.waits.push_back({wait.told_group, wait.told_pod, wait.refusal});
}

void Planner::add_ahead(GangId id, Refusal& refusal) {
  const GangWait& wait = waits_[id.index()];
  refusal.ahead.clear();
  refusal.ahead_count = 0;
  for (const Hold& hold : holds_) {
    if (hold.live && hold.gang == id && hold.start) refusal.expected_start = hold.start;
  }
  if (!wait.listed) return;
  std::vector<std::pair<Rank, GangId>> first;
  for (const auto& [shape, bucket] : tenant_waits_[wait.tenant.index()].buckets) {
    std::size_t shown = 0;
    for (const auto& entry : bucket.by_rank) {
      if (!(entry.first < wait.rank) || refusal.ahead_count == Refusal::kAheadCounted) break;
      ++refusal.ahead_count;
      if (shown++ < kAheadShown) first.push_back(entry);
    }
  }
  std::sort(first.begin(), first.end());
  for (std::size_t i = 0; i < first.size() && i < kAheadShown; ++i)
    refusal.ahead.push_back(state_.gang(first[i].second).key);
}

Refusal Planner::explain_limit(GangId id, const Tenants::Excess& excess) {
  (void)id;
  Refusal r;
  r.reason = excess.reason;
  r.queue = state_.tenant(excess.tenant).name;
  const std::int64_t factor = state_.names().factor(excess.resource);
  r.shortages.push_back({state_.names().name(excess.resource),
                         excess.wanted / factor,
                         excess.left / factor,
                         excess.limit / factor});
  return r;
}

/// Whose reservation is in the way: the first of those that rank before it.
Refusal Planner::explain_held(GangId id) const {
  Refusal r;
  r.reason = Reason::kHeldForReservation;
  const Hold* first = nullptr;
  for (const Hold& hold : holds_) {
    if (hold.live && hold.gang != id && (first == nullptr || hold.rank < first->rank))
      first = &hold;
  }
  if (first == nullptr) return r;
  r.subject = state_.gang(first->gang).key;
  if (first->start) r.until = first->start;
  return r;
}

/// Its victims are on their way out: how many, one of them, and when the last must have left.
Refusal Planner::explain_leavers(GangId id) const {
  Refusal r;
  r.reason = Reason::kWaitingForVictims;
  std::set<NodeId> nodes;
  for (const PodId p : state_.gang(id).pods) {
    if (state_.pod(p).nominated.valid()) nodes.insert(state_.pod(p).nominated);
  }
  for (const NodeId n : nodes) {
    for (const PodId p : state_.node(n).pods) {
      const PodState& pod = state_.pod(p);
      if (pod.phase != PodPhase::kReleasing) continue;
      ++r.members_found;
      if (r.subject.empty() || pod.key < r.subject) r.subject = pod.key;
      if (pod.leaves && (!r.until || *r.until < pod.leaves)) r.until = pod.leaves;
    }
  }
  return r;
}

/// All would fit, but not in one domain: the one that takes most.
void Planner::explain_domains(GangId id, PodId pod, Refusal& refusal) const {
  std::string key;
  for (const auto& level : levels_of(state_.gang(id))) {
    if (level.required) key = level.key;
  }
  if (key.empty()) return;
  std::map<std::string, std::int64_t> room;
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    const NodeState& node = state_.node(NodeId(n));
    const std::string* value = node.live ? find_label(node.spec.labels, key) : nullptr;
    if (value != nullptr)
      room[*value] += fit_count(state_, state_.cls_of(pod), node, refusal.members_wanted);
  }
  std::int64_t most = 0;
  for (const auto& [value, n] : room) {
    if (n <= most) continue;
    most = n;
    refusal.subject = key + "=" + value;
  }
  refusal.reason = Reason::kTopology;
  refusal.members_found =
      static_cast<std::int32_t>(std::min<std::int64_t>(most, refusal.members_wanted));
}

bool Planner::never_preempts(GangId id) const {
  const GangState& gang = state_.gang(id);
  if (gang.spec.preemption_policy == PreemptionPolicy::kNever) return true;
  const auto waits = std::find_if(gang.pods.begin(), gang.pods.end(), [&](PodId p) {
    return state_.pod(p).phase == PodPhase::kPending;
  });
  return waits != gang.pods.end() &&
         state_.pod(*waits).preemption_policy == PreemptionPolicy::kNever;
}

/// What is told of a shape, with what is this gang's own.
Refusal Planner::story_of(const Shape& shape, GangId id) const {
  Refusal r = shape.refusal;
  if (!r.preemption.empty() && never_preempts(id))
    r.preemption = "not eligible due to preemptionPolicy=Never.";
  return r;
}

/// Counts the nodes by what each lacks for one member, and says how much the best one has.
Refusal Planner::explain_nodes(GangId id) {
  Refusal r;
  r.reason = Reason::kNoNodeFits;
  r.nodes_total = static_cast<std::int32_t>(state_.live_nodes());
  const std::vector<PodId> tasks = tasks_of(id);
  const Need need = need_of(state_.gang(id));
  r.members_wanted = std::max(need.total, 1);
  if (tasks.empty()) return r;
  const PodId pod = tasks.front();
  const TaskClass& cls = state_.cls_of(pod);
  std::map<std::string, std::int32_t> causes;
  std::map<std::string, std::int32_t> after_eviction;
  const Asking asking{
      state_,
      tenants_,
      {state_.pod(pod).cls, state_.gang(id).spec.priority, state_.gang(id).tenant, id, false},
      now_,
      false};
  const Preemptor& who = asking.who;
  const auto& evictable = state_.evictable_priorities();
  const bool victims_anywhere = !evictable.empty() && (state_.tenant(who.tenant).spec.t9k ||
                                                       evictable.begin()->first < who.priority);
  std::map<std::size_t, std::int64_t> most;     ///< Free on one node.
  std::map<std::size_t, std::int64_t> largest;  ///< There at all on one node.
  bool ever = false;
  std::int64_t placeable = 0;
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    const NodeState& node = state_.node(NodeId(n));
    if (!node.live) continue;
    const Misfit m = fit(state_, pod, NodeId(n));
    ++index_.checks;
    const bool allowed = m.ok() || m.cause == Cause::kResource || m.cause == Cause::kDevices ||
                         m.cause == Cause::kTooManyPods;
    if (allowed) {
      ever |= cls.request.fits_in(node.allocatable);
      for (std::size_t i = 0; i < cls.request.size(); ++i) {
        if (cls.request[i] <= 0 || i == ResourceNames::kPods) continue;
        most[i] = std::max(most[i], std::max<std::int64_t>(node.free[i], 0));
        largest[i] = std::max(largest[i], node.allocatable[i]);
      }
    }
    if (m.ok()) {
      placeable += fit_count(state_, cls, node, r.members_wanted);
      continue;
    }
    const std::string text = misfit_text(state_, state_.pod(pod).cls, NodeId(n), m);
    ++causes[text];
    const bool victims =
        victims_anywhere && std::any_of(node.pods.begin(), node.pods.end(), [&](PodId p) {
          return eligible(asking, state_.pod(p));
        });
    ++after_eviction[!eviction_may_help(m.cause) ? "Preemption is not helpful for scheduling"
                     : victims                   ? text
                                                 : "No preemption victims found for incoming pod"];
  }
  if (state_.config().preempt) {
    std::vector<NodeCount> counts;
    for (const auto& [text, n] : after_eviction) counts.push_back({text, n});
    r.preemption = none_available(r.nodes_total, counts);
  }
  r.members_found = static_cast<std::int32_t>(std::min<std::int64_t>(placeable, r.members_wanted));
  for (const auto& [text, n] : causes) r.by_cause.push_back({text, n});
  if (!ever && !most.empty() && r.nodes_total > 0) r.reason = Reason::kNeverFits;
  for (const auto& [i, there] : r.reason == Reason::kNeverFits ? largest : most) {
    if (there >= cls.request[i]) continue;
    const std::int64_t factor = state_.names().factor(i);
    r.shortages.push_back(
        {state_.names().name(i), (cls.request[i] + factor - 1) / factor, there / factor, 0});
  }
  if (placeable >= r.members_wanted) explain_domains(id, pod, r);
  return r;
}

std::optional<WaitView> Planner::why(GangId id) {
  if (!id.valid() || id.index() >= waits_.size()) return std::nullopt;
  const GangState& gang = state_.gang(id);
  const GangWait& wait = waits_[id.index()];
  if (!gang.live || gang.pending == 0 || wait.seq != gang.seq) return std::nullopt;
  WaitView view;
  view.key = gang.key;
  view.is_group = gang.has_group;
  view.queue = state_.tenant(gang.tenant).name;
  view.priority = gang.spec.priority;
  view.since = gang.created;
  view.refusal = wait.refusal;
  if (wait.listed) {
    tenants_.refresh(state_);
    if (shapes_[wait.shape.index()].blocked) {
      view.refusal = explain_nodes(id);
      if (!view.refusal.preemption.empty() && never_preempts(id))
        view.refusal.preemption = wait.refusal.preemption;
    }
    add_ahead(id, view.refusal);
    const auto& buckets = tenant_waits_[wait.tenant.index()].buckets;
    std::int32_t rank = 0;
    for (const auto& [shape, bucket] : buckets) {
      rank += static_cast<std::int32_t>(
          std::distance(bucket.by_rank.begin(), bucket.by_rank.lower_bound({wait.rank, id})));
    }
    view.rank = rank;
    view.refusal.ahead_count = rank;
  }
  return view;
}

std::vector<WaitView> Planner::waiting(TenantId tenant, std::size_t limit) {
  std::vector<WaitView> out;
  if (!tenant.valid() || tenant.index() >= tenant_waits_.size()) return out;
  ByRank all;
  for (const auto& [shape, bucket] : tenant_waits_[tenant.index()].buckets) {
    std::size_t n = 0;
    for (const auto& entry : bucket.by_rank) {
      if (n++ == limit) break;
      all.insert(entry);
    }
  }
  for (const auto& [rank, id] : all) {
    if (out.size() == limit) break;
    const GangState& gang = state_.gang(id);
    WaitView view;
    view.key = gang.key;
    view.is_group = gang.has_group;
    view.queue = state_.tenant(tenant).name;
    view.priority = gang.spec.priority;
    view.since = gang.created;
    view.rank = static_cast<std::int32_t>(out.size());
    view.refusal = waits_[id.index()].refusal;
    out.push_back(std::move(view));
  }
  return out;
}

}  // namespace muster::engine
