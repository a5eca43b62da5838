/// Control groups as plain files: version 2, version 1, or none. Which one is found out once, at
/// start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/process/messages.h"
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

/// A group is a name below the tree: "<pod uid>_<container>". Making one is the dearest part of a
/// container's start after its namespaces, so there is none for the pod, and under v1 none in
/// hierarchies where the container asks for nothing.
std::string group_name(const std::string& sandbox, const std::string& container);
Result<void> create(const Tree& tree, const std::string& group, const Limits& limits);
/// For a container that runs.
Result<void> change_limits(const Tree& tree, const std::string& group, const Limits& limits);
/// For clone3's CLONE_INTO_CGROUP, which version 2 has: a child that starts in its group need not
/// move. -1: not this version, the child shall enter.
int open_for_clone(const Tree& tree, const std::string& group);
/// The files that move a process into the group, for one that will see other files when it is time.
Result<std::vector<Fd>> open_doors(const Tree& tree,
                                   const std::string& group,
                                   const Limits& limits);
/// Moves the calling process, which has one thread.
Result<void> enter(const std::vector<Fd>& doors);
/// Where a container with these limits is: (controller, directory); one with an empty name for
/// version 2.
std::vector<std::pair<std::string, std::string>> places(const Tree& tree,
                                                        const std::string& group,
                                                        const Limits& limits);
void remove(const Tree& tree, const std::string& group);
/// The kernel killed something in the group for memory.
bool oom_killed(const Tree& tree, const std::string& group);
Usage usage(const Tree& tree, const std::string& group);
/// Process ids in the group.
std::vector<int> members(const Tree& tree, const std::string& group);
/// The groups of a sandbox whose supervisor is gone.
std::vector<std::string> groups_of(const Tree& tree, const std::string& sandbox);

}  // namespace muster::agent::process::cgroup
