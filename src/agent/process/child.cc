#include "agent/process/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "agent/files.h"
#include "agent/process/capabilities.h"
#include "agent/process/landlock.h"
#include "agent/process/messages.h"
#include "agent/process/own_users.h"
#include "agent/process/seccomp.h"
#include "agent/process/seccomp_profile.h"
#include "agent/process/users.h"
#include "base/strings.h"

extern char** environ;

namespace muster::agent::process {
namespace {

constexpr std::size_t kUsersBytesMax = 1024 * 1024;

/// Which calls the command may make; empty: all.
Result<std::vector<sock_filter>> filter_of(const ContainerConfig& config) {
  if (config.privileged || config.unconfined) return std::vector<sock_filter>();
  if (!config.seccomp_profile.empty()) return filter_of_profile(config.seccomp_profile);
  return known_filter(capability_set(config.add_capabilities, config.drop_capabilities));
}

/// Who it runs as. An image names its user by the image's own lists, which are in place by now.
struct Identity {
  std::optional<std::int64_t> user, group;
  std::vector<gid_t> groups;
  std::string home;  // to be set; empty: the environment has one
  [[nodiscard]] bool changes() const { return user || group || !groups.empty(); }
};

Result<Identity> identity_of(const ContainerConfig& config) {
  Identity out{config.user, config.group, {config.groups.begin(), config.groups.end()}, ""};
  if (!config.image_user) return out;
  const auto wanted = config.user ? std::to_string(*config.user) : *config.image_user;
  const auto found = find_user(
      read_file("/etc/passwd", kUsersBytesMax), read_file("/etc/group", kUsersBytesMax), wanted);
  if (!found) return fail(found.error());
  out.user = found->id;
  if (!out.group) out.group = found->group;
  for (const auto group : found->groups) out.groups.push_back(static_cast<gid_t>(group));
  const bool has_home = std::any_of(config.env.begin(), config.env.end(), [](const auto& item) {
    return item.starts_with("HOME=");
  });
  if (!has_home) out.home = "HOME=" + found->home;
  return out;
}

/// Why this user cannot be one of a pod's own; empty: it can.
std::string outside_range(const Identity& identity) {
  std::vector<std::int64_t> ids{identity.user.value_or(0), identity.group.value_or(0)};
  ids.insert(ids.end(), identity.groups.begin(), identity.groups.end());
  const auto largest = *std::max_element(ids.begin(), ids.end());
  if (largest < kRangeSize) return "";
  return fmt::format(
      "user or group {} is none of the pod's own, which are 0 to {}; "
      "hostUsers: true gives it those of the machine",
      largest,
      kRangeSize - 1);
}

}  // namespace

Result<void> prepare_pod(const ShimConfig& config) {
  const auto& sandbox = config.sandbox;
  if (!sandbox.hostname.empty() && !sandbox.host_network) {
    if (sethostname(sandbox.hostname.data(), std::min<std::size_t>(sandbox.hostname.size(), 64)) !=
        0)
      return fail(system_error("set hostname", errno));
    const auto written = write_file(sandbox.run_directory + "/hostname", sandbox.hostname + "\n");
    if (!written) return written;
  }
  for (const auto& volume : sandbox.memory_volumes) {
    auto options = volume.group >= 0 && !config.roots.bound
                       ? fmt::format("mode=2777,gid={}", volume.group)
                       : std::string("mode=1777");
    if (volume.size_bytes > 0) options += fmt::format(",size={}", volume.size_bytes);
    if (::mount("tmpfs", volume.path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) !=
        0) {
      return fail(system_error(fmt::format("mount memory volume \"{}\"", volume.path), errno));
    }
  }
  return {};
}

bool enter_users(const Owner& owner) {
  if (!owner.mapped()) return true;
  return setns(owner.users, CLONE_NEWUSER) == 0 && setgroups(0, nullptr) == 0 &&
         setresgid(0, 0, 0) == 0 && setresuid(0, 0, 0) == 0;
}

std::string become(const ContainerConfig& config,
                   const std::vector<std::string>& args,
                   const Becoming& how) {
  const auto& streams = how.streams;
  setsid();
  if (streams.tty) ioctl(streams.in, TIOCSCTTY, 0);
  int in = streams.in >= 0 ? streams.in : open("/dev/null", O_RDONLY);
  int out = streams.out >= 0 ? streams.out : open("/dev/null", O_WRONLY);
  int err = streams.err >= 0 ? streams.err : open("/dev/null", O_WRONLY);
  dup2(in, 0);
  dup2(out, 1);
  dup2(err, 2);
  if (!config.working_dir.empty() && chdir(config.working_dir.c_str()) != 0) {
    return fmt::format(
        "chdir to cwd ({}) failed: {}", quoted(config.working_dir), std::strerror(errno));
  }
  const auto identity = identity_of(config);
  if (!identity) return identity.error().message;
  if (how.owner.mapped()) {
    const auto outside = outside_range(*identity);
    if (!outside.empty()) return outside;
  }
  // Only the three streams go with it. The others stay open until then: one tells of a failure.
  close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
  if (!enter_users(how.owner))
    return fmt::format("enter the pod's user namespace: {}", std::strerror(errno));
  const bool is_root = geteuid() == 0;
  const auto user = identity->user.value_or(0), group = identity->group.value_or(0);
  if (how.one_user && is_root && (user != 0 || group != 0)) {
    const auto done = become_user(user, group);
    if (!done) return done.error().message;
  }
  if (config.no_new_privileges) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (is_root && !config.privileged)
    limit_capabilities(capability_set(config.add_capabilities, config.drop_capabilities));
  // Before the user changes: installing it is a right that goes with that.
  const auto filter = filter_of(config);
  if (!filter) return fmt::format("limit system calls: {}", filter.error().message);
  if (is_root && !install_filter(*filter))
    return fmt::format("limit system calls: {}", std::strerror(errno));
  if (is_root && !how.one_user && identity->changes()) {
    if (setgroups(identity->groups.size(), identity->groups.data()) != 0)
      return fmt::format("set groups: {}", std::strerror(errno));
    if (identity->group && setgid(static_cast<gid_t>(*identity->group)) != 0)
      return fmt::format("set group: {}", std::strerror(errno));
    if (identity->user && setuid(static_cast<uid_t>(*identity->user)) != 0)
      return fmt::format("set user: {}", std::strerror(errno));
  }
  if (!how.closed.empty()) {
    const auto closed = close_folder(how.closed);
    if (!closed) return closed.error().message;
  }
  // Late: another user would not have it any more.
  if (how.dies_with_parent) prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::vector<char*> env;
  if (!identity->home.empty()) env.push_back(const_cast<char*>(identity->home.c_str()));
  for (const auto& item : config.env) env.push_back(const_cast<char*>(item.c_str()));
  env.push_back(nullptr);
  environ = env.data();
  std::vector<char*> argv;
  for (const auto& item : args) argv.push_back(const_cast<char*>(item.c_str()));
  argv.push_back(nullptr);
  for (int signal = 1; signal < 32; ++signal) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(argv[0], argv.data());
  if (errno == ENOENT && args[0].find('/') == std::string::npos)
    return fmt::format("exec: {}: executable file not found in $PATH", quoted(args[0]));
  return fmt::format("exec: {}: {}",
                     quoted(args[0]),
                     errno == ENOENT   ? "no such file or directory"
                     : errno == EACCES ? "permission denied"
                                       : std::strerror(errno));
}

int run_init(int main_pid) {
  close_range(0, ~0U, 0);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  for (;;) {
    siginfo_t info{};
    const int signal = sigwaitinfo(&all, &info);
    if (signal < 0) continue;
    if (signal != SIGCHLD) {
      kill(main_pid, signal);
      continue;
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == main_pid)
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
  }
}

}  // namespace muster::agent::process
