#include "engine/muster/waiting.h"

#include <algorithm>

#include "base/result.h"
#include "engine/muster/gang.h"
#include "engine/state/fit.h"

namespace muster::engine {

void Waiting::begin_decision() {
  untold_.clear();
  ++pick_round_;
  records_.grow_to(state_->gang_count());
  if (lines_.size() < state_->tenant_count()) lines_.resize(state_->tenant_count());
}

Waiting::Line& Waiting::line(TenantId tenant) {
  if (lines_.size() <= tenant.index()) lines_.resize(state_->tenant_count());
  return lines_[tenant.index()];
}

const std::map<ShapeId, Bucket>& Waiting::buckets(TenantId tenant) const {
  return lines_[tenant.index()].buckets;
}

ShapeId Waiting::shape_of(GangId id) {
  const GangState& gang = state_->gang(id);
  const Need need = need_of(state_, gang);
  std::map<ClassId, std::int32_t> classes;
  std::int32_t pending = 0;
  bool alone = !gang.spec->topology.empty() || !gang.spec->parent.empty();
  for (const PodId p : gang.pods) {
    const PodState& pod = state_->pod(p);
    if (pod.phase != PodPhase::kPending || pod.gated || !pod.ours) continue;
    ++pending;
    ++classes[pod.cls];
    if (!alone && (state_->cls(pod.cls).between_pods || !state_->anti_affinity_pods().empty()))
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
  if (never_preempts(state_, id)) key += "!";
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

Rank Waiting::rank_of(const GangState& gang) const {
  Rank rank;
  rank.low_priority = -static_cast<std::int64_t>(gang.spec->priority);
  rank.surplus = need_of(state_, gang).total == 0;
  rank.created_us = gang.created.us;
  rank.seq = gang.seq;
  if (!state_->config().drf) return rank;
  for (std::size_t i = 0; i < gang.allocated.size(); ++i) {
    const std::int64_t all = state_->total()[i];
    if (all <= 0) continue;
    const auto millionths = static_cast<__int128>(gang.allocated[i]) * 1'000'000 / all;
    rank.drf = std::max(rank.drf, static_cast<std::int64_t>(millionths));
  }
  return rank;
}

void Waiting::enter(GangId id) {
  const GangState& gang = state_->gang(id);
  WaitRecord& record = records_[id.index()];
  MUSTER_CHECK(!record.listed, "a gang enters the waiting list once");
  record.tenant = gang.tenant;
  record.shape = shape_of(id);
  record.rank = rank_of(gang);
  const Expected expected = expected_duration(state_, desk_->now, id);
  record.length = {expected.us, expected.kind};
  record.at_most_us = expected.at_most_us;
  record.sure = expected.sure;
  record.foretold_epoch = state_->epoch;
  record.listed = true;
  ++count_;
  Line& in = line(record.tenant);
  forget_pick(in);
  Bucket& bucket = in.buckets[record.shape];
  bucket.by_rank.emplace(record.rank, id);
  bucket.by_duration.insert(record.rank, id, record.length);
  bucket.held = false;
  Shape& shape = shapes_[record.shape.index()];
  ++shape.waiting;
  shape.tenants.insert(record.tenant);
  tell_if_behind(id);
  if (shape.blocked) {
    enter_blocked(id, shape, bucket);
  } else {
    activate(record.tenant);
  }
}

const WaitRecord& Waiting::foretell(GangId id) {
  WaitRecord& record = records_[id.index()];
  if (record.foretold_epoch == state_->epoch) return record;
  record.foretold_epoch = state_->epoch;
  const Expected expected = expected_duration(state_, desk_->now, id);
  record.at_most_us = expected.at_most_us;
  record.sure = expected.sure;
  return record;
}

/// Only the first of a strict queue is ever tried; the others learn here that they are behind it.
void Waiting::tell_if_behind(GangId id) {
  const WaitRecord& record = records_[id.index()];
  const TenantState& tenant = state_->tenant(record.tenant);
  if (tenant.spec.backfill != BackfillMode::kFifo) return;
  const auto& all = lines_[record.tenant.index()].buckets;
  const bool behind = std::any_of(all.begin(), all.end(), [&](const auto& b) {
    return b.second.by_rank.begin()->first < record.rank;
  });
  if (!behind) return;
  Refusal refusal;
  refusal.reason = Reason::kBehindOthers;
  refusal.queue = tenant.name;
  refuse(id, std::move(refusal));
}

/// Behind others of its shape nothing is to be found; but it may outrank them and be worth
/// evictions.
void Waiting::enter_blocked(GangId id, Shape& shape, const Bucket& bucket) {
  const std::int32_t priority = state_->gang(id).spec->priority;
  const auto& evictable = state_->evictable_priorities();
  const bool outranks =
      (!evictable.empty() && evictable.begin()->first < priority) || nominated_below(priority);
  if (bucket.by_rank.begin()->second == id && outranks) {
    // All who wait with this shape are looked at again: if evictions help this one, nobody blocks
    // the shape anew, and those of other tenants would be neither blocked nor active.
    unblock(shape);
    return;
  }
  Refusal refusal = story_of(shape, id);
  if (!shape.has_refusal) refusal.reason = Reason::kNoNodeFits;
  refuse(id, std::move(refusal));
}

void Waiting::leave(GangId id) {
  WaitRecord& record = records_[id.index()];
  nominated_.erase(id);
  if (!record.listed) return;
  record.listed = false;
  --count_;
  Line& in = lines_[record.tenant.index()];
  forget_pick(in);
  const auto it = in.buckets.find(record.shape);
  MUSTER_CHECK(it != in.buckets.end(), "a listed gang stands in the bucket of its shape");
  const std::size_t by_rank = it->second.by_rank.erase({record.rank, id});
  MUSTER_CHECK(by_rank == 1 && it->second.by_duration.erase(record.rank, id, record.length),
               "a listed gang stands in its bucket by rank and by duration");
  // The next of a strict queue may be the first now.
  if (state_->tenant(record.tenant).spec.backfill == BackfillMode::kFifo) activate(record.tenant);
  Shape& shape = shapes_[record.shape.index()];
  --shape.waiting;
  MUSTER_CHECK(shape.waiting >= 0 && count_ >= 0, "no fewer than none wait");
  if (it->second.by_rank.empty()) {
    in.buckets.erase(it);
    shape.tenants.erase(record.tenant);
  }
}

void Waiting::activate(TenantId tenant) {
  Line& in = line(tenant);
  if (in.active) return;
  in.active = true;
  active_.push_back(tenant);
}

void Waiting::unblock(Shape& shape) {
  shape.blocked = false;
  for (const TenantId t : shape.tenants) {
    forget_pick(lines_[t.index()]);
    activate(t);
  }
}

std::uint64_t Waiting::gains_of(const Shape& shape) {
  std::uint64_t sum = 0;
  for (const auto& [cls, n] : shape.parts) {
    ClassIndex& index = desk_->index.of(cls);
    index.catch_up(state_, desk_->index.checks);
    sum += index.gains();
  }
  return sum;
}

std::uint64_t Waiting::released_of(TenantId tenant) const {
  std::uint64_t sum = state_->tenants_version();
  TenantId t = tenant;
  for (int depth = 0; t.valid() && depth < 32; ++depth) {
    sum += state_->tenant(t).released;
    t = state_->tenant(t).parent;
  }
  return sum;
}

void Waiting::block(ShapeId id) {
  Shape& shape = shapes_[id.index()];
  shape.blocked = true;
  for (const TenantId t : shape.tenants) forget_pick(lines_[t.index()]);
  shape.gains = gains_of(shape);
  shape.log_seen = state_->log_end();
  blocked_.push_back(id);
}

void Waiting::mark_over_limit(GangId id) {
  const WaitRecord& record = records_[id.index()];
  Line& in = lines_[record.tenant.index()];
  forget_pick(in);
  Bucket& bucket = in.buckets[record.shape];
  bucket.over_limit = true;
  bucket.limit_seen = released_of(record.tenant);
  if (in.limited) return;
  in.limited = true;
  limited_.push_back(record.tenant);
}

void Waiting::let_pass(const Candidate& candidate, std::uint64_t reservations_version) {
  const WaitRecord& record = records_[candidate.gang.index()];
  Line& in = lines_[record.tenant.index()];
  forget_pick(in);
  Bucket& bucket = in.buckets[record.shape];
  if (bucket.filling || candidate.filling) {
    bucket.held = true;
  } else {
    bucket.filling = true;
  }
  bucket.held_seen = gains_of(shapes_[record.shape.index()]) + reservations_version;
}

void Waiting::wake_limited() {
  std::vector<TenantId> still;
  for (const TenantId t : limited_) {
    Line& in = lines_[t.index()];
    bool any = false;
    for (auto& [shape, bucket] : in.buckets) {
      if (!bucket.over_limit) continue;
      if (bucket.limit_seen == released_of(t)) {
        any = true;
        continue;
      }
      bucket.over_limit = false;
      forget_pick(in);
      activate(t);
    }
    in.limited = any;
    if (any) still.push_back(t);
  }
  limited_ = std::move(still);
}

void Waiting::wake_blocked(bool all) {
  std::vector<ShapeId> still;
  for (const ShapeId id : blocked_) {
    Shape& shape = shapes_[id.index()];
    if (!shape.blocked || shape.waiting == 0) {
      shape.blocked = false;
      continue;
    }
    const bool changed =
        shape.alone ? shape.log_seen != state_->log_end() : gains_of(shape) != shape.gains;
    if (changed || all) {
      unblock(shape);
    } else {
      still.push_back(id);
    }
  }
  blocked_ = std::move(still);
}

void Waiting::reopen_blocked() {
  for (const ShapeId id : blocked_) {
    Shape& shape = shapes_[id.index()];
    if (!shape.blocked || shape.alone || shape.waiting == 0 || gains_of(shape) == shape.gains)
      continue;
    unblock(shape);
  }
}

void Waiting::wake_held(std::uint64_t reservations_version, bool any_reservation) {
  const bool matters = any_reservation || reservations_seen_ != reservations_version;
  reservations_seen_ = reservations_version;
  if (!matters) return;
  for (std::uint32_t t = 0; t < lines_.size(); ++t) {
    for (auto& [shape, bucket] : lines_[t].buckets) {
      if (!bucket.held && !bucket.filling) continue;
      if (shapes_[shape.index()].blocked) continue;
      if (bucket.held_seen == gains_of(shapes_[shape.index()]) + reservations_version) continue;
      bucket.held = false;
      bucket.filling = false;
      forget_pick(lines_[t]);
      activate(TenantId(t));
    }
  }
}

/// Only the very first of a strict queue is ever looked at.
std::optional<Candidate> Waiting::first_in(const Line& in) const {
  const std::pair<Rank, GangId>* first = nullptr;
  const Bucket* of = nullptr;
  ShapeId shape;
  for (const auto& [id, bucket] : in.buckets) {
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

/// Each pick asks every active queue, so this is part of its loop whatever the compiler thinks.
///
/// Where somebody ahead holds a reservation, those behind fill the gaps, the shortest first: it
/// leaves most room for others before the reservation starts (Tsafrir, Etsion, Feitelson:
/// "Backfilling Using System-Generated Predictions", TPDS 2007).
[[gnu::always_inline]] inline std::optional<Candidate> Waiting::pick_in(
    TenantId tenant, const std::optional<Rank>& first_reserved) const {
  const Line& in = lines_[tenant.index()];
  const BackfillMode mode = state_->tenant(tenant).spec.backfill;
  if (mode == BackfillMode::kFifo) return first_in(in);
  std::optional<Candidate> best;
  const Rank* best_rank = nullptr;
  std::tuple<std::int64_t, std::int64_t> best_length;
  for (const auto& [id, bucket] : in.buckets) {
    if (shapes_[id.index()].blocked || bucket.over_limit || bucket.held) continue;
    const auto& [first_rank, first] = *bucket.by_rank.begin();
    const bool behind =
        mode == BackfillMode::kReservation && first_reserved && *first_reserved < first_rank;
    if (!bucket.filling && !behind) {
      if (!best || best->filling || first_rank < *best_rank) {
        best = Candidate{first, false};
        best_rank = &first_rank;
      }
    } else if (!best || best->filling) {
      const auto& [priority, duration, rank, gang] = bucket.by_duration.first();
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

std::optional<Candidate> Waiting::pick(const std::optional<Rank>& first_reserved) {
  if (picked_behind_ != first_reserved) {
    picked_behind_ = first_reserved;
    ++pick_round_;
  }
  std::optional<Candidate> best;
  TenantId best_tenant;
  for (std::size_t i = 0; i < active_.size();) {
    const TenantId t = active_[i];
    Line& in = lines_[t.index()];
    if (in.picked_round != pick_round_) {
      in.picked = pick_in(t, first_reserved);
      in.picked_round = pick_round_;
    }
    const std::optional<Candidate>& candidate = in.picked;
    if (!candidate) {
      in.active = false;
      active_[i] = active_.back();
      active_.pop_back();
      continue;
    }
    ++i;
    if (!best || (best->filling && !candidate->filling) ||
        (best->filling == candidate->filling && desk_->tenants.before(state_, t, best_tenant))) {
      best = candidate;
      best_tenant = t;
    }
  }
  return best;
}

void Waiting::refuse(GangId id, Refusal refusal) {
  WaitRecord& record = records_[id.index()];
  if (record.told && record.refusal->same_story(refusal)) return;
  record.refusal = std::move(refusal);
  record.told = false;
  untold_.push_back(id);
}

Refusal Waiting::story_of(const Shape& shape, GangId id) const {
  Refusal r = shape.refusal;
  if (!r.preemption.empty() && never_preempts(state_, id))
    r.preemption = "not eligible due to preemptionPolicy=Never.";
  return r;
}

bool Waiting::nominated_below(std::int32_t priority) const {
  return std::any_of(nominated_.begin(), nominated_.end(), [&](GangId g) {
    return state_->gang(g).spec->priority < priority;
  });
}

void Waiting::mark_nominated(GangId id) {
  MUSTER_CHECK(!records_[id.index()].listed, "a gang with room held for it waits in no bucket");
  records_[id.index()].nominated = true;
  nominated_.insert(id);
}

void Waiting::unmark_nominated(GangId id) {
  records_[id.index()].nominated = false;
  nominated_.erase(id);
}

void Waiting::check() const {
  std::int64_t listed = 0;
  std::vector<std::int32_t> by_shape(shapes_.size());
  for (std::uint32_t t = 0; t < lines_.size(); ++t) {
    for (const auto& [shape, bucket] : lines_[t].buckets) {
      MUSTER_CHECK(!bucket.by_rank.empty(), "no bucket is empty");
      MUSTER_CHECK(
          bucket.by_rank.size() == bucket.by_duration.size() && bucket.by_duration.consistent(),
          "both orders of a bucket hold the same gangs");
      MUSTER_CHECK(shapes_[shape.index()].tenants.contains(TenantId(t)),
                   "a shape knows the queues it waits in");
      for (const auto& [rank, id] : bucket.by_rank) {
        const WaitRecord& record = records_[id.index()];
        MUSTER_CHECK(record.listed && record.tenant == TenantId(t) && record.shape == shape &&
                         record.rank == rank,
                     "a gang's record says where it stands");
      }
      by_shape[shape.index()] += static_cast<std::int32_t>(bucket.by_rank.size());
      listed += static_cast<std::int64_t>(bucket.by_rank.size());
    }
  }
  for (std::uint32_t t = 0; t < lines_.size(); ++t) {
    const Line& in = lines_[t];
    MUSTER_CHECK(
        in.picked_round != pick_round_ || in.picked == pick_in(TenantId(t), picked_behind_),
        "whose turn was kept of a queue is whose turn it is");
  }
  MUSTER_CHECK(listed == count_, "as many gangs wait as are counted");
  for (std::size_t s = 0; s < shapes_.size(); ++s)
    MUSTER_CHECK(shapes_[s].waiting == by_shape[s], "as many gangs wait with a shape as it counts");
}

}  // namespace muster::engine
