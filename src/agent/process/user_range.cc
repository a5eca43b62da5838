#include "agent/process/user_range.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.h"

namespace muster::agent::process {
namespace {

bool write_map(pid_t pid, const char* name, uid_t first) {
  const Fd file(open(fmt::format("/proc/{}/{}", pid, name).c_str(), O_WRONLY | O_CLOEXEC));
  const auto line = fmt::format("0 {} {}", first, kRangeSize);
  return file && write(file.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size());
}

/// A process of a user namespace of its own that is there only to be looked at. It shares our memory,
/// so that none is copied for it; its stack is its own.
pid_t clone_into_users() {
  alignas(16) static char stack[16 * 1024];
  const auto wait = [](void*) -> int {
    for (;;) pause();
  };
  return clone(wait, stack + sizeof stack, CLONE_NEWUSER | CLONE_VM | SIGCHLD, nullptr);
}

}  // namespace

std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges_in(std::string_view list) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
  for (const auto& line : split_nonempty(list, '\n')) {
    const auto fields = split(line, ':');
    if (fields.size() != 3) continue;
    const auto first = parse_int(fields[1]), count = parse_int(fields[2]);
    if (first && count && *first >= 0 && *count > 0)
      out.emplace_back(static_cast<std::uint64_t>(*first), static_cast<std::uint64_t>(*count));
  }
  return out;
}

bool overlaps(uid_t first, const std::vector<std::pair<std::uint64_t, std::uint64_t>>& taken) {
  return std::any_of(taken.begin(), taken.end(), [first](const auto& one) {
    return first < one.first + one.second && one.first < std::uint64_t{first} + kRangeSize;
  });
}

Result<Fd> make_user_namespace(uid_t first) {
  const auto pid = clone_into_users();
  if (pid < 0) return fail(system_error("make a user namespace", errno));
  Fd users(open(fmt::format("/proc/{}/ns/user", pid).c_str(), O_RDONLY | O_CLOEXEC));
  const bool mapped = write_map(pid, "uid_map", first) && write_map(pid, "gid_map", first);
  const int problem = errno;
  kill(pid, SIGKILL);
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (!users || !mapped) return fail(system_error("map users of a pod", problem));
  return users;
}

}  // namespace muster::agent::process
