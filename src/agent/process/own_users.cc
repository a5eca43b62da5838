#include "agent/process/own_users.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <vector>

#include "agent/fd.h"
#include "agent/files.h"

extern char** environ;

namespace muster::agent::process {
namespace {

/// Not write_file(): these take one write, and no change of mode.
bool write_setting(const std::string& path, std::string_view text) {
  const Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// The one user that the calling process is becomes `user` of its new namespace.
Result<void> map_one(std::int64_t user,
                     std::int64_t group,
                     uid_t user_outside,
                     gid_t group_outside) {
  if (!write_setting("/proc/self/setgroups", "deny") && errno != ENOENT && errno != EPERM)
    return fail(system_error("write /proc/self/setgroups", errno));
  if (!write_setting("/proc/self/uid_map", fmt::format("{} {} 1", user, user_outside)) ||
      !write_setting("/proc/self/gid_map", fmt::format("{} {} 1", group, group_outside)))
    return fail(system_error("map the user of a pod", errno));
  return {};
}

/// People who are not root often have no sbin in their PATH.
std::string program(const std::string& name) {
  for (const auto* place : {"/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/bin/", "/sbin/"}) {
    if (access((place + name).c_str(), X_OK) == 0) return place + name;
  }
  return "";
}

bool run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGCHLD);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const bool begun = posix_spawn(&pid, argv[0], nullptr, &attributes, argv.data(), environ) == 0;
  posix_spawnattr_destroy(&attributes);
  if (!begun) return false;
  int status = 0;
  // The keeper collects no children: the kernel does, and waiting ends without a status.
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return true;
}

}  // namespace

Result<void> become_own_root() {
  const auto user = geteuid();
  const auto group = getegid();
  if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0)
    return fail(system_error("make a user namespace", errno));
  return map_one(0, 0, user, group);
}

Result<void> become_user(std::int64_t user, std::int64_t group) {
  // Else the files that say who we are would be somebody else's.
  prctl(PR_SET_DUMPABLE, 1);
  if (unshare(CLONE_NEWUSER) != 0) return fail(system_error("make a user namespace", errno));
  return map_one(user, group, 0, 0);
}

Result<void> make_own_network(const OwnNetwork& wanted) {
  const auto up = loopback_up();
  if (!up) return up;
  // Its root is not the agent, which shall serve names at port 53.
  (void)write_setting("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  (void)write_setting("/proc/sys/net/ipv4/ip_forward", "1");
  return ensure_bridge(wanted.bridge, wanted.subnet.base + 1, wanted.subnet.prefix, "");
}

std::string no_way_out() {
  if (program("pasta").empty()) return "passt is not installed";
  if (program("iptables").empty()) return "iptables is not installed";
  if (access("/dev/net/tun", R_OK | W_OK) != 0) return "/dev/net/tun is not open to this user";
  return "";
}

WayOut::WayOut() {
  int ends[2];
  if (!no_way_out().empty() || pipe2(ends, O_CLOEXEC) != 0) return;
  const auto keeper = getpid();
  if (fork() == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(ends[1]);
    char go = 0;
    if (read(ends[0], &go, 1) != 1 || getppid() != keeper) _exit(0);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);  // it takes one that is ignored already for a failure
    // Nothing of the machine's loopback, and no port of the machine's is taken.
    const auto path = program("pasta"), pid = std::to_string(keeper);
    execl(path.c_str(),
          "pasta",
          "--foreground",
          "--quiet",
          "--config-net",
          "--no-map-gw",
          "--ns-ifname",
          "out",
          "-t",
          "none",
          "-u",
          "none",
          "-T",
          "none",
          "-U",
          "none",
          pid.c_str(),
          nullptr);
    _exit(127);
  }
  close(ends[0]);
  go_ = ends[1];
}

void WayOut::open(const OwnNetwork& network) {
  if (go_ < 0) return;
  const char go = 1;
  if (write(go_, &go, 1) != 1) return;
  close(go_);
  go_ = -1;
  const auto subnet = fmt::format("{}/{}", ipv4_text(network.subnet.base), network.subnet.prefix);
  (void)run({program("iptables"),
             "-t",
             "nat",
             "-A",
             "POSTROUTING",
             "-s",
             subnet,
             "!",
             "-o",
             network.bridge,
             "-j",
             "MASQUERADE"});
}

}  // namespace muster::agent::process
