/// Control groups as plain files: version 2, version 1, or none. Which one is found out once, at
/// start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/runtime.h"

namespace muster::agent::process::cgroup {

enum class Version { kNone, kV1, kV2 };

/// Where groups of ours live. `parents` are directories, one per controller (v1) or one in all
/// (v2).
struct Tree {
  Version version = Version::kNone;
  std::string cpu, cpuacct, memory, pids;  // v1: directories of the hierarchies; v2: all the same
  std::string missing;                     // what is not there, for people; empty: nothing
};

/// Looks for the trees, makes `name` below this process's own groups. Not root: version none.
Tree prepare(const std::string& name);
/// Removes `name` with everything below it; processes in it must be gone.
void remove_tree(const Tree& tree);

/// A group is a relative name below the tree: "<pod uid>/<container>".
Result<void> create(const Tree& tree, const std::string& group, const Limits& limits);
Result<void> apply_limits(const Tree& tree, const std::string& group, const Limits& limits);
/// Moves the calling process.
Result<void> enter(const Tree& tree, const std::string& group);
void remove(const Tree& tree, const std::string& group);
/// The kernel killed something in the group for memory.
bool oom_killed(const Tree& tree, const std::string& group);
Usage usage(const Tree& tree, const std::string& group);
/// Process ids in the group and below.
std::vector<int> members(const Tree& tree, const std::string& group);

}  // namespace muster::agent::process::cgroup
