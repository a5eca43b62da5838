#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/process/supervisor_pod.h"

namespace muster::agent::process {
namespace {

constexpr std::size_t kSinkBytesMax = 1024 * 1024;  // an attached reader this far behind is cut off

Result<Terminal> open_terminal() {
  Terminal terminal;
  terminal.master.reset(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.master || grantpt(terminal.master.get()) != 0 ||
      unlockpt(terminal.master.get()) != 0)
    return fail(system_error("open a terminal", errno));
  terminal.slave.reset(ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.slave) return fail(system_error("open a terminal's slave", errno));
  return terminal;
}

void feed(Sink& sink, std::string_view bytes) {
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

}  // namespace

Result<Streams> open_streams(const StreamsWanted& wanted) {
  Streams out;
  if (wanted.tty) {
    auto opened = open_terminal();
    if (!opened) return fail(opened.error());
    out.terminal = std::move(*opened);
    const int slave = out.terminal.slave.get();
    out.child = {slave, slave, slave, true};
    return out;
  }
  if (wanted.in) out.in = make_pipe();
  if (wanted.out) out.out = make_pipe();
  if (wanted.err) out.err = make_pipe();
  out.child = {out.in.read.get(), out.out.write.get(), out.err.write.get(), false};
  return out;
}

void close_child_ends(Streams& streams) {
  streams.in.read.reset();
  streams.out.write.reset();
  streams.err.write.reset();
  streams.terminal.slave.reset();
}

Pipe make_pipe() {
  int fds[2];
  if (pipe2(fds, O_CLOEXEC) != 0) return {};
  return {Fd(fds[0]), Fd(fds[1])};
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

std::string read_all(int fd) {
  std::string out;
  char buffer[4096];
  for (;;) {
    const auto got = read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(buffer, static_cast<std::size_t>(got));
  }
}

Result<json::Value> Supervisor::exec(Container& container,
                                     const json::Value& body,
                                     int connection,
                                     std::vector<Fd>& fds) {
  if (container.pid <= 0)
    return fail(Code::kNotFound,
                fmt::format("container \"{}\" is not running", container.config.name));
  std::vector<std::string> command;
  for (const auto& item : json::array_at(body, "command")) command.push_back(json::text(item));
  if (command.empty())
    return fail(Code::kBadRequest, "you must specify at least 1 command for the container");
  const bool tty = json::bool_at(body, "tty");
  auto streams = open_streams({tty,
                               json::bool_at(body, "stdin"),
                               json::bool_at(body, "stdout"),
                               json::bool_at(body, "stderr")});
  if (!streams) return fail(streams.error());
  auto failure = make_pipe();
  if (container.pid_namespace) setns(container.pid_namespace.get(), CLONE_NEWPID);
  const auto pid = fork();
  if (container.pid_namespace) setns(own_pid_namespace_.get(), CLONE_NEWPID);
  if (pid < 0) return fail(system_error("fork", errno));
  if (pid == 0) exec_child(container, command, streams->child, failure);
  failure.write.reset();
  const auto problem = read_all(failure.read.get());
  if (!problem.empty()) {
    waitpid(pid, nullptr, 0);
    return fail(Code::kInternal, problem);
  }
  execs_[pid] = {json::int_at(body, "exec"), connection};
  if (tty) {
    fds.push_back(std::move(streams->terminal.master));
  } else {
    for (auto* fd : {&streams->in.write, &streams->out.read, &streams->err.read}) {
      if (*fd) fds.push_back(std::move(*fd));
    }
  }
  return json::Value(json::Object{{"pid", pid}});
}

[[noreturn]] void Supervisor::exec_child(const Container& container,
                                         const std::vector<std::string>& command,
                                         const ChildStreams& streams,
                                         const Pipe& failure) {
  const auto report = [&](const std::string& problem) {
    if (write(failure.write.get(), problem.data(), problem.size()) < 0) _exit(127);
    _exit(126);
  };
  // It runs our program until it has become the command: nobody in the container may look into it.
  prctl(PR_SET_DUMPABLE, 0);
  const Fd groups(
      open(fmt::format("/proc/{}/ns/cgroup", container.pid).c_str(), O_RDONLY | O_CLOEXEC));
  const auto doors =
      cgroup::open_doors(config_.cgroups, group_of(container.config.name), container.config.limits);
  if (doors) (void)cgroup::enter(*doors);
  if (groups && container.mount_namespace) (void)setns(groups.get(), CLONE_NEWCGROUP);
  // Whoever shares its root and folder with another thread may not enter, and a sanitizer brings a
  // thread of its own.
  if (container.mount_namespace &&
      (unshare(CLONE_FS) != 0 || setns(container.mount_namespace.get(), CLONE_NEWNS) != 0))
    report(system_error("enter the container", errno).message);
  auto config = container.config;
  if (config.working_dir.empty()) config.working_dir = "/";
  if (streams.tty) {
    bool has_term = false;
    for (const auto& item : config.env) has_term = has_term || item.starts_with("TERM=");
    if (!has_term) config.env.emplace_back("TERM=xterm");
  }
  report(become(
      config, command, {streams, owner_of(config), false, config_.roots.bound, config_.closed}));
  _exit(126);
}

Result<json::Value> Supervisor::attach(Container& container,
                                       const json::Value& body,
                                       std::vector<Fd>& fds) {
  if (container.pid <= 0)
    return fail(Code::kNotFound,
                fmt::format("container \"{}\" is not running", container.config.name));
  const bool tty = container.config.tty;
  if (json::bool_at(body, "stdin")) {
    const int source = tty ? container.output[0].get() : container.input.get();
    if (source < 0)
      return fail(Code::kBadRequest,
                  fmt::format("container \"{}\" does not have stdin open", container.config.name));
    fds.emplace_back(fcntl(source, F_DUPFD_CLOEXEC, 3));
  }
  for (int i = 0; i < (tty ? 1 : 2); ++i) {
    if (!json::bool_at(body, i == 0 ? "stdout" : "stderr")) continue;
    auto pipe = make_pipe();
    set_nonblocking(pipe.write.get());
    container.sinks[i].push_back({std::move(pipe.write), ""});
    fds.push_back(std::move(pipe.read));
  }
  return json::Value(json::Object{{"tty", tty}, {"stdinOnce", container.config.stdin_once}});
}

/// The socket is made here, in the pod's network, and used by the agent.
Result<json::Value> Supervisor::connect_port(int port, std::vector<Fd>& fds) {
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

/// Relays what the container wrote; at end of stream the descriptor is closed.
void Supervisor::serve_output(Container& container, const std::map<int, short>& ready) {
  for (int i = 0; i < 2; ++i) {
    if (container.output[i] && ready.contains(container.output[i].get())) read_output(container, i);
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

void Supervisor::read_output(Container& container, int stream) {
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

}  // namespace muster::agent::process
