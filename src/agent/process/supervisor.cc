#include "agent/process/supervisor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <net/if.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <map>
#include <memory>

#include "agent/process/child.h"
#include "agent/process/log_writer.h"
#include "agent/process/netlink.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

constexpr std::size_t kSinkBytesMax = 1024 * 1024;  // an attached reader this far behind is cut off

std::int64_t now_us() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
}
std::int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// `cgroup`: where the child starts; -1: where we are.
pid_t clone_process(std::uint64_t flags, int cgroup = -1) {
  clone_args args{};
  args.flags = flags;
  args.exit_signal = SIGCHLD;
  if (cgroup >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup);
  }
  return static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
}

struct Pipe {
  Fd read, write;
};
Pipe make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {};
  return {Fd(fds[0]), Fd(fds[1])};
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/// One attached reader of one stream.
struct Sink {
  Fd fd;
  std::string pending;
};

struct Container {
  ContainerConfig config;
  ContainerStatus status;
  pid_t pid = -1;  // of the container's first process; -1 once collected
  Fd pid_namespace, mount_namespace;
  std::unique_ptr<LogWriter> log;
  Fd output[2];  // what is read: stdout and stderr, or the terminal's master in [0]
  Fd input;      // stdin's write end
  std::list<Sink> sinks[2];
  std::int64_t kill_at_ms = 0;  // SIGKILL is due; 0: not
  bool exited = false;          // collected; reported once both outputs are drained
  int wait_status = 0;
};

struct Exec {
  std::int64_t number = 0;
  int connection = -1;
};

class Supervisor {
 public:
  explicit Supervisor(ShimConfig config) : config_(std::move(config)) {}

  int run_later(Fd control) {
    prctl(PR_SET_NAME, "muster-warm");
    const auto entered = enter_namespaces();
    if (!entered) {
      reply(control.get(), json::Object{{"ev", "failed"}, {"message", entered.error().message}});
      return 1;
    }
    reply(control.get(), json::Object{{"ev", "warm"}});
    for (;;) {
      pollfd item{control.get(), POLLIN, 0};
      poll(&item, 1, -1);
      Message message;
      const auto received = receive_message(control.get(), message);
      if (received == Received::kClosed) return 0;
      if (received == Received::kNothingYet) continue;
      config_ = shim_config_from_json(json::at(message.body, "config"));
      return run(std::move(control));
    }
  }

  int run(Fd control) {
    const auto ready = prepare();
    connections_.push_back(std::move(control));
    if (!ready) {
      reply(connections_.front().get(),
            json::Object{{"ev", "failed"}, {"message", ready.error().message}});
      return 1;
    }
    reply(connections_.front().get(), json::Object{{"ev", "ready"}, {"pid", getpid()}});
    while (!done_) step();
    return 0;
  }

 private:
  Result<void> prepare() {
    prctl(PR_SET_NAME, "muster-pod");
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    sigprocmask(SIG_SETMASK, &mask, nullptr);
    signal(SIGPIPE, SIG_IGN);
    signals_.reset(signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    auto listening = listen_at(config_.sandbox.run_directory, "shim.sock");
    if (!listening) return fail(listening.error());
    listener_ = std::move(*listening);
    own_pid_namespace_.reset(open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC));
    if (!config_.isolate) return {};

    const auto entered = enter_namespaces();
    if (!entered) return entered;
    if (unshare(CLONE_NEWNS) != 0) return fail(system_error("make a mount namespace", errno));
    const auto prepared = prepare_pod(config_);
    if (!prepared) return prepared;
    return config_.sandbox.share_process_namespace ? start_shared_init() : Result<void>();
  }

  /// Network, hostname and ipc; once. Mounts come with the pod: those of the machine may change
  /// while a supervisor waits for one.
  Result<void> enter_namespaces() {
    if (entered_) return {};
    const auto netlink = open_netlink();
    if (!netlink) return fail(netlink.error());
    const Fd host_netlink(*netlink);
    const int bridge =
        config_.bridge.empty() ? 0 : static_cast<int>(if_nametoindex(config_.bridge.c_str()));
    int flags = 0;
    if (!config_.sandbox.host_network) flags |= CLONE_NEWNET | CLONE_NEWUTS;
    if (!config_.sandbox.host_ipc) flags |= CLONE_NEWIPC;
    if (unshare(flags) != 0) return fail(system_error("make namespaces", errno));
    entered_ = true;
    if (config_.sandbox.host_network) return {};
    if (config_.bridge.empty()) return loopback_up();
    PodLink link;
    link.host_name = fmt::format(
        "mv{:x}", getpid());  // not the address: the kernel removes an old pod's link late
    link.bridge_index = bridge;
    link.address = config_.address;
    link.gateway = config_.gateway;
    link.prefix = config_.prefix;
    return join_bridge(host_netlink.get(), link);
  }

  /// With shareProcessNamespace the pod's first process only collects orphans.
  Result<void> start_shared_init() {
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

  // ---- the loop
  // -----------------------------------------------------------------------------------------

  void step() {
    std::vector<pollfd> polls;
    polls.push_back({signals_.get(), POLLIN, 0});
    polls.push_back({listener_.get(), POLLIN, 0});
    for (const auto& connection : connections_) polls.push_back({connection.get(), POLLIN, 0});
    for (auto& [id, container] : containers_) {
      for (int i = 0; i < 2; ++i) {
        if (container.output[i]) polls.push_back({container.output[i].get(), POLLIN, 0});
        for (const auto& sink : container.sinks[i])
          polls.push_back(
              {sink.fd.get(), static_cast<short>(sink.pending.empty() ? 0 : POLLOUT), 0});
      }
    }
    poll(polls.data(), polls.size(), timeout_ms());
    kill_overdue();
    std::map<int, short> ready;
    for (const auto& item : polls) {
      if (item.revents != 0) ready[item.fd] = item.revents;
    }
    for (auto& [id, container] : containers_) serve_output(container, ready);
    if (ready.contains(signals_.get())) collect_children();
    if (ready.contains(listener_.get())) accept_connection();
    for (std::size_t i = 0; i < connections_.size();) {
      if (ready.contains(connections_[i].get()) && !serve_connection(connections_[i].get())) {
        connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
  }

  int timeout_ms() const {
    std::int64_t next = -1;
    for (const auto& [id, container] : containers_) {
      if (container.kill_at_ms == 0) continue;
      const auto left = std::max<std::int64_t>(0, container.kill_at_ms - monotonic_ms());
      if (next < 0 || left < next) next = left;
    }
    return static_cast<int>(next);
  }

  void kill_overdue() {
    for (auto& [id, container] : containers_) {
      if (container.kill_at_ms == 0 || monotonic_ms() < container.kill_at_ms) continue;
      container.kill_at_ms = 0;
      kill_container(container);
    }
  }

  /// With a process namespace of its own everything in it ends with its first process.
  bool has_own_processes(const Container& container) const {
    return config_.isolate && !shared_pid_namespace_ && !config_.sandbox.host_pid &&
           container.config.joins_processes_of.empty();
  }

  void kill_container(Container& container) {
    if (container.pid <= 0) return;
    kill(container.pid, SIGKILL);
    if (!has_own_processes(container)) {
      kill(-container.pid, SIGKILL);
      for (const auto pid : cgroup::members(config_.cgroups, group_of(container.config.name)))
        kill(pid, SIGKILL);
    }
  }

  /// Relays what the container wrote; at end of stream the descriptor is closed.
  void serve_output(Container& container, const std::map<int, short>& ready) {
    for (int i = 0; i < 2; ++i) {
      if (container.output[i] && ready.contains(container.output[i].get()))
        read_output(container, i);
      for (auto& sink : container.sinks[i]) {
        const auto event = ready.find(sink.fd.get());
        if (event == ready.end()) continue;
        if ((event->second & (POLLERR | POLLHUP)) != 0) {
          sink.fd.reset();  // nobody reads any more
        } else {
          feed(sink, "");
        }
      }
      container.sinks[i].remove_if([](const Sink& sink) { return !sink.fd; });
    }
    if (container.exited && !container.output[0] && !container.output[1]) finish(container);
  }

  void read_output(Container& container, int stream) {
    char buffer[64 * 1024];
    const auto got = read(container.output[stream].get(), buffer, sizeof buffer);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {  // a terminal's master gives EIO once the last slave is closed
      container.output[stream].reset();
      return;
    }
    const std::string_view bytes(buffer, static_cast<std::size_t>(got));
    container.log->write(stream == 0 ? LogWriter::kStdout : LogWriter::kStderr, bytes);
    for (auto& sink : container.sinks[stream]) feed(sink, bytes);
  }

  static void feed(Sink& sink, std::string_view bytes) {
    sink.pending += bytes;
    while (!sink.pending.empty()) {
      const auto wrote = write(sink.fd.get(), sink.pending.data(), sink.pending.size());
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && errno == EAGAIN && sink.pending.size() < kSinkBytesMax) return;
      if (wrote <= 0) {
        sink.fd.reset();
        return;
      }
      sink.pending.erase(0, static_cast<std::size_t>(wrote));
    }
  }

  void collect_children() {
    signalfd_siginfo info;
    while (read(signals_.get(), &info, sizeof info) == sizeof info) {
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) collected(pid, status);
  }

  void collected(pid_t pid, int status) {
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

  void container_exited(Container& container, int status) {
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
          container.output[i]
              .reset();  // held open by something that escaped; it has nothing to say now
          break;
        }
        read_output(container, i);
      }
    }
    finish(container);
  }

  void finish(Container& container) {
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

  std::string group_of(const std::string& container) const {
    return cgroup::group_name(config_.sandbox.id, container);
  }

  /// Whole and renamed into place, so that a reader never sees half of it.
  void save_state() const {
    const auto path = config_.sandbox.run_directory + "/state";
    const auto text = json::dump(snapshot());
    const Fd file(open((path + ".new").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file && write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()))
      rename((path + ".new").c_str(), path.c_str());
  }

  json::Value snapshot() const {
    json::Array containers;
    for (const auto& [id, container] : containers_) containers.push_back(to_json(container.status));
    return json::Object{{"ev", "hello"}, {"pid", getpid()}, {"containers", std::move(containers)}};
  }

  // ---- connections
  // --------------------------------------------------------------------------------------

  void accept_connection() {
    Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    reply(connection.get(), snapshot());
    connections_.push_back(std::move(connection));
  }

  void reply(int connection, const json::Value& body, const std::vector<int>& fds = {}) {
    (void)send_message(connection, body, fds, config_.sandbox.run_directory);
  }
  void broadcast(const json::Value& body) {
    for (const auto& connection : connections_) reply(connection.get(), body);
  }

  bool serve_connection(int connection) {
    Message message;
    switch (receive_message(connection, message)) {
      case Received::kNothingYet:
        return true;
      case Received::kClosed:
        return false;
      case Received::kMessage:
        break;
    }
    const auto op = json::text(json::at(message.body, "op"));
    const auto request = json::as_int(json::at(message.body, "request"));
    std::vector<Fd> fds;
    auto answer = perform(op, message.body, connection, fds);
    json::Object body{{"ev", "reply"}, {"request", request}};
    if (answer) {
      body["value"] = std::move(*answer);
    } else {
      body["error"] = answer.error().message;
      body["notFound"] = answer.error().code == Code::kNotFound;
    }
    std::vector<int> numbers;
    for (const auto& fd : fds) numbers.push_back(fd.get());
    reply(connection, body, numbers);
    return true;
  }

  Result<json::Value> perform(const std::string& op,
                              const json::Value& body,
                              int connection,
                              std::vector<Fd>& fds) {
    if (op == "start") return start(container_config_from_json(json::at(body, "config")));
    if (op == "shutdown") return shutdown();
    if (op == "connect")
      return connect_port(static_cast<int>(json::as_int(json::at(body, "port"))), fds);
    const auto found = containers_.find(json::text(json::at(body, "container")));
    if (found == containers_.end())
      return fail(
          Code::kNotFound,
          fmt::format("container \"{}\" not found", json::text(json::at(body, "container"))));
    auto& container = found->second;
    if (op == "stop") return stop(container, json::as_int(json::at(body, "graceMs")));
    if (op == "close-stdin") {
      container.input.reset();
      return json::Value(json::Object{});
    }
    if (op == "limits") {
      container.config.limits = limits_from_json(json::at(body, "limits"));
      const auto applied = cgroup::change_limits(
          config_.cgroups, group_of(container.config.name), container.config.limits);
      if (!applied) return fail(applied.error());
      return json::Value(json::Object{});
    }
    if (op == "exec") return exec(container, body, connection, fds);
    if (op == "attach") return attach(container, body, fds);
    return fail(Code::kBadRequest, fmt::format("unknown operation \"{}\"", op));
  }

  // ---- operations
  // ---------------------------------------------------------------------------------------

  struct Terminal {
    Fd master, slave;
  };
  static Result<Terminal> open_terminal() {
    Terminal terminal;
    terminal.master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal.master || grantpt(terminal.master.get()) != 0 ||
        unlockpt(terminal.master.get()) != 0)
      return fail(system_error("open a terminal", errno));
    terminal.slave.reset(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
    if (!terminal.slave) return fail(system_error("open a terminal's slave", errno));
    return terminal;
  }

  Result<json::Value> start(ContainerConfig config) {
    Container container;
    container.config = std::move(config);
    const auto& wanted = container.config;
    auto& status = container.status;
    status.id = wanted.id;
    status.name = wanted.name;
    status.attempt = wanted.attempt;
    status.created = Time{now_us()};
    container.log = std::make_unique<LogWriter>(wanted.log_path);
    const auto grouped = cgroup::create(config_.cgroups, group_of(wanted.name), wanted.limits);
    if (!grouped) return fail(grouped.error());

    ChildStreams streams;
    Pipe in, out, err;
    Terminal terminal;
    if (wanted.tty) {
      auto opened = open_terminal();
      if (!opened) return fail(opened.error());
      terminal = std::move(*opened);
      streams = {terminal.slave.get(), terminal.slave.get(), terminal.slave.get(), true};
    } else {
      out = make_pipe();
      err = make_pipe();
      if (wanted.stdin_open) in = make_pipe();
      streams = {in.read.get(), out.write.get(), err.write.get(), false};
    }
    auto failure = make_pipe();
    container.pid = launch_container(container.config, streams, failure);
    if (container.pid < 0) return fail(system_error("clone", errno));
    if (config_.isolate) open_namespaces(container);
    failure.write.reset();
    if (wanted.tty) {
      container.output[0] = std::move(terminal.master);
      set_nonblocking(container.output[0].get());
    } else {
      container.output[0] = std::move(out.read);
      container.output[1] = std::move(err.read);
      container.input = std::move(in.write);
      set_nonblocking(container.output[0].get());
      set_nonblocking(container.output[1].get());
    }
    const auto problem = read_all(failure.read.get());
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
    save_state();
    return answer;
  }

  void open_namespaces(Container& container) {
    container.pid_namespace.reset(
        open(fmt::format("/proc/{}/ns/pid", container.pid).c_str(), O_RDONLY | O_CLOEXEC));
    container.mount_namespace.reset(
        open(fmt::format("/proc/{}/ns/mnt", container.pid).c_str(), O_RDONLY | O_CLOEXEC));
  }

  static std::string read_all(int fd) {
    std::string out;
    char buffer[4096];
    for (;;) {
      const auto got = read(fd, buffer, sizeof buffer);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return out;
      out.append(buffer, static_cast<std::size_t>(got));
    }
  }

  pid_t launch_container(const ContainerConfig& wanted,
                         const ChildStreams& streams,
                         const Pipe& failure) {
    const auto joined = containers_.find(wanted.joins_processes_of);
    const int joins = joined != containers_.end() && joined->second.pid_namespace
                          ? joined->second.pid_namespace.get()
                          : shared_pid_namespace_.get();
    const bool own_pids = config_.isolate && !config_.sandbox.host_pid && joins < 0;
    std::uint64_t flags = 0;
    if (config_.isolate) flags |= CLONE_NEWNS;
    if (own_pids) flags |= CLONE_NEWPID;
    if (joins >= 0) setns(joins, CLONE_NEWPID);
    const Fd group(cgroup::open_for_clone(config_.cgroups, group_of(wanted.name)));
    const auto pid = clone_process(flags, group.get());
    if (joins >= 0) setns(own_pid_namespace_.get(), CLONE_NEWPID);
    if (pid != 0) return pid;

    // The child.
    const auto report = [&](const std::string& problem) {
      if (write(failure.write.get(), problem.data(), problem.size()) < 0) _exit(127);
      _exit(128);
    };
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    std::vector<Fd> doors;
    if (!group) {
      auto opened = cgroup::open_doors(config_.cgroups, group_of(wanted.name), wanted.limits);
      if (!opened) report(opened.error().message);
      doors = std::move(*opened);
    }
    if (config_.isolate) {
      const auto prepared =
          prepare_container(config_, wanted, own_pids || joins >= 0);
      if (!prepared) report(prepared.error().message);
    }
    // Late: a container that asks for no processor time waits for all others from here on, and its
    // start should not.
    const auto entered = cgroup::enter(doors);
    if (!entered) report(entered.error().message);
    doors.clear();
    if (!config_.isolate) report(become(wanted, wanted.args, streams));
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    // Shares our memory until it has become the command: nothing is copied only to be thrown away.
    const auto main_pid = vfork();
    if (main_pid == 0) {
      if (!own_pids) prctl(PR_SET_PDEATHSIG, SIGKILL);
      report(become(wanted, wanted.args, streams));
    }
    prctl(PR_SET_NAME, "muster-init");
    _exit(run_init(main_pid));
  }

  Result<json::Value> stop(Container& container, std::int64_t grace_ms) {
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

  Result<json::Value> shutdown() {
    for (auto& [id, container] : containers_) kill_container(container);
    const auto running = [this] {
      return std::any_of(containers_.begin(), containers_.end(), [](const auto& item) {
        return item.second.pid > 0;
      });
    };
    // Whoever ends first: a pid namespace ends only when the execs in it, which are our children,
    // are collected.
    int status = 0;
    while (running()) {
      const auto pid = waitpid(-1, &status, 0);
      if (pid < 0 && errno != EINTR) break;
      if (pid > 0) collected(pid, status);
    }
    done_ = true;
    return json::Value(json::Object{});
  }

  Result<json::Value> exec(Container& container,
                           const json::Value& body,
                           int connection,
                           std::vector<Fd>& fds) {
    if (container.pid <= 0)
      return fail(Code::kNotFound,
                  fmt::format("container \"{}\" is not running", container.config.name));
    std::vector<std::string> command;
    for (const auto& item : json::as_array(json::at(body, "command")))
      command.push_back(json::text(item));
    if (command.empty())
      return fail(Code::kBadRequest, "you must specify at least 1 command for the container");
    const bool tty = json::as_bool(json::at(body, "tty"));
    ChildStreams streams;
    Pipe in, out, err;
    Terminal terminal;
    if (tty) {
      auto opened = open_terminal();
      if (!opened) return fail(opened.error());
      terminal = std::move(*opened);
      streams = {terminal.slave.get(), terminal.slave.get(), terminal.slave.get(), true};
    } else {
      if (json::as_bool(json::at(body, "stdin"))) in = make_pipe();
      if (json::as_bool(json::at(body, "stdout"))) out = make_pipe();
      if (json::as_bool(json::at(body, "stderr"))) err = make_pipe();
      streams = {in.read.get(), out.write.get(), err.write.get(), false};
    }
    auto failure = make_pipe();
    if (container.pid_namespace) setns(container.pid_namespace.get(), CLONE_NEWPID);
    const auto pid = fork();
    if (container.pid_namespace) setns(own_pid_namespace_.get(), CLONE_NEWPID);
    if (pid < 0) return fail(system_error("fork", errno));
    if (pid == 0) exec_child(container, command, streams, failure);
    failure.write.reset();
    const auto problem = read_all(failure.read.get());
    if (!problem.empty()) {
      waitpid(pid, nullptr, 0);
      return fail(Code::kInternal, problem);
    }
    execs_[pid] = {json::as_int(json::at(body, "exec")), connection};
    if (tty) {
      fds.push_back(std::move(terminal.master));
    } else {
      for (auto* fd : {&in.write, &out.read, &err.read}) {
        if (*fd) fds.push_back(std::move(*fd));
      }
    }
    return json::Value(json::Object{{"pid", pid}});
  }

  [[noreturn]] void exec_child(const Container& container,
                               const std::vector<std::string>& command,
                               const ChildStreams& streams,
                               const Pipe& failure) {
    const auto report = [&](const std::string& problem) {
      if (write(failure.write.get(), problem.data(), problem.size()) < 0) _exit(127);
      _exit(126);
    };
    const auto doors = cgroup::open_doors(
        config_.cgroups, group_of(container.config.name), container.config.limits);
    if (doors) (void)cgroup::enter(*doors);
    if (container.mount_namespace && setns(container.mount_namespace.get(), CLONE_NEWNS) != 0)
      report(system_error("enter the container", errno).message);
    auto config = container.config;
    if (config.working_dir.empty()) config.working_dir = "/";
    if (streams.tty) {
      bool has_term = false;
      for (const auto& item : config.env) has_term = has_term || item.starts_with("TERM=");
      if (!has_term) config.env.emplace_back("TERM=xterm");
    }
    report(become(config, command, streams));
    _exit(126);
  }

  Result<json::Value> attach(Container& container, const json::Value& body, std::vector<Fd>& fds) {
    if (container.pid <= 0)
      return fail(Code::kNotFound,
                  fmt::format("container \"{}\" is not running", container.config.name));
    const bool tty = container.config.tty;
    if (json::as_bool(json::at(body, "stdin"))) {
      const int source = tty ? container.output[0].get() : container.input.get();
      if (source < 0)
        return fail(
            Code::kBadRequest,
            fmt::format("container \"{}\" does not have stdin open", container.config.name));
      fds.emplace_back(fcntl(source, F_DUPFD_CLOEXEC, 3));
    }
    for (int i = 0; i < (tty ? 1 : 2); ++i) {
      if (!json::as_bool(json::at(body, i == 0 ? "stdout" : "stderr"))) continue;
      auto pipe = make_pipe();
      set_nonblocking(pipe.write.get());
      container.sinks[i].push_back({std::move(pipe.write), ""});
      fds.push_back(std::move(pipe.read));
    }
    return json::Value(json::Object{{"tty", tty}, {"stdinOnce", container.config.stdin_once}});
  }

  /// The socket is made here, in the pod's network, and used by the agent.
  Result<json::Value> connect_port(int port, std::vector<Fd>& fds) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      return fail(
          Code::kUnavailable,
          fmt::format(
              "failed to connect to localhost:{} inside the pod: {}", port, std::strerror(errno)));
    }
    fds.push_back(std::move(socket));
    return json::Value(json::Object{});
  }

  ShimConfig config_;
  bool entered_ = false;  // the pod's network, hostname and ipc namespaces
  std::vector<Fd> connections_;
  Fd listener_, signals_, own_pid_namespace_, shared_pid_namespace_;
  std::map<std::string, Container> containers_;  // by id; one attempt of each name
  std::map<pid_t, Exec> execs_;
  bool done_ = false;
};

}  // namespace

int supervise(ShimConfig config, Fd control) {
  return Supervisor(std::move(config)).run(std::move(control));
}

int supervise_later(ShimConfig config, Fd control) {
  return Supervisor(std::move(config)).run_later(std::move(control));
}

}  // namespace muster::agent::process
