// Making room: the cheapest set of victims with which the whole gang fits, or nothing.
#include <algorithm>

#include "engine/fit.h"
#include "engine/match.h"
#include "engine/planner.h"

namespace muster::engine {

namespace {

/// Nodes tried exactly for each pod; the index has put the cheapest first.
constexpr std::size_t kCandidates = 24;

void take_victims(const State& state, const VictimChoice& choice, EvictionPlan& plan) {
  for (const PodId v : choice.victims) {
    if (!plan.victims.insert(v).second) continue;
    const PodState& pod = state.pod(v);
    plan.nodes[pod.node].victims.push_back(v);
    ++plan.evicted_of[pod.gang];
    plan.taken_from[state.gang(pod.gang).tenant] += state.cls(pod.cls).request;
    for (const auto& [key, b] : state.budgets()) {
      if (b.ns == pod.ns && b.selector && matches(*b.selector, pod.labels)) ++plan.budget_used[key];
    }
  }
}

/// Victims whose leaving turned out not to be needed once all members have their places.
void spare(const State& state, EvictionPlan& plan) {
  std::vector<PodId> all(plan.victims.begin(), plan.victims.end());
  std::sort(all.begin(), all.end(), [&](PodId a, PodId b) {
    const auto pa = state.rank_priority(state.pod(a));
    const auto pb = state.rank_priority(state.pod(b));
    if (pa != pb) return pa > pb;
    return a < b;
  });
  for (const PodId v : all) {
    const PodState& pod = state.pod(v);
    const GangState& gang = state.gang(pod.gang);
    // Part of a gang that goes whole is never kept alone.
    const bool alone = gang.spec.disruption == DisruptionMode::kSingle ||
                       (gang.spec.disruption == DisruptionMode::kGang && gang.bound - plan.evicted_of[pod.gang] >= gang.spec.min_member);
    if (!alone) continue;
    EvictionPlan::OnNode& on = plan.nodes[pod.node];
    EvictionPlan trial = plan;
    std::erase(trial.nodes[pod.node].victims, v);
    std::vector<PodId> guests = std::move(trial.nodes[pod.node].guests);
    trial.nodes[pod.node].guests.clear();
    bool ok = true;
    for (const PodId g : guests) {
      if (!fits_after(state, state.cls_of(g), pod.node, trial)) {
        ok = false;
        break;
      }
      trial.nodes[pod.node].guests.push_back(g);
    }
    if (!ok) continue;
    std::erase(on.victims, v);
    plan.victims.erase(v);
    --plan.evicted_of[pod.gang];
  }
}

}  // namespace

/// The queue itself is full: lower ranks of the same queue go first, until the limits would hold.
bool Planner::make_room_in_queue(GangId id, const Preemptor& who, const ResourceVector& request, EvictionPlan& plan) const {
  const TenantId tenant = state_.gang(id).tenant;
  struct Option {
    std::int32_t priority;
    std::int64_t young;
    PodId pod;
  };
  std::vector<Option> options;
  for (std::uint32_t p = 0; p < state_.pod_count(); ++p) {
    const PodState& pod = state_.pod(PodId(p));
    if (!pod.live || pod.phase != PodPhase::kBound || state_.gang(pod.gang).tenant != tenant) continue;
    if (eligible(state_, tenants_, who, pod)) options.push_back({state_.rank_priority(pod), -pod.started.us, PodId(p)});
  }
  std::sort(options.begin(), options.end(), [](const Option& a, const Option& b) {
    return std::tuple(a.priority, a.young, a.pod) < std::tuple(b.priority, b.young, b.pod);
  });
  const auto enough = [&] {
    const auto taken = plan.taken_from.find(tenant);
    return !tenants_.excess(state_, tenant, taken == plan.taken_from.end() ? request : request - taken->second).has_value();
  };
  for (const Option& o : options) {
    if (enough()) break;
    if (plan.victims.contains(o.pod)) continue;
    const GangState& gang = state_.gang(state_.pod(o.pod).gang);
    VictimChoice choice;
    const auto already = plan.evicted_of.find(state_.pod(o.pod).gang);
    const std::int32_t left = gang.bound - (already == plan.evicted_of.end() ? 0 : already->second);
    const bool alone = gang.spec.disruption == DisruptionMode::kSingle ||
                       (gang.spec.disruption == DisruptionMode::kGang && left > gang.spec.min_member);
    if (alone) {
      choice.victims = {o.pod};
    } else {
      for (const PodId p : gang.pods) {
        if (state_.pod(p).phase != PodPhase::kBound) continue;
        if (!eligible(state_, tenants_, who, state_.pod(p))) choice.victims.clear();
        choice.victims.push_back(p);
      }
    }
    take_victims(state_, choice, plan);
  }
  return enough();
}

bool Planner::preempt(GangId id, bool over_limit) {
  const GangState& gang = state_.gang(id);
  const Config& config = state_.config();
  if (gang.spec.preemption_policy == PreemptionPolicy::kNever) return false;
  const Need need = need_of(gang);
  const std::vector<PodId> tasks = tasks_of(id);
  if (tasks.empty() || !levels_of(gang).empty() || !gang.spec.parent.empty()) return false;
  if (state_.pod(tasks.front()).preemption_policy == PreemptionPolicy::kNever) return false;

  Preemptor who;
  who.gang = id;
  who.tenant = gang.tenant;
  who.priority = gang.spec.priority;
  const auto& evictable = state_.evictable_priorities();
  const bool t9k = state_.tenant(gang.tenant).spec.t9k;
  const bool by_priority = config.preempt && !evictable.empty() && (t9k || evictable.begin()->first < who.priority);
  const bool by_share = config.reclaim && tenants_.may_reclaim(state_, gang.tenant, request_of(id, need));
  GangWait& wait = waits_[id.index()];
  if ((!by_priority && !by_share) || wait.preempt_seen == state_.log_end()) return false;
  wait.preempt_seen = state_.log_end();

  for (const bool reclaim : {true, false}) {
    if (reclaim ? !by_share || over_limit : !by_priority) continue;
    who.reclaim = reclaim;
    EvictionPlan plan;
    if (over_limit) {
      who.cls = state_.pod(tasks.front()).cls;
      if (t9k || !make_room_in_queue(id, who, request_of(id, need), plan)) continue;
    }
    std::int32_t left = std::max(need.total, 1);
    for (const PodId task : tasks) {
      if (left == 0) break;
      who.cls = state_.pod(task).cls;
      const TaskClass& cls = state_.cls(who.cls);
      NodeId best;
      VictimChoice best_choice;
      // Places that need nobody more: nodes already touched, then free ones.
      for (const auto& [node, on] : plan.nodes) {
        if (!fits_after(state_, cls, node, plan)) continue;
        best = node;
        break;
      }
      if (!best.valid()) {
        ClassIndex& index = index_.of(who.cls);
        index.catch_up(state_, index_.checks);
        ClassIndex::Cursor cursor;
        for (NodeId n = index.next(cursor); n.valid(); n = index.next(cursor)) {
          if (!fits_after(state_, cls, n, plan)) continue;
          best = n;
          break;
        }
      }
      if (!best.valid()) {
        const auto cost = [](const VictimChoice& c) {
          return std::tuple(c.budgets_broken, c.victims.size(), c.top_priority, c.work_lost_s);
        };
        std::size_t tried = 0;
        for (const NodeId n : victims_.cheapest(state_, tenants_, who, now_, kCandidates + 2 * plan.nodes.size())) {
          if (tried++ >= kCandidates && best.valid()) break;
          VictimChoice choice = choose_on_node(state_, tenants_, who, n, plan, now_);
          if (!choice.possible) continue;
          if (best.valid() && cost(choice) >= cost(best_choice)) continue;
          best = n;
          best_choice = std::move(choice);
        }
      }
      if (!best.valid()) continue;
      take_victims(state_, best_choice, plan);
      plan.nodes[best].guests.push_back(task);
      --left;
    }
    if (left > 0) continue;
    if (!over_limit) spare(state_, plan);
    for (const auto& [node, on] : plan.nodes) {
      for (const PodId v : on.victims) {
        const PodState& pod = state_.pod(v);
        Evict e;
        e.pod = pod.key;
        e.uid = pod.uid;
        e.node = state_.node(node).spec.name;
        e.kind = reclaim ? EvictKind::kReclaim : EvictKind::kPreempt;
        e.for_whom = gang.key;
        e.for_whom_pod = state_.pod(on.guests.empty() ? tasks.front() : on.guests.front()).key;
        e.message = (reclaim ? "Reclaimed for " : "Preempted by ") + e.for_whom_pod + " on node " + e.node;
        plan_.evicts.push_back(std::move(e));
        state_.evict(v);
      }
      for (const PodId g : on.guests) {
        state_.nominate(g, node);
        plan_.nominations.push_back({state_.pod(g).key, state_.node(node).spec.name});
      }
    }
    unlist(id);
    release_of(id);
    waits_[id.index()].nominated = true;
    nominated_.insert(id);
    return true;
  }
  return false;
}

void Planner::drop_nominations(GangId id) {
  for (const PodId p : std::vector<PodId>(state_.gang(id).pods)) {
    if (!state_.pod(p).nominated.valid()) continue;
    state_.nominate(p, NodeId{});
    plan_.nominations.push_back({state_.pod(p).key, ""});
  }
  waits_[id.index()].nominated = false;
  nominated_.erase(id);
}

/// Those whose victims were told to go: all room there -> bind; still waiting -> keep; hopeless -> start again.
void Planner::try_nominated() {
  const std::set<GangId> gangs = nominated_;
  for (const GangId id : gangs) {
    std::vector<std::pair<PodId, NodeId>> where;
    bool waits_for_leavers = false;
    bool lost = false;
    ResourceVector request;
    for (const PodId p : state_.gang(id).pods) {
      const PodState& pod = state_.pod(p);
      if (!pod.nominated.valid()) continue;
      where.emplace_back(p, pod.nominated);
      lost |= pod.gated;
      request += state_.cls(pod.cls).request;
      waits_for_leavers |= !state_.node(pod.nominated).releasing.is_zero();
    }
    const Need need = need_of(state_.gang(id));
    if (static_cast<std::int32_t>(where.size()) < std::max(need.total, 1)) lost = true;
    // Limits may have changed, or been used up by others, since the victims were told to go.
    const bool over = tenants_.excess(state_, state_.gang(id).tenant, request).has_value();
    if (over && !waits_for_leavers) lost = true;
    if (over && waits_for_leavers && !lost) continue;
    std::vector<PodId> placed;
    if (!lost) {
      bool fits = true;
      for (const auto& [p, n] : where) state_.nominate(p, NodeId{});
      for (const auto& [p, n] : where) {
        ClassIndex& index = index_.of(state_.pod(p).cls);
        index.catch_up(state_, index_.checks);
        const TaskClass& cls = state_.cls_of(p);
        const NodeState& node = state_.node(n);
        if (!fit_static(state_, cls, node).ok()) {
          fits = false;
          waits_for_leavers = false;  // That node is no place any more.
          break;
        }
        if (!fit_room(state_, cls, node).ok()) {
          fits = false;
          break;
        }
        state_.bind(p, n, now_);
        placed.push_back(p);
      }
      if (fits) {
        emit(id, placed);
        waits_[id.index()].nominated = false;
        nominated_.erase(id);
        continue;
      }
      undo(placed);
      if (waits_for_leavers) {
        for (const auto& [p, n] : where) state_.nominate(p, n);
        Refusal refusal;
        refusal.reason = Reason::kWaitingForVictims;
        refuse(id, refusal);
        continue;
      }
    }
    for (const auto& [p, n] : where) plan_.nominations.push_back({state_.pod(p).key, ""});
    drop_nominations(id);
    reclassify(id);
  }
}

}  // namespace muster::engine
