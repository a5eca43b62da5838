#include "engine/muster/intake.h"

#include <utility>

#include "engine/muster/explain.h"
#include "engine/muster/gang.h"

namespace muster::engine {

void Intake::update_phase(GangId id) {
  GangState& gang = state_->gang(id);
  if (!gang.has_group) return;
  const std::int32_t ended = gang.succeeded + gang.failed;
  const std::int32_t scheduled = gang.bound + gang.releasing + ended;
  GroupPhase phase = gang.phase;
  if (scheduled >= gang.spec->min_member && scheduled > 0) {
    phase = ended == scheduled && gang.pending == 0 ? GroupPhase::kCompleted : GroupPhase::kRunning;
  } else if (gang.bound > 0) {
    phase = GroupPhase::kUnknown;
  } else if (phase != GroupPhase::kInqueue) {
    phase = unadmitted_.contains(id) ? GroupPhase::kPending : GroupPhase::kInqueue;
  }
  if (phase == gang.phase) return;
  gang.phase = phase;
  desk_->plan.phases.push_back({gang.key, phase});
}

/// The coarse check before anything is placed applies: its group names the least resources that
/// must fit under the queue's limits, beside what is admitted already.
bool Intake::admission_matters(const GangState& gang) const {
  return state_->config().admission && gang.has_group && gang.spec->min_resources &&
         gang.phase == GroupPhase::kPending && !gang.spec->admitted;
}

/// Reason kNone: it may wait for a place. Otherwise it is set aside where that is to be asked again.
Refusal Intake::reason_to_stay_out(GangId id) {
  const GangState& gang = state_->gang(id);
  Refusal refusal = unready(state_, gang);
  if (refusal.reason == Reason::kQueueMissing || refusal.reason == Reason::kQueueNotOpen)
    parked_.insert(id);
  if (refusal.reason != Reason::kNone || !admission_matters(gang)) return refusal;
  const auto excess =
      desk_->tenants.excess(state_, gang.tenant, state_->vector_of(*gang.spec->min_resources));
  if (!excess) return refusal;
  refusal = refusal_for_limit(state_, *excess);
  refusal.reason = Reason::kNotAdmitted;
  unadmitted_.insert(id);
  return refusal;
}

/// Nothing of the gang waits any more, or another gang has its id now.
void Intake::forget(GangId id) {
  const GangState& gang = state_->gang(id);
  WaitRecord& record = waiting_->record(id);
  if (record.nominated) nominations_->drop(id);
  reservations_->release_of(id);
  if (record.told && (record.seq != gang.seq || !gang.live || gang.bound == 0))
    desk_->plan.waits.push_back({record.told_group, record.told_pod, Refusal{}});
  record = WaitRecord{};
  record.seq = gang.seq;
  record.since = desk_->now;
}

void Intake::sort_in(GangId id) {
  waiting_->make_record(id);
  const GangState& gang = state_->gang(id);
  WaitRecord& record = waiting_->record(id);
  waiting_->leave(id);
  parked_.erase(id);
  unadmitted_.erase(id);
  if (record.seq != gang.seq || !gang.live || gang.pending == 0) forget(id);
  if (!gang.live) return;
  if (gang.pending == 0 || gang.spec->is_parent) {
    update_phase(id);
    return;
  }
  Refusal refusal = reason_to_stay_out(id);
  if (refusal.reason != Reason::kNone) {
    reservations_->release_of(id);
    // What may not start must not hold room.
    if (record.nominated) nominations_->drop(id);
    waiting_->refuse(id, std::move(refusal));
    update_phase(id);
    return;
  }
  update_phase(id);
  if (record.nominated) {
    waiting_->mark_nominated(id);
  } else {
    waiting_->enter(id);
  }
}

void Intake::sort_in_changed() {
  for (const GangId id : state_->take_dirty_gangs()) sort_in(id);
}

bool Intake::notice_queues() {
  if (queues_are_known() && !state_->config_changed()) return false;
  tenants_seen_ = state_->tenants_version();
  state_->clear_config_changed();
  reservations_->bump_version();
  const std::set<GangId> parked = parked_;
  for (const GangId id : parked) sort_in(id);
  return true;
}

void Intake::admit_again() {
  if (unadmitted_.empty() || admission_seen_ == state_->log_end()) return;
  admission_seen_ = state_->log_end();
  const std::set<GangId> again = unadmitted_;
  for (const GangId id : again) sort_in(id);
}

}  // namespace muster::engine
