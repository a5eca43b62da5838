// What waits, and what would unblock it.
#include <algorithm>
#include <utility>

#include "engine/muster/planner.h"
#include "engine/state/fit.h"

namespace muster::engine {

namespace {

std::int32_t occupied(const GangState& gang) { return gang.bound + gang.succeeded; }

}  // namespace

/// Why the gang cannot be considered at all; kNone when it can.
Reason Planner::unready(const GangState& gang, Refusal& refusal) const {
  if (!gang.has_group && gang.spec.key.empty()) {
    refusal.subject = gang.key;
    return Reason::kGroupMissing;
  }
  if (gang.spec.is_parent) return Reason::kNone;
  if (gang.spec.hold) {
    refusal.subject = "suspended";
    return Reason::kGated;
  }
  if (gang.gated > 0 && (gang.bound == 0 || gang.gated == gang.pending)) {
    refusal.members_found = gang.gated;
    refusal.members_wanted = gang.pending;
    return Reason::kGated;
  }
  if (!gang.spec.parent.empty() && !state_.find_gang(gang.spec.parent).valid()) {
    refusal.subject = gang.spec.parent;
    return Reason::kParentMissing;
  }
  const std::int32_t exist = occupied(gang) + gang.pending;
  if (exist < gang.spec.min_member) {
    refusal.members_wanted = gang.spec.min_member;
    refusal.members_found = exist;
    return Reason::kNotEnoughMembers;
  }
  std::int32_t role_total = 0;
  for (const auto& [role, n] : gang.spec.min_task_member) role_total += n;
  if (!gang.spec.min_task_member.empty() && gang.spec.min_member >= role_total) {
    for (const auto& [role, n] : gang.spec.min_task_member) {
      std::int32_t have = 0;
      for (const PodId p : gang.pods) {
        const PodState& pod = state_.pod(p);
        have += pod.role == role && (pod.phase != PodPhase::kFinished || pod.succeeded) &&
                        pod.phase != PodPhase::kReleasing
                    ? 1
                    : 0;
      }
      if (have < n) {
        refusal.subject = role;
        refusal.members_wanted = n;
        refusal.members_found = have;
        return Reason::kNotEnoughMembers;
      }
    }
  }
  const TenantState& tenant = state_.tenant(gang.tenant);
  if (!tenant.live && tenant.name != state_.config().default_queue) return Reason::kQueueMissing;
  if (tenant.live && tenant.spec.state != QueueState::kOpen) return Reason::kQueueNotOpen;
  return Reason::kNone;
}

void Planner::update_phase(GangId id) {
  GangState& gang = state_.gang(id);
  if (!gang.has_group) return;
  const std::int32_t ended = gang.succeeded + gang.failed;
  const std::int32_t scheduled = gang.bound + gang.releasing + ended;
  GroupPhase phase = gang.phase;
  if (scheduled >= gang.spec.min_member && scheduled > 0) {
    phase = ended == scheduled && gang.pending == 0 ? GroupPhase::kCompleted : GroupPhase::kRunning;
  } else if (gang.bound > 0) {
    phase = GroupPhase::kUnknown;
  } else if (phase != GroupPhase::kInqueue) {
    phase = unadmitted_.contains(id) ? GroupPhase::kPending : GroupPhase::kInqueue;
  }
  if (phase == gang.phase) return;
  gang.phase = phase;
  plan_.phases.push_back({gang.key, phase});
}

/// The coarse check before anything is placed: do the least resources fit under the queue's limits,
/// beside what is admitted already?
bool Planner::admitted(GangId id) {
  const GangState& gang = state_.gang(id);
  if (!state_.config().admission || !gang.has_group || !gang.spec.min_resources) return true;
  if (gang.phase != GroupPhase::kPending || gang.spec.admitted) return true;
  return !tenants_.excess(state_, gang.tenant, state_.vector_of(*gang.spec.min_resources))
              .has_value();
}

void Planner::reclassify(GangId id) {
  if (waits_.size() <= id.index()) waits_.resize(state_.gang_count());
  const GangState& gang = state_.gang(id);
  GangWait& wait = waits_[id.index()];
  unlist(id);
  parked_queue_.erase(id);
  unadmitted_.erase(id);
  if (wait.seq != gang.seq || !gang.live || gang.pending == 0) {
    if (wait.nominated) drop_nominations(id);
    release_of(id);
    if (wait.told && (wait.seq != gang.seq || !gang.live || gang.bound == 0)) {
      plan_.waits.push_back({wait.told_group, wait.told_pod, Refusal{}});
    }
    wait = GangWait{};
    wait.seq = gang.seq;
    wait.since = now_;
  }
  if (!gang.live) return;
  if (gang.pending == 0 || gang.spec.is_parent) {
    update_phase(id);
    return;
  }
  Refusal refusal;
  refusal.reason = unready(gang, refusal);
  if (refusal.reason == Reason::kNone && !admitted(id)) {
    refusal = explain_limit(
        id, *tenants_.excess(state_, gang.tenant, state_.vector_of(*gang.spec.min_resources)));
    refusal.reason = Reason::kNotAdmitted;
    unadmitted_.insert(id);
  }
  if (refusal.reason != Reason::kNone) {
    if (refusal.reason == Reason::kQueueMissing || refusal.reason == Reason::kQueueNotOpen) {
      const TenantState& tenant = state_.tenant(gang.tenant);
      refusal.queue = tenant.name;
      if (refusal.reason == Reason::kQueueNotOpen)
        refusal.subject = tenant.spec.state == QueueState::kClosing ? "closing" : "closed";
      parked_queue_.insert(id);
    }
    release_of(id);
    if (wait.nominated) drop_nominations(id);  // What may not start must not hold room.
    refuse(id, std::move(refusal));
    update_phase(id);
    return;
  }
  update_phase(id);
  if (wait.nominated) {
    nominated_.insert(id);
    return;
  }
  list(id);
}

ShapeId Planner::shape_of(GangId id) {
  const GangState& gang = state_.gang(id);
  const Need need = need_of(gang);
  std::map<ClassId, std::int32_t> classes;
  std::int32_t pending = 0;
  bool alone = !gang.spec.topology.empty() || !gang.spec.parent.empty();
  for (const PodId p : gang.pods) {
    const PodState& pod = state_.pod(p);
    if (pod.phase != PodPhase::kPending || pod.gated || !pod.ours) continue;
    ++pending;
    ++classes[pod.cls];
    if (!alone && (state_.cls(pod.cls).between_pods || !state_.anti_affinity_pods().empty()))
      alone = needs_between(state_, p);
  }
  if (need.total > 0 && need.total < pending) {
    if (classes.size() == 1) {
      classes.begin()->second = need.total;
    } else {
      alone = true;
    }
  }
  std::string key;
  if (alone) key = "#" + std::to_string(gang.seq);
  if (need.total == 0) key += "+";
  // One that may not preempt must not speak for others of its shape that may.
  if (never_preempts(id)) key += "!";
  for (const auto& [cls, n] : classes) {
    key += std::to_string(cls.value) + "x" + std::to_string(need.total == 0 ? 1 : n) + ",";
  }
  const auto [it, fresh] =
      shape_ids_.try_emplace(key, ShapeId(static_cast<std::uint32_t>(shapes_.size())));
  if (fresh) {
    Shape shape;
    shape.alone = alone;
    shape.parts.assign(classes.begin(), classes.end());
    shapes_.push_back(std::move(shape));
  }
  return it->second;
}

void Planner::list(GangId id) {
  const GangState& gang = state_.gang(id);
  GangWait& wait = waits_[id.index()];
  wait.tenant = gang.tenant;
  wait.shape = shape_of(id);
  wait.rank.low_priority = -static_cast<std::int64_t>(gang.spec.priority);
  wait.rank.surplus = need_of(gang).total == 0;
  wait.rank.created_us = gang.created.us;
  wait.rank.seq = gang.seq;
  wait.rank.drf = 0;
  if (state_.config().drf) {
    for (std::size_t i = 0; i < gang.allocated.size(); ++i) {
      const std::int64_t all = state_.total()[i];
      if (all > 0) {
        wait.rank.drf = std::max(
            wait.rank.drf,
            static_cast<std::int64_t>(static_cast<__int128>(gang.allocated[i]) * 1'000'000 / all));
      }
    }
  }
  wait.duration_us = duration_of(id);
  wait.listed = true;
  ++waiting_count_;
  if (tenant_waits_.size() <= wait.tenant.index()) tenant_waits_.resize(state_.tenant_count());
  Bucket& bucket = tenant_waits_[wait.tenant.index()].buckets[wait.shape];
  bucket.by_rank.emplace(wait.rank, id);
  bucket.by_duration.emplace(wait.rank.low_priority, wait.duration_us, wait.rank, id);
  bucket.held = false;
  Shape& shape = shapes_[wait.shape.index()];
  ++shape.waiting;
  shape.tenants.insert(wait.tenant);
  if (state_.tenant(wait.tenant).spec.backfill == BackfillMode::kFifo) {
    // Only the first of such a queue is ever tried; the others learn here that they are behind it.
    const auto& buckets = tenant_waits_[wait.tenant.index()].buckets;
    if (std::any_of(buckets.begin(), buckets.end(), [&](const auto& b) {
          return b.second.by_rank.begin()->first < wait.rank;
        })) {
      Refusal behind;
      behind.reason = Reason::kBehindOthers;
      behind.queue = state_.tenant(wait.tenant).name;
      refuse(id, std::move(behind));
    }
  }
  if (!shape.blocked) {
    activate(wait.tenant);
  } else {
    // Behind others of its shape nothing is to be found; but it may outrank them and be worth
    // evictions.
    const auto& evictable = state_.evictable_priorities();
    const bool outranks = (!evictable.empty() && evictable.begin()->first < gang.spec.priority) ||
                          nominated_below(gang.spec.priority);
    if (bucket.by_rank.begin()->second == id && outranks) {
      // All who wait with this shape are looked at again: if evictions help this one, nobody blocks
      // the shape anew, and those of other tenants would be neither blocked nor active.
      shape.blocked = false;
      for (const TenantId t : shape.tenants) activate(t);
    } else {
      Refusal refusal = story_of(shape, id);
      if (!shape.has_refusal) refusal.reason = Reason::kNoNodeFits;
      refuse(id, std::move(refusal));
    }
  }
}

void Planner::unlist(GangId id) {
  GangWait& wait = waits_[id.index()];
  nominated_.erase(id);
  if (!wait.listed) return;
  wait.listed = false;
  --waiting_count_;
  TenantWait& tenant = tenant_waits_[wait.tenant.index()];
  const auto it = tenant.buckets.find(wait.shape);
  it->second.by_rank.erase({wait.rank, id});
  it->second.by_duration.erase({wait.rank.low_priority, wait.duration_us, wait.rank, id});
  // The next of a strict queue may be the first now.
  if (state_.tenant(wait.tenant).spec.backfill == BackfillMode::kFifo) activate(wait.tenant);
  Shape& shape = shapes_[wait.shape.index()];
  --shape.waiting;
  if (it->second.by_rank.empty()) {
    tenant.buckets.erase(it);
    shape.tenants.erase(wait.tenant);
  }
}

void Planner::activate(TenantId tenant) {
  if (tenant_waits_.size() <= tenant.index()) tenant_waits_.resize(state_.tenant_count());
  TenantWait& wait = tenant_waits_[tenant.index()];
  if (wait.active) return;
  wait.active = true;
  active_.push_back(tenant);
}

std::uint64_t Planner::gains_of(const Shape& shape) {
  std::uint64_t sum = 0;
  for (const auto& [cls, n] : shape.parts) {
    ClassIndex& index = index_.of(cls);
    index.catch_up(state_, index_.checks);
    sum += index.gains();
  }
  return sum;
}

std::uint64_t Planner::released_of(TenantId tenant) const {
  std::uint64_t sum = state_.tenants_version();
  TenantId t = tenant;
  for (int depth = 0; t.valid() && depth < 32; ++depth) {
    sum += state_.tenant(t).released;
    t = state_.tenant(t).parent;
  }
  return sum;
}

/// Queues that gave something back since they were found full.
void Planner::wake_limited() {
  std::vector<TenantId> limited;
  for (const TenantId t : limited_) {
    TenantWait& wait = tenant_waits_[t.index()];
    bool any = false;
    for (auto& [shape, bucket] : wait.buckets) {
      if (!bucket.over_limit) continue;
      if (bucket.limit_seen == released_of(t)) {
        any = true;
        continue;
      }
      bucket.over_limit = false;
      activate(t);
    }
    wait.limited = any;
    if (any) limited.push_back(t);
  }
  limited_ = std::move(limited);
}

/// Finds what the changes since the last decision may have unblocked.
void Planner::wake() {
  const bool queues_changed = tenants_seen_ != state_.tenants_version() || state_.config_changed();
  if (queues_changed) {
    tenants_seen_ = state_.tenants_version();
    state_.clear_config_changed();
    ++holds_version_;
    const std::set<GangId> parked = parked_queue_;
    for (const GangId id : parked) reclassify(id);
  }
  std::vector<ShapeId> still;
  for (const ShapeId id : blocked_) {
    Shape& shape = shapes_[id.index()];
    if (!shape.blocked || shape.waiting == 0) {
      shape.blocked = false;
      continue;
    }
    const bool changed =
        shape.alone ? shape.log_seen != state_.log_end() : gains_of(shape) != shape.gains;
    if (!changed && !queues_changed) {
      still.push_back(id);
      continue;
    }
    shape.blocked = false;
    for (const TenantId t : shape.tenants) activate(t);
  }
  blocked_ = std::move(still);
  wake_limited();
  if (!unadmitted_.empty() && admission_seen_ != state_.log_end()) {
    admission_seen_ = state_.log_end();
    const std::set<GangId> again = unadmitted_;
    for (const GangId id : again) reclassify(id);
  }
  // Gaps beside reservations may have changed with any release.
  const bool holds_matter = live_holds_ > 0 || holds_seen_ != holds_version_;
  holds_seen_ = holds_version_;
  for (std::uint32_t t = 0; holds_matter && t < tenant_waits_.size(); ++t) {
    for (auto& [shape, bucket] : tenant_waits_[t].buckets) {
      if (!bucket.held && !bucket.filling) continue;
      if (shapes_[shape.index()].blocked) continue;
      if (bucket.held_seen == gains_of(shapes_[shape.index()]) + holds_version_) continue;
      bucket.held = false;
      bucket.filling = false;
      activate(TenantId(t));
    }
  }
}

std::optional<Planner::Candidate> Planner::pick_in(TenantId tenant) {
  TenantWait& wait = tenant_waits_[tenant.index()];
  const BackfillMode mode = state_.tenant(tenant).spec.backfill;
  if (mode == BackfillMode::kFifo) {
    // Only the very first of the queue is ever looked at.
    const std::pair<Rank, GangId>* first = nullptr;
    const Bucket* of = nullptr;
    ShapeId shape;
    for (const auto& [id, bucket] : wait.buckets) {
      if (first != nullptr && *bucket.by_rank.begin() > *first) continue;
      first = &*bucket.by_rank.begin();
      of = &bucket;
      shape = id;
    }
    if (first == nullptr || shapes_[shape.index()].blocked || of->over_limit || of->held ||
        of->filling)
      return std::nullopt;
    return Candidate{first->second, false};
  }
  std::optional<Candidate> best;
  const Rank* best_rank = nullptr;
  std::tuple<std::int64_t, std::int64_t> best_length;
  for (const auto& [id, bucket] : wait.buckets) {
    if (shapes_[id.index()].blocked || bucket.over_limit || bucket.held) continue;
    const auto& [first_rank, first] = *bucket.by_rank.begin();
    if (!bucket.filling &&
        !(mode == BackfillMode::kReservation && behind_reservation(first_rank))) {
      if (!best || best->filling || first_rank < *best_rank) {
        best = Candidate{first, false};
        best_rank = &first_rank;
      }
    } else if (!best || best->filling) {
      const auto& [priority, duration, rank, gang] = *bucket.by_duration.begin();
      const std::tuple length(priority, duration);
      if (!best || length < best_length || (length == best_length && rank < *best_rank)) {
        best = Candidate{gang, true};
        best_rank = &rank;
        best_length = length;
      }
    }
  }
  return best;
}

/// Somebody ahead holds a reservation. Those behind fill the gaps, the shortest first: it leaves
/// most room for others before the reservation starts (Tsafrir, Etsion, Feitelson: "Backfilling
/// Using System-Generated Predictions", TPDS 2007).
bool Planner::behind_reservation(const Rank& rank) const {
  if (live_holds_ == 0) return false;
  return std::any_of(
      holds_.begin(), holds_.end(), [&](const Hold& h) { return h.live && h.rank < rank; });
}

/// The next gang to try: tenants in their order, then rank inside; fillers of gaps after everybody
/// else.
std::optional<Planner::Candidate> Planner::pick() {
  std::optional<Candidate> best;
  TenantId best_tenant;
  for (std::size_t i = 0; i < active_.size();) {
    const TenantId t = active_[i];
    const auto candidate = pick_in(t);
    if (!candidate) {
      tenant_waits_[t.index()].active = false;
      active_[i] = active_.back();
      active_.pop_back();
      continue;
    }
    ++i;
    if (!best || (best->filling && !candidate->filling) ||
        (best->filling == candidate->filling && tenants_.before(state_, t, best_tenant))) {
      best = candidate;
      best_tenant = t;
    }
  }
  return best;
}

/// The next to try; when there is none, groups that were bereft of another, then once more those
/// that were blocked while room was held for somebody who then got none.
std::optional<Planner::Candidate> Planner::pick_again(bool& again) {
  auto next = pick();
  while (!next && !bereft_.empty()) {
    try_bereft();
    next = pick();
  }
  if (next || (!again && !dropped_)) return next;
  again = dropped_ = false;
  for (const ShapeId id : blocked_) {
    Shape& shape = shapes_[id.index()];
    if (!shape.blocked || shape.alone || shape.waiting == 0 || gains_of(shape) == shape.gains)
      continue;
    shape.blocked = false;
    for (const TenantId t : shape.tenants) activate(t);
  }
  wake_limited();
  return pick();
}

}  // namespace muster::engine
