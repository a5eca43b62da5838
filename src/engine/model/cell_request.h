/// What pods ask of HiveD's cells and what they are given, as plain data: the contents of HiveD's
/// annotations.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::engine::cells {

struct GroupMember {
  std::int32_t pods = 0;
  /// Of each pod. In a pod group it follows from the cells below, once the configuration is known.
  std::int32_t leaves = 0;
  std::string cell_type;  // of a pod group; empty: leaf cells
  std::int32_t cell_number = 0;
  bool operator==(const GroupMember&) const = default;
};

/// One group of the tree that the second version of HiveD's annotations describes a gang with.
struct PodGroup {
  std::string name;
  std::string within;        // All of it inside one cell of this type; empty: no such wish.
  std::int32_t member = -1;  // Its own pods, in PodSpec::members; -1: it has child groups only.
  std::vector<PodGroup> children;
  bool operator==(const PodGroup&) const = default;
};

/// What a pod asks for (`pod-scheduling-spec`), defaults applied and valid.
struct PodSpec {
  std::string vc;
  std::int32_t priority = 0;  // -1 opportunistic, 0 … 1000 guaranteed
  std::string pinned_cell;    // empty: none
  std::string leaf_type;      // empty: any
  std::int32_t leaves = 0;
  bool lazy_preemption = false;
  bool ignore_suggested = true;
  std::string group;
  std::vector<GroupMember> members;
  std::vector<PodGroup> root;  // of a tree of pod groups: its root alone; else empty
  std::int32_t member = -1;    // of a tree of pod groups: which member this pod is of
  bool operator==(const PodSpec&) const = default;
};

/// Where one pod of a gang sits. An empty preassigned type: opportunistic.
struct PodPlacement {
  std::string node;
  std::vector<std::int32_t> leaves;
  std::vector<std::string> preassigned_types;
  bool operator==(const PodPlacement&) const = default;
};

/// All pods of a gang with the same number of leaf cells; in a tree, all of one pod group.
struct MemberPlacement {
  std::vector<PodPlacement> pods;
  bool operator==(const MemberPlacement&) const = default;
};

/// What is written on a bound pod (`pod-bind-info`): its own place and its whole gang's.
struct BindInfo {
  std::string node;
  std::vector<std::int32_t> leaves;
  std::string chain;
  std::shared_ptr<const std::vector<MemberPlacement>> group;
  std::vector<PodGroup> root;  // as in PodSpec; the names are not written

  bool operator==(const BindInfo& other) const {
    const bool same_group =
        group == other.group || (group && other.group && *group == *other.group);
    return same_group && node == other.node && leaves == other.leaves && chain == other.chain &&
           root == other.root;
  }
};

/// What a pod itself says about cells. One that says nothing gets its spec from its devices, its
/// gang and its queue.
struct PodNote {
  std::optional<PodSpec> spec;
  std::string error;             // what is wrong with the spec that it has; empty: nothing
  std::optional<BindInfo> bind;  // of a bound pod
  bool operator==(const PodNote&) const = default;
};

/// What is written on a pod with its binding.
struct Seat {
  BindInfo bind;
  std::optional<PodSpec> spec;  // of a pod that had none, so that it survives a restart
  bool operator==(const Seat&) const = default;
};

}  // namespace muster::engine::cells
