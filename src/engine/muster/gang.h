/// What one gang, or its family of groups, still needs and where it may go. Questions to the state
/// alone: the same for placing, for making room, for reservations and for explanations.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "engine/model/ids.h"
#include "engine/model/model.h"
#include "engine/model/reason.h"
#include "engine/muster/desk.h"
#include "engine/state/state.h"

namespace muster::engine {

/// How many members must start together, in all and of each role. Zero in all: the minimum runs,
/// and what still waits may start one by one.
struct Need {
  std::int32_t total = 0;
  std::vector<std::pair<std::string, std::int32_t>> roles;
};
[[nodiscard]] Need need_of(const State& state, const GangState& gang);

/// Waiting members, the largest first: small ones fit beside large ones, not the other way round.
[[nodiscard]] std::vector<PodId> tasks_of(const State& state, GangId id);

/// Both, for those that place a gang.
struct Members {
  GangId gang;
  Need need;
  std::vector<PodId> tasks;
};
[[nodiscard]] Members members_of(const State& state, GangId id);

/// What the least that must start together asks for in sum.
[[nodiscard]] ResourceVector request_of(const State& state, const Members& members);

/// Why the gang cannot be considered at all; reason kNone when it can.
[[nodiscard]] Refusal unready(const State& state, const GangState& gang);

/// Neither the gang nor its waiting pods may have others evicted for them.
[[nodiscard]] bool never_preempts(const State& state, GangId id);

/// How long a gang that waits will take.
struct Expected {
  std::int64_t us = History::kUnknown;
  /// As long as most of those like it took; as long when it is sure.
  std::int64_t at_most_us = History::kUnknown;
  /// Its owner declared it, or a limit ends it by then; otherwise it is what others like it took.
  bool sure = false;
  /// Others of the same kind are thought to take as long; zero: `us` is declared, or a limit.
  std::uint64_t kind = 0;
};
[[nodiscard]] Expected expected_duration(const State& state, Time now, GangId id);
/// Its `us` alone, for those that place it.
[[nodiscard]] std::int64_t expected_us(const State& state, Time now, GangId id);

/// Of work that declares nothing: when the first of those like it were over, or most of them.
enum class Ends : std::uint8_t { kEarly, kLate };
/// When a pod will have left, by what is known now.
struct End {
  /// kNever: not known.
  Time at;
  /// Before then the answer stays the same, unless something happens.
  Time same_until = kNever;
  /// It follows from what others took, or would if any like it had ended.
  bool asked = false;
  bool estimated = false;
  /// Nothing but that and its gang's start says when: estimated_end() answers.
  bool by_kind_alone = false;
};
[[nodiscard]] End end_of(Desk& desk, const PodState& pod, Ends ends);
/// The same, the early one, of a pod that runs, declares nothing and has no limit: its gang began then
/// and its kind has these levels.
[[nodiscard]] End estimated_end(const Desk& desk, Time started, const History::Levels& levels);
/// The same, noted at the desk where it is an estimate.
[[nodiscard]] Time expected_end(Desk& desk, const PodState& pod, Ends ends);

// ------------------------------------------------------------------ families and domains

/// Enough members run: it needs nobody to start with it.
[[nodiscard]] bool group_runs(const State& state, GangId id);

/// Would the family have too few groups with only `starting` started?
[[nodiscard]] bool family_short(const State& state, GangId id, const std::vector<GangId>& starting);

/// The topology levels that bind the gang, those of the groups above it first.
[[nodiscard]] std::vector<TopologyLevel> levels_of(const State& state, const GangState& gang);

/// The values of the key where members of the group run or have room held: these pin the domain of
/// those that follow.
[[nodiscard]] std::set<std::string> pinned_values(const State& state,
                                                  GangId group,
                                                  const std::string& key);

/// Nodes that the groups above leave to the gang: the domains in which their members run.
[[nodiscard]] std::vector<NodeId> nodes_left_to(const State& state, GangId id);

}  // namespace muster::engine
