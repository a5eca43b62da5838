/// For each class of pods: which nodes can take one now, best first.
///
/// Nodes that fit stand in one of a few buckets by how well they fit; inside a bucket the lowest id
/// comes first. The index reads the state's change log from where it stopped, so using it costs
/// work for the nodes that changed since, never for all. A class seen for the first time pays one
/// pass over the nodes.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/model/ids.h"
#include "engine/state/node_set.h"
#include "engine/state/state.h"

namespace muster::engine {

class ClassIndex {
 public:
  static constexpr std::size_t kBuckets = 18;

  /// What a class asks of a node, in one place for as long as its nodes are looked at.
  struct Wanted {
    Wanted(const State& state, const TaskClass& c);
    const TaskClass& cls;
    std::array<std::int64_t, 4> amounts{};  ///< As in NodeRow.
    std::int32_t devices = 0;
    bool spread = false;
  };

  explicit ClassIndex(ClassId cls) : cls_(cls) {}

  /// Must be called before the reads below, after any change of the state.
  /// `undone`: the changes since the last call cancel out; room that came back with them is no
  /// gain.
  void catch_up(const State& state, std::int64_t& checks, bool undone = false);
  void note_gain() { ++gains_; }

  /// Walks feasible nodes, best first: start with {}, pass the last answer back. Invalid at the
  /// end.
  struct Cursor {
    std::size_t bucket = 0;
    std::uint32_t from = 0;
  };
  [[nodiscard]] NodeId next(Cursor& cursor) const;
  /// Selectors, taints and readiness allow the node, and one would fit if it were empty.
  [[nodiscard]] bool ever_fits(NodeId node) const { return entries_[node.index()].ever_fits; }
  /// How many nodes can take at least one.
  [[nodiscard]] std::int32_t feasible() const { return feasible_; }
  /// Grows whenever a node got room for (more of) the class: what a blocked gang waits for.
  [[nodiscard]] std::uint64_t gains() const { return gains_; }

 private:
  void rebuild(const State& state, std::int64_t& checks);
  void update(const State& state, const Wanted& wanted, std::uint32_t node);
  void look_at_spec(const State& state, const TaskClass& cls, std::uint32_t node);

  static constexpr std::uint8_t kNowhere = 255;

  ClassId cls_;
  bool built_ = false;
  std::uint64_t cursor_ = 0;
  std::uint64_t gains_ = 0;
  std::int32_t feasible_ = 0;
  std::array<NodeSet, kBuckets> buckets_;
  struct Entry {
    std::uint32_t static_seen = 0;  ///< The node's spec_changed + 1 when static_ok was computed.
    std::int16_t room = 0;          ///< How many fit there, bounded.
    std::uint8_t bucket = kNowhere;
    bool static_ok : 1 = false;
    bool ever_fits : 1 = false;
  };
  std::vector<Entry> entries_;  ///< By node.
};

/// All class indexes, made when first asked for.
class NodeIndex {
 public:
  ClassIndex& of(ClassId cls);
  std::int64_t checks = 0;  ///< Single evaluations so far.

 private:
  std::vector<ClassIndex> by_class_;
};

}  // namespace muster::engine
