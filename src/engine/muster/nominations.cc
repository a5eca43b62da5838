#include "engine/muster/nominations.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/muster/explain.h"
#include "engine/muster/gang.h"
#include "engine/state/fit.h"

namespace muster::engine {

void Nominations::tell(PodId id) {
  const PodState& pod = state_->pod(id);
  const NodeState& node = state_->node(pod.nominated);
  Nominate n{pod.key, node.spec->name, {}};
  for (const auto i : pod.devices) n.devices.push_back(node.devices[i].index);
  desk_->plan.nominations.push_back(std::move(n));
}

void Nominations::nominate(PodId pod, NodeId node, const Positions& devices) {
  state_->nominate(pod, node, devices);
  tell(pod);
}

void Nominations::hold(GangId id) {
  waiting_->leave(id);
  reservations_->release_of(id);
  waiting_->mark_nominated(id);
  waiting_->record(id).preempt_epoch = state_->epoch;
}

void Nominations::drop(GangId id) {
  for (const PodId p : std::vector<PodId>(state_->gang(id).pods)) {
    if (!state_->pod(p).nominated.valid()) continue;
    state_->give_up_nomination(p);
    desk_->plan.nominations.push_back({state_->pod(p).key, ""});
  }
  waiting_->unmark_nominated(id);
  dropped_ = true;
  for (const GangId sibling : state_->leaves_of(state_->root_of(id))) {
    if (waiting_->is_nominated(sibling)) bereft_.insert(sibling);
  }
}

// ------------------------------------------------------------------ planning over lower ranks

/// May the room held for the gang be planned with? Like a victim's: its queue keeps its due.
bool Nominations::may_lift(const Preemptor& who, GangId id) const {
  const GangState& gang = state_->gang(id);
  if (gang.spec->priority >= who.priority) return false;
  if (gang.tenant == who.tenant) return true;
  if (!state_->config().preempt_across_queues) return false;
  if (!state_->config().reclaim) return true;
  ResourceVector request;
  for (const PodId p : gang.pods) {
    if (state_->pod(p).nominated.valid()) request += state_->cls_of(p).request;
  }
  return desk_->tenants.can_give(state_, gang.tenant, request, true);
}

std::vector<Nominations::Lifted> Nominations::lift_lower(const Preemptor& who) {
  std::vector<Lifted> lifted;
  for (const GangId g : waiting_->nominated()) {
    if (!may_lift(who, g)) continue;
    for (const PodId p : state_->gang(g).pods) {
      if (!state_->pod(p).nominated.valid()) continue;
      lifted.push_back({g, p, state_->pod(p).nominated, state_->pod(p).devices});
      state_->give_up_nomination(p);
    }
  }
  return lifted;
}

/// The nominations of one gang. False: they do not fit any more.
bool Nominations::restore(std::vector<Lifted>& lifted,
                          std::size_t from,
                          std::size_t end,
                          bool taken) {
  static const EvictionPlan kNothing{};
  for (std::size_t k = from; k < end; ++k) {
    Lifted& l = lifted[k];
    const TaskClass& cls = state_->cls_of(l.pod);
    if (taken && !fits_after(state_, cls, l.node, kNothing)) return false;
    const bool moves = taken && Room(state_, l.node, kNothing).lacks_any(cls, l.devices);
    if (moves) l.devices = Room(state_, l.node, kNothing).pick(cls);
    state_->nominate(l.pod, l.node, l.devices);
    if (moves) tell(l.pod);
  }
  return true;
}

void Nominations::put_back(std::vector<Lifted> lifted, bool taken) {
  std::stable_sort(lifted.begin(), lifted.end(), [&](const Lifted& a, const Lifted& b) {
    const auto pa = state_->gang(a.gang).spec->priority;
    const auto pb = state_->gang(b.gang).spec->priority;
    return pa != pb ? pa > pb : a.gang < b.gang;
  });
  for (std::size_t i = 0; i < lifted.size();) {
    const GangId gang = lifted[i].gang;
    std::size_t end = i;
    ResourceVector request;
    for (; end < lifted.size() && lifted[end].gang == gang; ++end)
      request += state_->cls_of(lifted[end].pod).request;
    const bool fits =
        waiting_->is_nominated(gang) &&
        (!taken || !desk_->tenants.excess(state_, state_->gang(gang).tenant, request)) &&
        restore(lifted, i, end, taken);
    if (!fits) {
      for (std::size_t k = i; k < end; ++k) {
        state_->give_up_nomination(lifted[k].pod);
        desk_->plan.nominations.push_back({state_->pod(lifted[k].pod).key, ""});
      }
      drop(gang);
    }
    i = end;
  }
}

// ------------------------------------------------------------------ when the victims have left

Nominations::Family Nominations::family_of(GangId id) const {
  Family family;
  const bool together = need_of(state_, state_->gang(id)).total > 0;
  for (const GangId leaf : state_->leaves_of(together ? state_->root_of(id) : id)) {
    if (waiting_->is_nominated(leaf)) family.gangs.push_back(leaf);
  }
  family.lost = family.gangs.empty();
  std::map<TenantId, ResourceVector> request;
  for (const GangId g : family.gangs) {
    std::int32_t members = 0;
    for (const PodId p : state_->gang(g).pods) {
      const PodState& pod = state_->pod(p);
      if (!pod.nominated.valid()) continue;
      ++members;
      family.pods.push_back({g, p, pod.nominated, pod.devices});
      const NodeState& node = state_->node(pod.nominated);
      family.lost |= pod.gated || !fit_static(state_, state_->cls(pod.cls), node).ok();
      request[state_->gang(g).tenant] += state_->cls(pod.cls).request;
      family.waits_for_leavers |= !node.releasing.is_zero();
    }
    family.lost |= members < std::max(need_of(state_, state_->gang(g)).total, 1);
  }
  family.lost |= family_short(state_, id, family.gangs);
  // Limits may have changed, or been used up by others, since the victims were told to go.
  family.over_limit = std::any_of(request.begin(), request.end(), [&](const auto& r) {
    return desk_->tenants.excess(state_, r.first, r.second, true).has_value();
  });
  return family;
}

/// Binds all pods of the family, or none.
bool Nominations::bind_all(Family& family) {
  std::size_t bound = 0;
  for (; bound < family.pods.size(); ++bound) {
    const auto& [g, p, n, devices] = family.pods[bound];
    if (needs_between(state_, p) && !fit_between(state_, p, n).ok()) {
      family.waits_for_leavers = false;  // That node is no place any more.
      break;
    }
    if (!fit_held(state_, p).ok()) break;
    state_->bind_nominated(p, desk_->now);
  }
  if (bound == family.pods.size()) return true;
  // No index has looked at these nodes in between, so nobody takes the undone binds for a gain.
  for (std::size_t i = bound; i-- > 0;) {
    state_->unbind(family.pods[i].pod);
    state_->nominate(family.pods[i].pod, family.pods[i].node, family.pods[i].devices);
  }
  return false;
}

std::vector<GangId> Nominations::settle(GangId id) {
  Family family = family_of(id);
  if (family.over_limit) {
    if (family.waits_for_leavers && !family.lost) return {};
    if (!family.waits_for_leavers) family.lost = true;
  }
  if (!family.lost) {
    if (bind_all(family)) {
      std::vector<PodId> placed;
      for (const Lifted& l : family.pods) placed.push_back(l.pod);
      desk_->tell_binds(placed);
      for (const GangId g : family.gangs) waiting_->unmark_nominated(g);
      return {};
    }
    if (family.waits_for_leavers) {
      for (const GangId g : family.gangs) waiting_->refuse(g, refusal_for_leavers(state_, g));
      return {};
    }
  }
  if (family.gangs.empty()) family.gangs.push_back(id);
  for (const GangId g : family.gangs) drop(g);
  return family.gangs;
}

}  // namespace muster::engine
