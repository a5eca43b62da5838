// Evictions: when they are worth planning, carrying them out, and the room held until the victims
// are gone.
#include <algorithm>
#include <utility>

#include "engine/muster/planner.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"

namespace muster::engine {

void Planner::tell_nomination(PodId id) {
  const PodState& pod = state_.pod(id);
  const NodeState& node = state_.node(pod.nominated);
  Nominate n{pod.key, node.spec.name, {}};
  for (const auto i : pod.devices) n.devices.push_back(node.devices[i].index);
  plan_.nominations.push_back(std::move(n));
}

void Planner::carry_out(GangId id, const EvictionPlan& plan, PodId any_task, bool reclaim) {
  std::set<GangId> hosted;
  for (const auto& [node, on] : plan.nodes) {
    for (const PodId v : on.victims) {
      const PodState& pod = state_.pod(v);
      Evict e;
      e.pod = pod.key;
      e.uid = pod.uid;
      e.node = state_.node(node).spec.name;
      e.kind = reclaim ? EvictKind::kReclaim : EvictKind::kPreempt;
      e.for_whom = state_.gang(id).key;
      e.for_whom_pod = state_.pod(on.guests.empty() ? any_task : on.guests.front().pod).key;
      e.message =
          (reclaim ? "Reclaimed for " : "Preempted by ") + e.for_whom_pod + " on node " + e.node;
      plan_.evicts.push_back(std::move(e));
      state_.evict(v);
    }
    for (const auto& [g, devices] : on.guests) {
      state_.nominate(g, node, devices);
      tell_nomination(g);
      hosted.insert(state_.pod(g).gang);
    }
  }
  for (const GangId g : hosted) {
    unlist(g);
    release_of(g);
    waits_[g.index()].nominated = true;
    waits_[g.index()].preempt_epoch = state_.epoch;
    nominated_.insert(g);
  }
}

/// May the room held for the gang be planned with? Like a victim's: its queue keeps its due.
bool Planner::may_lift(const Preemptor& who, GangId id) const {
  const GangState& gang = state_.gang(id);
  if (gang.spec.priority >= who.priority) return false;
  if (gang.tenant == who.tenant) return true;
  if (!state_.config().preempt_across_queues) return false;
  if (!state_.config().reclaim) return true;
  ResourceVector request;
  for (const PodId p : gang.pods) {
    if (state_.pod(p).nominated.valid()) request += state_.cls_of(p).request;
  }
  return tenants_.can_give(state_, gang.tenant, request, true);
}

/// Takes the nominations of lower ranks off the books, so that the room held for them can be
/// planned with.
std::vector<Planner::Lifted> Planner::lift_lower(const Preemptor& who) {
  std::vector<Lifted> lifted;
  for (const GangId g : nominated_) {
    if (!may_lift(who, g)) continue;
    for (const PodId p : state_.gang(g).pods) {
      if (!state_.pod(p).nominated.valid()) continue;
      lifted.push_back({g, p, state_.pod(p).nominated, state_.pod(p).devices});
      state_.give_up_nomination(p);
    }
  }
  return lifted;
}

/// Gives them back, whole gangs only, the highest rank first; a gang whose room was `taken` waits
/// again like others.
void Planner::put_back(std::vector<Lifted> lifted, bool taken) {
  std::stable_sort(lifted.begin(), lifted.end(), [&](const Lifted& a, const Lifted& b) {
    const auto pa = state_.gang(a.gang).spec.priority;
    const auto pb = state_.gang(b.gang).spec.priority;
    return pa != pb ? pa > pb : a.gang < b.gang;
  });
  static const EvictionPlan kNothing{};
  for (std::size_t i = 0; i < lifted.size();) {
    const GangId gang = lifted[i].gang;
    std::size_t end = i;
    ResourceVector request;
    for (; end < lifted.size() && lifted[end].gang == gang; ++end)
      request += state_.cls_of(lifted[end].pod).request;
    bool fits = nominated_.contains(gang) &&
                (!taken || !tenants_.excess(state_, state_.gang(gang).tenant, request));
    for (std::size_t k = i; k < end && fits; ++k) {
      Lifted& l = lifted[k];
      fits = !taken || fits_after(state_, state_.cls_of(l.pod), l.node, kNothing);
      if (!fits) break;
      const bool moves =
          taken && Room(state_, l.node, kNothing).lacks_any(state_.cls_of(l.pod), l.devices);
      if (moves) l.devices = Room(state_, l.node, kNothing).pick(state_.cls_of(l.pod));
      state_.nominate(l.pod, l.node, l.devices);
      if (moves) tell_nomination(l.pod);
    }
    if (!fits) {
      for (std::size_t k = i; k < end; ++k) {
        state_.give_up_nomination(lifted[k].pod);
        plan_.nominations.push_back({state_.pod(lifted[k].pod).key, ""});
      }
      drop_nominations(gang);
    }
    i = end;
  }
}

bool Planner::preempt(GangId id, bool over_limit) {
  const GangState& gang = state_.gang(id);
  const Config& config = state_.config();
  const std::vector<PodId> tasks = tasks_of(id);
  if (tasks.empty() || never_preempts(id)) return false;
  const Need need = need_of(gang);
  // A family is planned for from its root, as a whole; once enough of it runs or has its room, each
  // group for itself.
  const bool alone = need.total == 0 || !family_short(id, {nominated_.begin(), nominated_.end()});
  const GangId root = alone ? id : state_.root_of(id);
  if (over_limit && root != id) return false;

  Preemptor who;
  who.cls = state_.pod(tasks.front()).cls;
  who.gang = id;
  who.tenant = gang.tenant;
  who.priority = gang.spec.priority;
  const ResourceVector request = request_of(id, need);
  const auto& evictable = state_.evictable_priorities();
  const bool t9k = state_.tenant(gang.tenant).spec.t9k;
  const bool over_nominated =
      config.preempt && !over_limit && !t9k && nominated_below(who.priority);
  const bool by_priority =
      config.preempt &&
      ((!evictable.empty() && (t9k || evictable.begin()->first < who.priority)) || over_nominated);
  const bool by_share = config.reclaim && tenants_.may_reclaim(state_, gang.tenant, request) &&
                        tenants_.anybody_can_give(state_, gang.tenant, request);
  if ((!by_priority && !by_share) ||
      waits_[id.index()].preempt_seen == state_.log_end() + holds_version_)
    return false;
  if (waits_[id.index()].preempt_epoch == state_.epoch) return false;

  for (const bool reclaim : {true, false}) {
    if (reclaim ? !by_share || over_limit : !by_priority) continue;
    if (over_limit && t9k) continue;
    who.reclaim = reclaim;
    // What is lifted here and put back below is no gain for anybody who waits. The indexes of all
    // that is planned for read first what is: a family's other groups may be of kinds of their own.
    std::set<ClassId> parts;
    std::vector<Lifted> lifted;
    if (!reclaim && over_nominated) {
      for (const GangId leaf : state_.leaves_of(root)) {
        for (const PodId p : state_.gang(leaf).pods) {
          if (state_.pod(p).phase == PodPhase::kPending) parts.insert(state_.pod(p).cls);
        }
      }
      for (const ClassId cls : parts) index_.of(cls).catch_up(state_, index_.checks);
      lifted = lift_lower(who);
    }
    EvictionPlan plan;
    const bool found =
        plan_evictions(root, who, over_limit ? &request : nullptr, !lifted.empty(), plan);
    if (found) carry_out(id, plan, tasks.front(), reclaim);
    if (found)
      waits_[id.index()].preempt_epoch =
          state_.epoch;  // Cheaper groups of its family may have got the room.
    if (!lifted.empty()) {
      put_back(std::move(lifted), found);
      for (const ClassId cls : parts) {
        index_.of(cls).catch_up(state_, index_.checks, true);
        if (found) index_.of(cls).note_gain();
      }
    }
    if (!found) continue;
    if (plan.victims.empty()) try_nominated(id);  // Its room may be there already.
    return true;
  }
  waits_[id.index()].preempt_seen = state_.log_end() + holds_version_;
  return false;
}

bool Planner::nominated_below(std::int32_t priority) const {
  return std::any_of(nominated_.begin(), nominated_.end(), [&](GangId g) {
    return state_.gang(g).spec.priority < priority;
  });
}

void Planner::drop_nominations(GangId id) {
  for (const PodId p : std::vector<PodId>(state_.gang(id).pods)) {
    if (!state_.pod(p).nominated.valid()) continue;
    state_.give_up_nomination(p);
    plan_.nominations.push_back({state_.pod(p).key, ""});
  }
  waits_[id.index()].nominated = false;
  nominated_.erase(id);
  dropped_ = true;
  for (const GangId sibling : state_.leaves_of(state_.root_of(id))) {
    if (nominated_.contains(sibling)) bereft_.insert(sibling);
  }
}

/// Groups that waited to start together with one that has lost its room: without it they start now,
/// or hold nothing either.
void Planner::try_bereft() {
  const std::set<GangId> gangs = std::exchange(bereft_, {});
  for (const GangId id : gangs) {
    if (nominated_.contains(id)) try_nominated(id);
  }
  for (const GangId id : state_.take_dirty_gangs()) reclassify(id);
}

/// Those whose victims were told to go: all room there -> bind; still waiting -> keep; hopeless ->
/// start again.
void Planner::try_nominated() {
  const std::set<GangId> gangs = nominated_;
  for (const GangId id : gangs) {
    if (nominated_.contains(id)) try_nominated(id);
  }
}

/// With the nominated groups of the same family, which start together or not at all.
void Planner::try_nominated(GangId id) {
  std::vector<GangId> family;
  for (const GangId leaf :
       state_.leaves_of(need_of(state_.gang(id)).total > 0 ? state_.root_of(id) : id)) {
    if (nominated_.contains(leaf)) family.push_back(leaf);
  }
  std::vector<Lifted> where;
  bool waits_for_leavers = false;
  bool lost = family.empty();
  std::map<TenantId, ResourceVector> request;
  for (const GangId g : family) {
    std::int32_t members = 0;
    for (const PodId p : state_.gang(g).pods) {
      const PodState& pod = state_.pod(p);
      if (!pod.nominated.valid()) continue;
      ++members;
      where.push_back({g, p, pod.nominated, pod.devices});
      lost |= pod.gated || !fit_static(state_, state_.cls(pod.cls), state_.node(pod.nominated))
                                .ok();  // No place any more.
      request[state_.gang(g).tenant] += state_.cls(pod.cls).request;
      waits_for_leavers |= !state_.node(pod.nominated).releasing.is_zero();
    }
    lost |= members < std::max(need_of(state_.gang(g)).total, 1);
  }
  lost |= family_short(id, family);
  // Limits may have changed, or been used up by others, since the victims were told to go.
  const bool over = std::any_of(request.begin(), request.end(), [&](const auto& r) {
    return tenants_.excess(state_, r.first, r.second, true).has_value();
  });
  if (over && !waits_for_leavers) lost = true;
  if (over && waits_for_leavers && !lost) return;
  if (!lost) {
    std::size_t bound = 0;
    for (; bound < where.size(); ++bound) {
      const auto& [g, p, n, devices] = where[bound];
      if (needs_between(state_, p) && !fit_between(state_, p, n).ok()) {
        waits_for_leavers = false;  // That node is no place any more.
        break;
      }
      if (!fit_held(state_, p).ok()) break;
      state_.bind_nominated(p, now_);
    }
    if (bound == where.size()) {
      std::vector<PodId> placed;
      for (const Lifted& l : where) placed.push_back(l.pod);
      emit(id, placed);
      for (const GangId g : family) {
        waits_[g.index()].nominated = false;
        nominated_.erase(g);
      }
      return;
    }
    // No index has looked at these nodes in between, so nobody takes the undone binds for a gain.
    for (std::size_t i = bound; i-- > 0;) {
      state_.unbind(where[i].pod);
      state_.nominate(where[i].pod, where[i].node, where[i].devices);
    }
    if (waits_for_leavers) {
      for (const GangId g : family) refuse(g, explain_leavers(g));
      return;
    }
  }
  if (family.empty()) family.push_back(id);
  for (const GangId g : family) drop_nominations(g);
  for (const GangId g : family) reclassify(g);
}

/// Would the family have too few groups with only these started?
bool Planner::family_short(GangId id, const std::vector<GangId>& starting) const {
  if (need_of(state_.gang(id)).total == 0) return false;
  const GangId root = state_.root_of(id);
  const std::function<bool(GangId)> starts = [&](GangId g) {
    const GangState& gang = state_.gang(g);
    if (!gang.spec.is_parent)
      return group_runs(g) || std::find(starting.begin(), starting.end(), g) != starting.end();
    std::int32_t n = 0;
    for (const GangId child : state_.children_of(gang.key)) n += starts(child) ? 1 : 0;
    return n >= std::max(1, gang.spec.min_groups);
  };
  return !starts(root);
}

}  // namespace muster::engine
