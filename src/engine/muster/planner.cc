#include "engine/muster/planner.h"

#include <algorithm>

namespace muster::engine {

/// A lone pod that arrives while nobody waits competes with nobody: it needs no place in any queue.
bool Planner::place_at_once(GangId id) {
  const GangState& gang = state_.gang(id);
  if (waiting_count_ != 0 || live_holds_ != 0 || !nominated_.empty() || !parked_queue_.empty() ||
      !unadmitted_.empty())
    return false;
  if (!gang.live || gang.has_group || gang.pods.size() != 1 || gang.pending != 1 ||
      gang.gated != 0 || gang.spec.key.empty())
    return false;
  if (tenants_seen_ != state_.tenants_version() || waits_[id.index()].told ||
      waits_[id.index()].nominated)
    return false;
  const PodId pod = gang.pods.front();
  const TenantState& tenant = state_.tenant(gang.tenant);
  if (!state_.pod(pod).ours || (tenant.live ? tenant.spec.state != QueueState::kOpen
                                            : tenant.name != state_.config().default_queue))
    return false;
  if (tenants_.excess(state_, gang.tenant, state_.cls_of(pod).request)) return false;
  const NodeId node = pick_node(pod, id, nullptr);
  if (!node.valid()) return false;
  state_.bind(pod, node, now_, picked_device_);
  emit(id, {pod});
  (void)state_.take_dirty_gangs();
  waits_[id.index()].seq = gang.seq;
  return true;
}

/// A reservation is in its way: those like it wait for that to change, or for a gain; only shorter
/// ones are still tried.
void Planner::let_pass(const Candidate& candidate) {
  const GangWait& wait = waits_[candidate.gang.index()];
  Bucket& bucket = tenant_waits_[wait.tenant.index()].buckets[wait.shape];
  if (bucket.filling || candidate.filling) {
    bucket.held = true;
  } else {
    bucket.filling = true;
  }
  bucket.held_seen = gains_of(shapes_[wait.shape.index()]) + holds_version_;
}

Plan Planner::decide(Time now) {
  now_ = now;
  ++state_.epoch;
  plan_ = Plan{};
  untold_.clear();
  holds_changed_ = false;
  tenants_.refresh(state_);
  if (waits_.size() < state_.gang_count()) waits_.resize(state_.gang_count());
  if (tenant_waits_.size() < state_.tenant_count()) tenant_waits_.resize(state_.tenant_count());
  if (slots_.size() < state_.node_count()) slots_.resize(state_.node_count());

  for (const Completion& c : state_.take_completions()) {
    if (c.started < now_) durations_.learn(c.tenant, c.cls, (now_ - c.started).count());
  }
  const std::vector<GangId> dirty = state_.take_dirty_gangs();
  if (dirty.size() == 1 && place_at_once(dirty.front())) return std::move(plan_);
  for (const GangId id : dirty) reclassify(id);
  // First: a nomination that is given up frees room that others must see in this very decision.
  if (!nominated_.empty()) {
    try_nominated();
    for (const GangId id : state_.take_dirty_gangs()) reclassify(id);
  }
  wake();
  refresh_reservations();

  bool again = true;
  dropped_ = false;
  for (auto candidate = pick(); candidate; candidate = pick_again(again)) {
    const GangId id = candidate->gang;
    const TenantId tenant = waits_[id.index()].tenant;
    const ShapeId shape_id = waits_[id.index()].shape;
    const Need need = need_of(state_.gang(id));
    const auto excess = tenants_.excess(state_, tenant, request_of(id, need));
    if (excess) {
      Bucket& bucket = tenant_waits_[tenant.index()].buckets[shape_id];
      refuse(id, explain_limit(id, *excess));
      // Its own queue is full: lower ranks of the same queue may have to go.
      was_held_ = false;
      if (preempt(id, true)) {
        for (const GangId g : state_.take_dirty_gangs()) reclassify(g);
        continue;
      }
      if (was_held_) {
        let_pass(*candidate);
        continue;
      }
      bucket.over_limit = true;
      bucket.limit_seen = released_of(tenant);
      TenantWait& wait = tenant_waits_[tenant.index()];
      if (!wait.limited) {
        wait.limited = true;
        limited_.push_back(tenant);
      }
      continue;
    }
    std::vector<PodId> placed;
    (void)gains_of(shapes_[shape_id.index()]);
    const Outcome outcome = attempt(id, placed);
    if (outcome == Outcome::kPlaced) {
      emit(id, placed);
      // Of a family only some groups may have started, the one that asked not among them.
      const std::uint64_t holds_before = holds_version_;
      for (std::size_t i = 0; live_holds_ > 0 && i < placed.size(); ++i)
        release_of(state_.pod(placed[i]).gang);
      for (const GangId g : state_.take_dirty_gangs()) reclassify(g);
      if (holds_version_ != holds_before) fill_reservations();
      continue;
    }
    // Undone binds left marks; the gangs did not change, and no node gained anything.
    for (const auto& [cls, n] : shapes_[shape_id.index()].parts)
      index_.of(cls).catch_up(state_, index_.checks, true);
    for (const GangId g : state_.take_dirty_gangs()) {
      if (g != id && !waits_[g.index()].listed) reclassify(g);
    }
    if (outcome != Outcome::kHeld && preempt(id, false)) {
      for (const GangId g : state_.take_dirty_gangs()) reclassify(g);
      continue;
    }
    if (was_held_) {
      let_pass(*candidate);
      refuse(id, explain_held(id));
      continue;
    }
    Shape& shape = shapes_[shape_id.index()];
    shape.blocked = true;
    shape.gains = gains_of(shape);
    shape.log_seen = state_.log_end();
    blocked_.push_back(shape_id);
    const bool will_be_told =
        static_cast<std::int32_t>(untold_.size()) < state_.config().reason_limit;
    if (will_be_told && (!waits_[id.index()].told || !shape.has_refusal)) {
      // The story of a shape is told anew at most once a second of the caller's clock.
      if (!shape.has_refusal || shape.alone || shape.refusal_at + std::chrono::seconds(1) <= now_) {
        shape.refusal = explain_nodes(id);
        shape.refusal_at = now_;
        shape.has_refusal = true;
      }
    }
    refuse(id, story_of(shape, id));
    // The one tried may be the shortest of its kind; a reservation is for the first.
    const Bucket& bucket = tenant_waits_[tenant.index()].buckets[shape_id];
    reserve(bucket.by_rank.empty() ? id : bucket.by_rank.begin()->second);
  }
  if (live_holds_ < static_cast<std::size_t>(std::max(state_.config().reservations, 0)) &&
      !blocked_.empty())
    fill_reservations();

  std::int32_t told = 0;
  for (const GangId id : untold_) {
    if (told++ >= state_.config().reason_limit) break;
    tell(id);
  }
  for (const GangId id : state_.take_dirty_gangs()) update_phase(id);
  plan_.reservations_changed = holds_changed_;
  if (holds_changed_) {
    for (const Hold& hold : holds_) {
      if (!hold.live) continue;
      Reservation r;
      r.holder = state_.gang(hold.gang).key;
      r.start = hold.start;
      r.member = hold.member;
      for (const NodeId n : hold.nodes) {
        r.nodes.push_back(state_.node(n).spec.name);
        for (const Slot& slot : slots_[n.index()]) {
          if (&holds_[slot.reservation] == &hold) r.members.push_back(slot.members);
        }
      }
      plan_.reservations.push_back(std::move(r));
    }
  }
  return std::move(plan_);
}

}  // namespace muster::engine
