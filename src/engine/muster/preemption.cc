#include "engine/muster/preemption.h"

#include <utility>

namespace muster::engine {

void Preemption::carry_out(GangId id, const EvictionPlan& plan, PodId any_task, bool reclaim) {
  std::set<GangId> hosted;
  for (const auto& [node, on] : plan.nodes) {
    for (const PodId v : on.victims) {
      const PodState& pod = state_->pod(v);
      Evict e;
      e.pod = pod.key;
      e.uid = pod.uid;
      e.node = state_->node(node).spec->name;
      e.kind = reclaim ? EvictKind::kReclaim : EvictKind::kPreempt;
      e.for_whom = state_->gang(id).key;
      e.for_whom_pod = state_->pod(on.guests.empty() ? any_task : on.guests.front().pod).key;
      e.message =
          (reclaim ? "Reclaimed for " : "Preempted by ") + e.for_whom_pod + " on node " + e.node;
      desk_->plan.evicts.push_back(std::move(e));
      state_->evict(v);
    }
    for (const auto& [guest, devices] : on.guests) {
      nominations_->nominate(guest, node, devices);
      hosted.insert(state_->pod(guest).gang);
    }
  }
  for (const GangId g : hosted) nominations_->hold(g);
}

Preemption::Grounds Preemption::grounds_of(const GangState& gang,
                                           const ResourceVector& request,
                                           bool over_limit) const {
  const Config& config = state_->config();
  const auto& evictable = state_->evictable_priorities();
  const std::int32_t priority = gang.spec->priority;
  const bool t9k = state_->tenant(gang.tenant).spec.t9k;
  Grounds grounds;
  grounds.over_nominated =
      config.preempt && !over_limit && !t9k && waiting_->nominated_below(priority);
  grounds.by_priority =
      config.preempt && ((!evictable.empty() && (t9k || evictable.begin()->first < priority)) ||
                         grounds.over_nominated);
  grounds.by_share = config.reclaim && desk_->tenants.may_reclaim(state_, gang.tenant, request) &&
                     desk_->tenants.anybody_can_give(state_, gang.tenant, request);
  return grounds;
}

/// A family's other groups may be of classes of their own.
std::set<ClassId> Preemption::waiting_classes(GangId root) const {
  std::set<ClassId> classes;
  for (const GangId leaf : state_->leaves_of(root)) {
    for (const PodId p : state_->gang(leaf).pods) {
      if (state_->pod(p).phase == PodPhase::kPending) classes.insert(state_->pod(p).cls);
    }
  }
  return classes;
}

/// Finds victims and carries the plan out. With `lift`, nominations of lower ranks are off the books
/// meanwhile.
RoomFound Preemption::find(RoomRequest request, GangId id, PodId task, bool lift) {
  // What is lifted here and put back below is no gain for anybody who waits: the indexes of all
  // that is planned for read first what is.
  std::set<ClassId> classes;
  std::vector<Nominations::Lifted> lifted;
  if (lift) {
    classes = waiting_classes(request.root);
    for (const ClassId cls : classes) desk_->index.of(cls).catch_up(state_, desk_->index.checks);
    lifted = nominations_->lift_lower(request.who);
  }
  request.undone = !lifted.empty();
  RoomFound room = rooms_.find(request);
  if (room.found) {
    carry_out(id, room.plan, task, request.who.reclaim);
    // Cheaper groups of its family may have got the room.
    waiting_->record(id).preempt_epoch = state_->epoch;
  }
  if (lifted.empty()) return room;
  nominations_->put_back(std::move(lifted), room.found);
  for (const ClassId cls : classes) {
    desk_->index.of(cls).catch_up(state_, desk_->index.checks, true);
    if (room.found) desk_->index.of(cls).note_gain();
  }
  return room;
}

Preemption::Result Preemption::make_room_for(GangId id, bool over_limit) {
  Result result;
  const GangState& gang = state_->gang(id);
  const Members members = members_of(state_, id);
  if (members.tasks.empty() || never_preempts(state_, id)) return result;
  // A family is planned for from its root, as a whole; once enough of it runs or has its room, each
  // group for itself.
  const auto& nominated = waiting_->nominated();
  const bool alone =
      members.need.total == 0 || !family_short(state_, id, {nominated.begin(), nominated.end()});
  const GangId root = alone ? id : state_->root_of(id);
  if (over_limit && root != id) return result;

  const ResourceVector request = request_of(state_, members);
  const Grounds grounds = grounds_of(gang, request, over_limit);
  const bool t9k = state_->tenant(gang.tenant).spec.t9k;
  WaitRecord& record = waiting_->record(id);
  if (!grounds.by_priority && !grounds.by_share) return result;
  if (record.preempt_seen == state_->log_end() + reservations_->version()) return result;
  if (record.preempt_epoch == state_->epoch) return result;

  RoomRequest wanted;
  wanted.root = root;
  wanted.who = {.cls = state_->pod(members.tasks.front()).cls,
                .priority = gang.spec->priority,
                .tenant = gang.tenant,
                .gang = id};
  wanted.over_limit = over_limit ? &request : nullptr;
  for (const bool reclaim : {true, false}) {
    if (reclaim ? !grounds.by_share || over_limit : !grounds.by_priority) continue;
    if (over_limit && t9k) continue;
    wanted.who.reclaim = reclaim;
    const RoomFound room =
        find(wanted, id, members.tasks.front(), !reclaim && grounds.over_nominated);
    result.held |= room.held;
    if (!room.found) continue;
    result.made = true;
    // Its room may be there already.
    if (room.plan.victims.empty()) result.lost = nominations_->settle(id);
    return result;
  }
  record.preempt_seen = state_->log_end() + reservations_->version();
  return result;
}

}  // namespace muster::engine
