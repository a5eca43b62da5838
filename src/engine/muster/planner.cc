#include "engine/muster/planner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/muster/gang.h"

namespace muster::engine {

Planner::Planner(State& state)
    : desk_(state),
      waiting_(desk_),
      reservations_(desk_, waiting_),
      nominations_(desk_, waiting_, reservations_),
      intake_(desk_, waiting_, reservations_, nominations_),
      placer_(desk_, waiting_, reservations_),
      preemption_(desk_, waiting_, reservations_, nominations_),
      explainer_(desk_, waiting_, reservations_) {}

Plan Planner::decide(Time now) {
  begin(now);
  desk_.state->take_dirty_gangs(changed_);
  if (changed_.size() == 1 && place_at_once(changed_.front())) return std::move(desk_.plan);
  for (const GangId id : changed_) intake_.sort_in(id);
  // First: a nomination that is given up frees room that others must see in this very decision.
  settle_nominations();
  wake();
  reservations_.refresh();

  bool again = true;
  (void)nominations_.take_dropped();
  for (auto candidate = waiting_.pick(reservations_.first_rank()); candidate;
       candidate = next(again)) {
    try_to_start(*candidate);
  }
  if (waiting_.any_blocked()) reservations_.fill_places();

  tell_refusals();
  for (const GangId id : desk_.state->take_dirty_gangs()) intake_.update_phase(id);
  reservations_.publish();
  check();
  return std::move(desk_.plan);
}

/// A new clock value and an empty plan.
void Planner::begin(Time now) {
  desk_.now = now;
  desk_.plan = Plan{};
  desk_.tenants.refresh(desk_.state);
  waiting_.begin_decision();
  reservations_.begin_decision();
}

/// A lone pod that arrives while nobody waits competes with nobody: it needs no place in any queue.
bool Planner::place_at_once(GangId id) {
  State& state = desk_.state;
  const GangState& gang = state.gang(id);
  if (waiting_.count() != 0 || !reservations_.none() || !waiting_.nominated().empty() ||
      !intake_.none_set_aside())
    return false;
  if (!gang.live || gang.has_group || gang.pods.size() != 1 || gang.pending != 1 ||
      gang.gated != 0 || !gang.described)
    return false;
  WaitRecord& record = waiting_.record(id);
  if (!intake_.queues_are_known() || record.told || record.nominated) return false;
  const PodId pod = gang.pods.front();
  const TenantState& tenant = state.tenant(gang.tenant);
  const bool open = tenant.live ? tenant.spec.state == QueueState::kOpen
                                : tenant.name == state.config().default_queue;
  if (!state.pod(pod).ours || !open) return false;
  if (desk_.tenants.excess(state, gang.tenant, state.cls_of(pod).request)) return false;
  const Place place = placer_.pick_node(pod, id);
  if (!place.node.valid()) return false;
  state.bind(pod, place.node, desk_.now, place.device);
  desk_.tell_binds({&pod, 1});
  state.forget_dirty_gangs();
  record.seq = gang.seq;
  return true;
}

/// Those whose victims were told to go: all room there -> bind; still waiting -> keep; hopeless ->
/// start again.
void Planner::settle_nominations() {
  if (waiting_.nominated().empty()) return;
  const std::set<GangId> gangs = waiting_.nominated();
  for (const GangId id : gangs) {
    if (!waiting_.is_nominated(id)) continue;
    for (const GangId lost : nominations_.settle(id)) intake_.sort_in(lost);
  }
  intake_.sort_in_changed();
}

/// Finds what the changes since the last decision may have unblocked.
void Planner::wake() {
  const bool queues_changed = intake_.notice_queues();
  waiting_.wake_blocked(queues_changed);
  waiting_.wake_limited();
  intake_.admit_again();
  waiting_.wake_held(reservations_.version(), !reservations_.none());
}

/// The next to try; when there is none, groups that were bereft of another, then once more those
/// that were blocked while room was held for a gang which then got none.
std::optional<Candidate> Planner::next(bool& again) {
  auto candidate = waiting_.pick(reservations_.first_rank());
  while (!candidate && nominations_.any_bereft()) {
    for (const GangId id : nominations_.take_bereft()) {
      if (!waiting_.is_nominated(id)) continue;
      for (const GangId lost : nominations_.settle(id)) intake_.sort_in(lost);
    }
    intake_.sort_in_changed();
    candidate = waiting_.pick(reservations_.first_rank());
  }
  if (candidate) return candidate;
  const bool dropped = nominations_.take_dropped();
  if (!again && !dropped) return std::nullopt;
  again = false;
  waiting_.reopen_blocked();
  waiting_.wake_limited();
  return waiting_.pick(reservations_.first_rank());
}

void Planner::try_to_start(const Candidate& candidate) {
  State& state = desk_.state;
  const GangId id = candidate.gang;
  const WaitRecord& record = waiting_.record(id);
  const ShapeId shape = record.shape;
  const Members members = members_of(state, id);
  if (const auto excess = desk_.tenants.excess(state, record.tenant, request_of(state, members))) {
    try_over_limit(candidate, *excess);
    return;
  }
  ++state.attempts;
  (void)waiting_.gains_of(waiting_.shape(shape));
  const Outcome outcome = placer_.place(members);
  if (outcome.placed) {
    started(outcome.pods);
    return;
  }
  // Undone binds left marks; the gangs did not change, and no node gained anything.
  for (const auto& [cls, n] : waiting_.shape(shape).parts)
    desk_.index.of(cls).catch_up(state, desk_.index.checks, true);
  for (const GangId g : state.take_dirty_gangs()) {
    if (g != id && !waiting_.record(g).listed) intake_.sort_in(g);
  }
  bool held = outcome.held;
  if (!held) {
    const Preemption::Result room = make_room(id, false);
    if (room.made) return;
    held = room.held;
  }
  if (held) {
    waiting_.let_pass(candidate, reservations_.version());
    waiting_.refuse_by(id, [&] { return explainer_.reservation(id); });
    if (candidate.filling) hold_alike(id);
    return;
  }
  block(id);
}

/// What may not pass the reservations in one queue may not in any other, if it is of the same shape, no
/// shorter, and stands behind all of them as well: a release would otherwise cost a try in every queue.
void Planner::hold_alike(GangId refused) {
  const WaitRecord& record = waiting_.record(refused);
  const ShapeId shape = record.shape;
  const auto last = reservations_.last_rank();
  if (!last || !(*last < record.rank) || waiting_.shape(shape).alone) return;
  const State& state = desk_.state;
  for (const TenantId tenant : waiting_.shape(shape).tenants) {
    const Bucket& bucket = waiting_.buckets(tenant).at(shape);
    if (tenant == record.tenant || bucket.held || bucket.over_limit) continue;
    if (state.tenant(tenant).spec.backfill != BackfillMode::kReservation) continue;
    const GangId next = std::get<GangId>(bucket.by_duration.first());
    const WaitRecord& like = waiting_.foretell(next);
    const bool behind = *last < bucket.by_rank.begin()->first && *last < like.rank;
    const bool longer = like.at_most_us >= record.at_most_us && (record.sure || !like.sure);
    if (!behind || !longer || like.rank.surplus != record.rank.surplus) continue;
    if (desk_.tenants.excess(state, tenant, request_of(state, members_of(state, next)))) continue;
    waiting_.let_pass({next, true}, reservations_.version());
    waiting_.refuse_by(next, [&] { return explainer_.reservation(next); });
  }
}

/// Its own queue is full: lower ranks of the same queue may have to go.
void Planner::try_over_limit(const Candidate& candidate, const Tenants::Excess& excess) {
  waiting_.refuse_by(candidate.gang, [&] { return refusal_for_limit(desk_.state, excess); });
  const Preemption::Result room = make_room(candidate.gang, true);
  if (room.made) return;
  if (room.held) {
    waiting_.let_pass(candidate, reservations_.version());
  } else {
    waiting_.mark_over_limit(candidate.gang);
  }
}

Preemption::Result Planner::make_room(GangId id, bool over_limit) {
  Preemption::Result room = preemption_.make_room_for(id, over_limit);
  for (const GangId lost : room.lost) intake_.sort_in(lost);
  if (room.made) intake_.sort_in_changed();
  return room;
}

/// Of a family only some groups may have started, the one that asked not among them.
void Planner::started(const std::vector<PodId>& pods) {
  desk_.tell_binds(pods);
  const std::uint64_t before = reservations_.version();
  for (std::size_t i = 0; !reservations_.none() && i < pods.size(); ++i)
    reservations_.release_of(desk_.state->pod(pods[i]).gang);
  intake_.sort_in_changed();
  if (reservations_.version() != before) reservations_.fill_places();
}

/// No node fits, and nobody can be made to leave.
void Planner::block(GangId id) {
  const WaitRecord& record = waiting_.record(id);
  const ShapeId shape_id = record.shape;
  const TenantId tenant = record.tenant;
  waiting_.block(shape_id);
  Shape& shape = waiting_.shape(shape_id);
  const bool will_be_told =
      static_cast<std::int32_t>(waiting_.untold().size()) < desk_.state->config().reason_limit;
  if (will_be_told && (!record.told || !shape.has_refusal)) {
    // The story of a shape is told anew at most once a second of the caller's clock.
    if (!shape.has_refusal || shape.alone ||
        shape.refusal_at + std::chrono::seconds(1) <= desk_.now) {
      shape.refusal = explainer_.nodes(id);
      shape.refusal_at = desk_.now;
      shape.has_refusal = true;
    }
  }
  waiting_.refuse_by(id, [&] { return waiting_.story_of(shape, id); });
  // The one tried may be the shortest of its kind; a reservation is for the first.
  const auto& buckets = waiting_.buckets(tenant);
  const auto bucket = buckets.find(shape_id);
  reservations_.reserve_for(bucket == buckets.end() ? id : bucket->second.by_rank.begin()->second);
}

/// Tells the caller, up to the limit, why those wait that were refused in this decision.
void Planner::tell_refusals() {
  std::int32_t told = 0;
  for (const GangId id : waiting_.untold()) {
    if (told++ >= desk_.state->config().reason_limit) break;
    WaitRecord& record = waiting_.record(id);
    const GangState& gang = desk_.state->gang(id);
    if (record.told || !gang.live || gang.pending == 0 || record.refusal->reason == Reason::kNone)
      continue;
    record.told = true;
    const bool as_group = gang.has_group || !gang.described;
    record.told_group = as_group ? gang.key : Name();
    record.told_pod = as_group ? Name() : gang.key;
    Refusal refusal = record.refusal;
    explainer_.add_ahead(id, refusal);
    record.refusal = refusal;
    desk_.plan.waits.push_back({record.told_group, record.told_pod, std::move(refusal)});
  }
}

void Planner::check() {
  if (!desk_.state->config().check_tables) return;
  desk_.state->check();
  desk_.departures.catch_up(desk_);
  desk_.departures.check(desk_);
  waiting_.check();
  reservations_.check();
  explainer_.check();
}

}  // namespace muster::engine
