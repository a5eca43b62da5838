#include <fcntl.h>
#include <fmt/core.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/process/capabilities.h"
#include "agent/process/devices.h"
#include "agent/process/monotonic.h"
#include "agent/process/own_folder.h"
#include "agent/process/supervisor_pod.h"

namespace muster::agent::process {
namespace {

std::int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}

/// What the first process of a container says before it becomes its command: lines with this at
/// their beginning, then what went wrong, if anything did.
constexpr std::string_view kOwnersHidden = "\x01owners ";

std::vector<std::string> take_notes(std::string& said) {
  std::vector<std::string> out;
  while (said.starts_with(kOwnersHidden)) {
    const auto end = said.find('\n');
    out.push_back(said.substr(kOwnersHidden.size(), end - kOwnersHidden.size()));
    said.erase(0, end + 1);
  }
  return out;
}

void open_namespaces(Container& container) {
  container.pid_namespace.reset(
      open(fmt::format("/proc/{}/ns/pid", container.pid).c_str(), O_RDONLY | O_CLOEXEC));
  if (container.mount_namespace) return;  // made ahead
  container.mount_namespace.reset(
      open(fmt::format("/proc/{}/ns/mnt", container.pid).c_str(), O_RDONLY | O_CLOEXEC));
}

}  // namespace

pid_t clone_process(std::uint64_t flags, int cgroup) {
  clone_args args{};
  args.flags = flags;
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  return static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
}

/// With shareProcessNamespace the pod's first process only collects orphans.
Result<void> Supervisor::start_shared_init() {
  const auto pid = clone_process(CLONE_NEWPID);
  if (pid < 0) return fail(system_error("make a pid namespace", errno));
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(run_init(-1));
  }
  shared_pid_namespace_.reset(
      open(fmt::format("/proc/{}/ns/pid", pid).c_str(), O_RDONLY | O_CLOEXEC));
  return {};
}

Result<json::Value> Supervisor::start(ContainerConfig config) {
  Container container;
  container.config = std::move(config);
  const auto& wanted = container.config;
  auto& status = container.status;
  status.id = wanted.id;
  status.name = wanted.name;
  status.attempt = wanted.attempt;
  status.created = Time{now_us()};
  powerful_ = powerful_ || wanted.privileged ||
              beyond_usual(wanted.add_capabilities, wanted.drop_capabilities);
  unfiltered_ = unfiltered_ || wanted.unconfined || !wanted.seccomp_profile.empty();
  shares_files_ = shares_files_ || shares_files(config_, wanted);
  container.log = std::make_unique<LogWriter>(wanted.log_path);
  const auto grouped = cgroup::create(config_.cgroups, group_of(wanted.name), wanted.limits);
  if (!grouped) return fail(grouped.error());

  auto streams = open_streams({wanted.tty, wanted.stdin_open, true, true});
  if (!streams) return fail(streams.error());
  auto failure = make_pipe();
  container.pid = launch_container(container, streams->child, failure);
  if (container.pid < 0) return fail(system_error("clone", errno));
  if (config_.isolate) open_namespaces(container);
  failure.write.reset();
  close_child_ends(*streams);
  container.output[0] = std::move(wanted.tty ? streams->terminal.master : streams->out.read);
  container.output[1] = std::move(streams->err.read);
  container.input = std::move(streams->in.write);
  for (const auto& output : container.output) {
    if (output) set_nonblocking(output.get());
  }
  auto problem = read_all(failure.read.get());
  status.owners_hidden = take_notes(problem);
  owns_outside_ = owns_outside_ || !status.owners_hidden.empty();
  status.started = Time{now_us()};
  status.state = ContainerState::kRunning;
  if (!problem.empty()) {
    waitpid(container.pid, nullptr, 0);
    cgroup::remove(config_.cgroups, group_of(wanted.name));
    status.state = ContainerState::kExited;
    status.finished = status.started;
    status.exit_code = 128;
    status.reason = "StartError";
    status.message = problem;
    container.pid = -1;
  }
  const auto answer = to_json(status);
  // An older attempt of the same container is history now.
  for (auto old = containers_.begin(); old != containers_.end();) {
    old = old->second.status.name == wanted.name ? containers_.erase(old) : std::next(old);
  }
  containers_.emplace(status.id, std::move(container));
  unsaved_ = true;
  return answer;
}

pid_t Supervisor::launch_container(Container& container,
                                   const ChildStreams& streams,
                                   const Pipe& failure) {
  const auto& wanted = container.config;
  const auto joined = containers_.find(wanted.joins_processes_of);
  const int joins = joined != containers_.end() && joined->second.pid_namespace
                        ? joined->second.pid_namespace.get()
                        : shared_pid_namespace_.get();
  const bool own_pids = config_.isolate && !config_.sandbox.host_pid && joins < 0;
  const auto owner = config_.isolate ? owner_of(wanted) : Owner();
  auto root = take_root(wanted, owner);
  const bool enters_root = root && wanted.layers.empty();
  std::uint64_t flags = 0;
  if (config_.isolate && !enters_root) flags |= CLONE_NEWNS;
  if (own_pids) flags |= CLONE_NEWPID;
  if (joins >= 0) setns(joins, CLONE_NEWPID);
  const Fd group(cgroup::open_for_clone(config_.cgroups, group_of(wanted.name)));
  // Opened on this side: in the container's own mounts they would be all that keeps /sys writable.
  Result<std::vector<Fd>> doors;
  if (!group) doors = cgroup::open_doors(config_.cgroups, group_of(wanted.name), wanted.limits);
  const auto pid = clone_process(flags, group.get());
  if (pid == 0) {
    Placement placement;
    placement.own_processes = own_pids;
    placement.root.any_processes = own_pids || joins >= 0;
    placement.root.ready = std::move(root);
    placement.root.owner = placement.owner = owner;
    become_container(wanted, streams, failure, std::move(placement), std::move(doors));
  }
  if (joins >= 0) setns(own_pid_namespace_.get(), CLONE_NEWPID);
  (enters_root ? container.mount_namespace : spent_) = std::move(root);
  return pid;
}

/// A root that was made ahead for this owner, with its folder in the container's place.
Fd Supervisor::take_root(const ContainerConfig& wanted, const Owner& owner) {
  if (owner.mapped() != namespaces_.owner().mapped()) return {};
  // The /dev of a root that was made ahead may be a shared one, which cannot be changed.
  if (wants_own_devices(wanted)) return {};
  auto ready =
      namespaces_.take_root(wanted.layers.empty() ? FolderKind::kHost : FolderKind::kImage);
  if (!ready.mounts) return {};
  if (ready.kind == FolderKind::kHost && wanted.layers.empty()) {
    // It is mounted already: where it lies is for later, as the disk may take its time.
    if (access(ready.folder.c_str(), F_OK) != 0) return {};
    moving_ = {std::move(ready.folder), wanted};
    return std::move(ready.mounts);
  }
  const auto moved = move_in(ready.folder, config_, wanted);
  return moved && *moved ? std::move(ready.mounts) : Fd();
}

void Supervisor::move_folder_in() {
  const auto moving = std::exchange(moving_, std::nullopt);
  if (!moving) return;
  const auto moved = move_in(moving->folder, config_, moving->config);
  if (moved && *moved) return;
  // It goes with this process, then; until that the agent does not count what is in it.
  namespaces_.keep_folder(moving->folder);
  owns_outside_ = true;
}

void Supervisor::become_container(const ContainerConfig& wanted,
                                  const ChildStreams& streams,
                                  const Pipe& failure,
                                  Placement placement,
                                  Result<std::vector<Fd>> doors) {
  const auto note = [&](const std::string& line) {
    return write(failure.write.get(), (line + "\n").data(), line.size() + 1) > 0;
  };
  const auto report = [&](const std::string& problem) {
    if (write(failure.write.get(), problem.data(), problem.size()) < 0) _exit(127);
    _exit(128);
  };
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  setsid();
  if (!doors) report(doors.error().message);
  if (config_.isolate) {
    const auto prepared = prepare_container(config_, wanted, std::move(placement.root));
    if (!prepared) report(prepared.error().message);
    for (const auto& target : *prepared) note(std::string(kOwnersHidden) + target);
  }
  // Late: a container that asks for no processor time waits for all others from here on, and its
  // start should not.
  const auto entered = cgroup::enter(*doors);
  if (!entered) report(entered.error().message);
  doors->clear();
  // From here on its own groups are the top of what it is told of.
  if (config_.isolate && !wanted.privileged) (void)unshare(CLONE_NEWCGROUP);
  const Becoming how{
      streams, placement.owner, !placement.own_processes, config_.roots.bound, config_.closed};
  if (!config_.isolate) report(become(wanted, wanted.args, how));
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  // Shares our memory until it has become the command: nothing is copied only to be thrown away.
  const auto main_pid = vfork();
  if (main_pid == 0) {
    report(become(wanted, wanted.args, how));
  }
  // The supervisor waits until the last of these ends is closed; the command's has gone by now.
  close(failure.write.get());
  // One of the pod's own from here on, as whoever counts processes by user sees it.
  if (enter_users(placement.owner)) prctl(PR_SET_PDEATHSIG, SIGKILL);
  prctl(PR_SET_NAME, "muster-init");
  _exit(run_init(main_pid));
}

Result<json::Value> Supervisor::stop(Container& container, std::int64_t grace_ms) {
  if (container.pid > 0) {
    if (grace_ms <= 0) {
      kill_container(container);
    } else {
      const auto at = monotonic_ms() + grace_ms;
      if (container.kill_at_ms == 0) kill(container.pid, SIGTERM);
      if (container.kill_at_ms == 0 || at < container.kill_at_ms) container.kill_at_ms = at;
    }
  }
  return json::Value(json::Object{});
}

void Supervisor::kill_overdue() {
  for (auto& [id, container] : containers_) {
    if (container.kill_at_ms == 0 || monotonic_ms() < container.kill_at_ms) continue;
    container.kill_at_ms = 0;
    kill_container(container);
  }
}

/// With a process namespace of its own everything in it ends with its first process.
bool Supervisor::has_own_processes(const Container& container) const {
  return config_.isolate && !shared_pid_namespace_ && !config_.sandbox.host_pid &&
         container.config.joins_processes_of.empty();
}

void Supervisor::kill_container(Container& container) {
  if (container.pid <= 0) return;
  kill(container.pid, SIGKILL);
  if (!has_own_processes(container)) {
    kill(-container.pid, SIGKILL);
    for (const auto pid : cgroup::members(config_.cgroups, group_of(container.config.name)))
      kill(pid, SIGKILL);
  }
}

void Supervisor::collect_children() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == sizeof info) {
  }
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) collected(pid, status);
}

void Supervisor::collected(pid_t pid, int status) {
  if (const auto exec = execs_.find(pid); exec != execs_.end()) {
    const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    reply(exec->second.connection,
          json::Object{{"ev", "exec-exit"}, {"exec", exec->second.number}, {"code", code}});
    execs_.erase(exec);
    return;
  }
  for (auto& [id, container] : containers_) {
    if (container.pid == pid) container_exited(container, status);
  }
}

void Supervisor::container_exited(Container& container, int status) {
  if (!has_own_processes(container)) {
    kill(-container.pid, SIGKILL);
    for (const auto pid : cgroup::members(config_.cgroups, group_of(container.config.name)))
      kill(pid, SIGKILL);
  }
  container.pid = -1;
  container.exited = true;
  container.wait_status = status;
  container.kill_at_ms = 0;
  for (int i = 0; i < 2; ++i) {  // what is still in the pipes
    while (container.output[i]) {
      pollfd item{container.output[i].get(), POLLIN, 0};
      if (poll(&item, 1, 0) <= 0) {
        // Held open by something that escaped; it has nothing to say now.
        container.output[i].reset();
        break;
      }
      read_output(container, i);
    }
  }
  finish(container);
}

void Supervisor::finish(Container& container) {
  if (container.status.state == ContainerState::kExited) return;
  auto& status = container.status;
  status.state = ContainerState::kExited;
  status.finished = Time{now_us()};
  const int raw = container.wait_status;
  status.exit_code = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
  const bool oom = cgroup::oom_killed(config_.cgroups, group_of(container.config.name));
  status.reason = oom && status.exit_code != 0 ? "OOMKilled"
                  : status.exit_code == 0      ? "Completed"
                                               : "Error";
  container.log->finish();
  container.log.reset();
  for (auto& sinks : container.sinks) sinks.clear();
  container.input.reset();
  container.pid_namespace.reset();
  container.mount_namespace.reset();
  cgroup::remove(config_.cgroups, group_of(container.config.name));
  save_state();
  broadcast(json::Object{{"ev", "exited"}, {"container", to_json(status)}});
}

std::string Supervisor::group_of(const std::string& container) const {
  return cgroup::group_name(config_.sandbox.id, container);
}

/// Whole and renamed into place, so that a reader never sees half of it.
void Supervisor::save_state() const {
  const auto path = config_.sandbox.run_directory + "/state";
  const auto text = json::dump(snapshot());
  const Fd file(open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
    rename((path + ".new").c_str(), path.c_str());
}

json::Value Supervisor::snapshot() const {
  json::Array containers;
  for (const auto& [id, container] : containers_) containers.push_back(to_json(container.status));
  return json::Object{{"ev", "hello"}, {"pid", getpid()}, {"containers", std::move(containers)}};
}

}  // namespace muster::agent::process
