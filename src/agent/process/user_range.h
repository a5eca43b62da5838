/// Users of a pod's own: root of the pod is nobody on this machine.
///
/// A pod's users 0 to 65,535 are a range of the machine's that nobody else has. What its processes
/// may do is decided by that: a file that is not readable for all is not readable for the pod, and a
/// capability that it has counts in its own user namespace, which owns nothing of the machine. The
/// namespace needs no process: held by a descriptor it is entered by containers, and it is the map
/// by which volumes and the layers of images are shown with the owners they have on disk.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/fd.h"
#include "base/result.h"

namespace muster::agent::process {

constexpr std::uint32_t kRangeSize = 65536;
/// Ranges are counted from here, below are those of people and their containers.
constexpr std::uint32_t kRangesFrom = 1'000'000;
/// Of the process runtime's pods, and after them of a container runtime's that ask for one. Many
/// programs take larger ids for negative.
constexpr std::uint32_t kRanges = 32'188, kRangesOfRuntime = 512;

/// The first id of the range that belongs to a pod's address. Pods of one agent never share one;
/// `subnet` makes it unlikely for those of several.
constexpr uid_t first_id(std::uint32_t address_in_subnet, std::uint32_t subnet) {
  constexpr std::uint32_t kApart = 2953;
  return kRangesFrom + kRangeSize * ((address_in_subnet + kApart * (subnet % 11)) % kRanges);
}

/// "name:first:count" of /etc/subuid or /etc/subgid, which are somebody else's. Pure.
std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_in(std::string_view list);
bool overlaps(uid_t first, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& taken);

/// A user namespace of this range. The caller has one thread and the rights of root.
Result<Fd> make_user_namespace(uid_t first);

/// Who a container's files belong to on this machine. `users` is not owned.
struct Owner {
  uid_t first = 0;  // what the container's root is; 0: the machine's
  int users = -1;   // the user namespace; -1: the machine's
  [[nodiscard]] bool mapped() const { return users >= 0; }
};

}  // namespace muster::agent::process
