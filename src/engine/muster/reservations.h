/// Reservations: the first blocked gangs hold a place in the future, and later work passes only if
/// it cannot delay them.
///
/// Example: 4 nodes of 8 GPUs, all busy; two become free at 10:00, the others at 11:00. A gang that
/// needs 3 nodes is reserved for 11:00 on the first two and one more. At 10:00 a job of 50 minutes
/// may use the two free nodes (it ends before 11:00); one of two hours may not. Where nothing is
/// known about run times, nothing is held back until the gang has waited for `patience`; then free
/// room is kept for it.
///
/// Always: a slot stands at exactly those nodes that its reservation lists, a gang has at most one
/// reservation, and `count()` is the number of those that live.
///
/// One piece: holding a place and asking whether a pod may pass it read the same slots.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "engine/model/ids.h"
#include "engine/muster/desk.h"
#include "engine/muster/forecast.h"
#include "engine/muster/victims.h"
#include "engine/muster/waiting.h"

namespace muster::engine {

class Reservations {
 public:
  struct Hold {
    GangId gang;
    Rank rank;
    Time since;
    /// Zero: cannot be told.
    Time start;
    /// When its place was found, and whether by ends that nobody declared.
    Time found;
    bool estimated = false;
    /// The first start that was told; zero: none yet.
    Time promised;
    /// Key of the member that slots count.
    std::string member;
    std::vector<NodeId> nodes;
    bool live = false;
  };
  /// A place that a pod would take.
  struct Use {
    NodeId node;
    const TaskClass& cls;
    GangId gang;
    /// Position of the device that a share would go to; -1: whichever State picks.
    std::int32_t device = -1;
    /// To be carried out before.
    const EvictionPlan* evictions = nullptr;
  };

  Reservations(Desk& desk, Waiting& waiting)
      : desk_(desk), state_(*desk.state), waiting_(waiting) {}

  void begin_decision();

  [[nodiscard]] std::size_t count() const { return live_; }
  [[nodiscard]] bool none() const { return live_ == 0; }
  /// Grows when one comes, goes or moves.
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Queues changed: whoever waited for a reservation to move is looked at again.
  void bump_version() { ++version_; }
  /// The best rank that holds one.
  [[nodiscard]] std::optional<Rank> first_rank() const;
  /// The worst.
  [[nodiscard]] std::optional<Rank> last_rank() const;
  /// The first of those that other gangs hold; null when there is none.
  [[nodiscard]] const Hold* first_of_others(GangId id) const;
  /// When the gang is expected to start, if it has a reservation that can tell.
  [[nodiscard]] std::optional<Time> expected_start(GangId id) const;

  /// May the pod go there, or would that delay a reservation of somebody ahead?
  [[nodiscard]] bool allow(const Use& use) const {
    return live_ == 0 || use.node.index() >= slots_.size() || slots_[use.node.index()].empty() ||
           allow_beside(use);
  }

  /// Gives the gang one if a place is left or it outranks somebody who has one.
  void reserve_for(GangId id);
  /// Places that are left go to the best of those that are blocked.
  void fill_places();
  void release_of(GangId id);
  /// Times that passed, or that may have become known, are worked out again.
  void refresh();
  /// Puts all that live into the plan when one of them changed in this decision.
  void publish();

  /// Stops the program when slots and reservations disagree.
  void check() const;
  /// Adds all that decisions follow from.
  void digest(Digest& digest) const;

 private:
  /// What a reservation keeps of one node.
  struct Slot {
    std::uint32_t reservation = 0;
    ResourceVector amount;
    /// Of the largest members, which all are counted in.
    ClassId cls;
    std::int32_t members = 0;
  };

  [[nodiscard]] std::size_t limit() const;
  [[nodiscard]] bool holds(GangId id) const;
  /// Its time has come, and it has not started.
  [[nodiscard]] bool is_late(const Hold& hold) const {
    return hold.live && hold.start && hold.start <= desk_->now;
  }
  [[nodiscard]] std::optional<std::uint32_t> longest_late() const;
  [[nodiscard]] bool worth_another(GangId id, const Rank& rank) const;
  [[nodiscard]] bool allow_beside(const Use& use) const;
  [[nodiscard]] bool trusts_estimates(const Hold& hold) const;
  [[nodiscard]] ResourceVector left_at(const Use& use, const Slot& slot, Time then) const;
  [[nodiscard]] bool leaves_devices(const Use& use, const Slot& slot, Time then) const;
  void find_place(std::uint32_t reservation);
  void keep_slots(std::uint32_t reservation,
                  const Forecast::Start& start,
                  ClassId cls,
                  std::int32_t wanted);
  void clear_slots(std::uint32_t reservation);
  void release(std::uint32_t reservation);
  void note_change();
  [[nodiscard]] Time end_for(const Hold& hold, PodId id) const;
  [[nodiscard]] std::int32_t members_like_largest(const std::vector<PodId>& tasks) const;
  [[nodiscard]] std::vector<PodId> starting_with(GangId id) const;
  [[nodiscard]] std::vector<PodId> starting_below(GangId group, GangId id) const;
  [[nodiscard]] std::vector<std::string> required_levels(GangId id) const;
  [[nodiscard]] std::vector<std::vector<NodeId>> domains_of(
      const std::vector<std::string>& levels) const;
  [[nodiscard]] Forecast::Start earliest_for(GangId id, Forecast& forecast);

  Neighbour<Desk> desk_;
  Neighbour<State> state_;
  Neighbour<Waiting> waiting_;
  std::vector<Hold> holds_;
  /// By node.
  std::vector<std::vector<Slot>> slots_;
  std::vector<NodeId> all_nodes_;  ///< In order.
  std::uint64_t version_ = 1;
  std::size_t live_ = 0;
  /// In this decision.
  bool changed_ = false;
};

}  // namespace muster::engine
