/// Who waits, in which order, and what would unblock it.
///
/// What waits is grouped by shape: the same classes of pods in the same numbers. Each queue has one
/// bucket for each shape that waits in it. A shape that found no room is blocked as a whole until a
/// node gains room for one of its classes; a bucket whose queue is at a limit is blocked until the
/// queue gives something back; one that must not pass a reservation until that moves. A queue is
/// active while one of its buckets may have a gang to try, so a release costs in proportion to what
/// it can enable, not to what waits.
///
/// Always: a gang that is listed stands in exactly one bucket, once by rank and once by duration;
/// no bucket is empty; `waiting` of a shape is the number of gangs listed with it.
///
/// One piece: shapes, buckets and ranks are three orders of the same gangs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/model/ids.h"
#include "engine/model/reason.h"
#include "engine/model/shared.h"
#include "engine/muster/desk.h"
#include "engine/muster/fill_order.h"
#include "engine/muster/rank.h"
#include "engine/state/pages.h"

namespace muster::engine {

/// Gangs that are alike for every placement.
struct Shape {
  std::vector<std::pair<ClassId, std::int32_t>> parts;
  /// Depends on more than its classes: shared with no other gang.
  bool alone = false;
  /// Found no room; waits for a gain.
  bool blocked = false;
  /// Of all its classes when it was blocked.
  std::uint64_t gains = 0;
  /// End of the state's log when it was blocked.
  std::uint64_t log_seen = 0;
  std::int32_t waiting = 0;
  std::set<TenantId> tenants;
  /// Why there is no room, as worked out for one of them at `refusal_at`.
  Refusal refusal;
  Time refusal_at;
  bool has_refusal = false;
};

/// The gangs of one shape in one queue.
struct Bucket {
  std::set<std::pair<Rank, GangId>> by_rank;
  /// The same gangs.
  FillOrder by_duration;
  bool over_limit = false;
  std::uint64_t limit_seen = 0;
  /// Its head may not start before a reservation; shorter ones still may.
  bool filling = false;
  /// Not even the shortest may.
  bool held = false;
  std::uint64_t held_seen = 0;
};

/// What is remembered of one gang.
struct WaitRecord {
  /// In a bucket.
  bool listed = false;
  TenantId tenant;
  ShapeId shape;
  Rank rank;
  /// How long it was thought to take when it was listed.
  FillOrder::Length length;
  /// When it passes a reservation it counts as taking so long.
  std::int64_t at_most_us = 0;
  /// Declared, or bounded by a limit: not what others took.
  bool sure = false;
  /// Decision in which these two were worked out.
  std::uint64_t foretold_epoch = 0;
  Shared<Refusal> refusal;
  /// The caller knows the refusal, under this name.
  bool told = false;
  Name told_group;
  Name told_pod;
  Time since;
  /// The first start that was told of a reservation of it; zero: none yet.
  Time promised;
  /// Room is held for it until its victims have left.
  bool nominated = false;
  /// State of the world in which evictions were last found to be of no use.
  std::uint64_t preempt_seen = 0;
  /// Decision in which it last got room by evictions or over nominations; once in each.
  std::uint64_t preempt_epoch = 0;
  /// Of the gang the record is about; ids are used again.
  std::uint64_t seq = 0;
};

/// A gang whose turn it is.
struct Candidate {
  GangId gang;
  /// The shortest of those behind a reservation, not the first.
  bool filling = false;

  bool operator==(const Candidate&) const = default;
};

class Waiting {
 public:
  explicit Waiting(Desk& desk) : desk_(desk), state_(*desk.state) {}

  /// Makes room for all gangs and queues there are, and forgets whom the last decision refused.
  void begin_decision();

  /// Lists the gang as one that waits for its turn, and tells it when that is not now.
  void enter(GangId id);
  /// Takes it off the list and off the nominated.
  void leave(GangId id);
  /// Its record, with how long it takes by what is known in this decision: it may have been listed
  /// long ago.
  const WaitRecord& foretell(GangId id);

  /// The next gang to try: tenants in their order, then rank inside; fillers of gaps after
  /// everybody else. `first_reserved`: the best rank that holds a reservation, if any does.
  [[nodiscard]] std::optional<Candidate> pick(const std::optional<Rank>& first_reserved);

  // What a try that failed leaves behind.
  /// No node fits: its shape waits for a gain.
  void block(ShapeId id);
  /// Its queue is full: those like it wait until the queue gives something back.
  void mark_over_limit(GangId id);
  /// A reservation is in its way: those like it wait for that to change, or for a gain; only
  /// shorter ones are still tried.
  void let_pass(const Candidate& candidate, std::uint64_t reservations_version);

  // What may go on again.
  /// Shapes for which a node has gained room since they were blocked; all of them with `all`.
  void wake_blocked(bool all);
  /// Those that were blocked while room was held for a gang which then got none.
  void reopen_blocked();
  /// Queues that gave something back since they were found full.
  void wake_limited();
  /// Gaps beside reservations, which may change with any release.
  void wake_held(std::uint64_t reservations_version, bool any_reservation);

  /// Notes why the gang waits; told to the caller at the end of the decision when it is news.
  void refuse(GangId id, Refusal refusal);
  /// The same; what nobody will read is not worked out.
  template <typename Why>
  void refuse_by(GangId id, Why&& why) {
    if (!state_->rehearses()) refuse(id, why());
  }
  /// What is told of a shape, with what is this gang's own.
  [[nodiscard]] Refusal story_of(const Shape& shape, GangId id) const;
  [[nodiscard]] const std::vector<GangId>& untold() const { return untold_; }

  /// Grows whenever a node gains room for one of its classes. Brings their indexes up to date.
  [[nodiscard]] std::uint64_t gains_of(const Shape& shape);

  [[nodiscard]] WaitRecord& record(GangId id) { return records_[id.index()]; }
  [[nodiscard]] const WaitRecord& record(GangId id) const { return records_[id.index()]; }
  [[nodiscard]] bool has_record(GangId id) const { return id.index() < records_.size(); }
  /// For a gang that came while the decision was being made.
  void make_record(GangId id) {
    if (records_.size() <= id.index()) records_.grow_to(state_->gang_count());
  }
  [[nodiscard]] Shape& shape(ShapeId id) { return shapes_[id.index()]; }
  [[nodiscard]] const Shape& shape(ShapeId id) const { return shapes_[id.index()]; }
  /// The buckets of a queue, by shape.
  [[nodiscard]] const std::map<ShapeId, Bucket>& buckets(TenantId tenant) const;
  [[nodiscard]] std::uint32_t tenant_count() const {
    return static_cast<std::uint32_t>(lines_.size());
  }
  /// Gangs in buckets.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::size_t active_tenants() const { return active_.size(); }
  [[nodiscard]] bool any_blocked() const { return !blocked_.empty(); }

  // Gangs for which room is held until their victims have left; they stand in no bucket.
  [[nodiscard]] const std::set<GangId>& nominated() const { return nominated_; }
  [[nodiscard]] bool is_nominated(GangId id) const { return nominated_.contains(id); }
  [[nodiscard]] bool nominated_below(std::int32_t priority) const;
  void mark_nominated(GangId id);
  void unmark_nominated(GangId id);

  /// Stops the program when the tables disagree; walks all that waits, so only where asked for.
  void check() const;
  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  /// What waits in one queue.
  struct Line {
    std::map<ShapeId, Bucket> buckets;
    bool active = false;
    /// Listed in limited_.
    bool limited = false;
    /// Whose turn it was when it was last asked, and in which round: one decision asks every queue
    /// dozens of times, and between two questions most of them have not changed.
    std::optional<Candidate> picked;
    std::uint64_t picked_round = 0;
  };

  ShapeId shape_of(GangId id);
  [[nodiscard]] Rank rank_of(const GangState& gang) const;
  Line& line(TenantId tenant);
  /// Something that its turn follows from has changed.
  static void forget_pick(Line& line) { line.picked_round = 0; }
  void tell_if_behind(GangId id);
  void enter_blocked(GangId id, Shape& shape, const Bucket& bucket);
  void unblock(Shape& shape);
  void activate(TenantId tenant);
  [[nodiscard]] std::uint64_t released_of(TenantId tenant) const;
  [[nodiscard]] std::optional<Candidate> first_in(const Line& line) const;
  [[nodiscard]] std::optional<Candidate> pick_in(TenantId tenant,
                                                 const std::optional<Rank>& first_reserved) const;

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  std::vector<Shape> shapes_;
  /// By description; looked up, never iterated.
  std::unordered_map<std::string, ShapeId> shape_ids_;
  /// Shapes that are blocked, and some that were.
  std::vector<ShapeId> blocked_;
  std::vector<Line> lines_;
  std::vector<TenantId> active_;
  std::vector<TenantId> limited_;
  Pages<WaitRecord> records_;
  std::int64_t count_ = 0;
  std::set<GangId> nominated_;
  /// Refused in this decision, in order; one may stand here twice.
  std::vector<GangId> untold_;
  /// Of the reservations when buckets beside them were last looked at.
  std::uint64_t reservations_seen_ = 0;
  /// Answers of pick_in() are good in one round: it ends with the decision, and when another rank
  /// is the first that holds a reservation.
  std::uint64_t pick_round_ = 1;
  std::optional<Rank> picked_behind_;
};

}  // namespace muster::engine
