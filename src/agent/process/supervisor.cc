#include "agent/process/supervisor.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "agent/process/capabilities.h"
#include "agent/process/monotonic.h"
#include "agent/process/own_folder.h"
#include "agent/process/supervisor_pod.h"

namespace muster::agent::process {

Supervisor::End Supervisor::run(Fd control) {
  const auto ready = prepare();
  connections_.push_back(std::move(control));
  if (!ready) {
    reply(connections_.front().get(),
          json::Object{{"ev", "failed"}, {"message", ready.error().message}});
    return {1, Fd(), {}};
  }
  reply(connections_.front().get(), json::Object{{"ev", "ready"}, {"pid", getpid()}});
  while (!done_) step();
  return std::move(end_);
}

Result<void> Supervisor::prepare() {
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

  if (config_.sandbox.own_users && (!config_.maps_users || config_.sandbox.host_network))
    return fail(Code::kInvalid, "hostUsers: false, but pods cannot have users of their own here");
  const auto entered = namespaces_.enter(config_);
  if (!entered) return entered;
  const auto mounted = namespaces_.mounts().enter(config_, pod_owner());
  if (!mounted) return mounted;
  const auto prepared = prepare_pod(config_);
  if (!prepared) return prepared;
  return config_.sandbox.share_process_namespace ? start_shared_init() : Result<void>();
}

Owner Supervisor::pod_owner() const {
  return config_.sandbox.host_users ? Owner() : namespaces_.owner();
}

Owner Supervisor::owner_of(const ContainerConfig& container) const {
  const bool of_machine = container.privileged || needs_machine(container.add_capabilities);
  return of_machine && !config_.sandbox.own_users ? Owner() : pod_owner();
}

void Supervisor::step() {
  std::vector<pollfd> polls;
  polls.push_back({signals_.get(), POLLIN, 0});
  polls.push_back({listener_.get(), POLLIN, 0});
  for (const auto& connection : connections_) polls.push_back({connection.get(), POLLIN, 0});
  for (auto& [id, container] : containers_) {
    for (int i = 0; i < 2; ++i) {
      if (container.output[i]) polls.push_back({container.output[i].get(), POLLIN, 0});
      for (const auto& sink : container.sinks[i])
        polls.push_back({sink.fd.get(), static_cast<short>(sink.pending.empty() ? 0 : POLLOUT), 0});
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
      strangers_.erase(connections_[i].get());
      connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

int Supervisor::timeout_ms() const {
  std::int64_t next = -1;
  for (const auto& [id, container] : containers_) {
    if (container.kill_at_ms == 0) continue;
    const auto left = std::max<std::int64_t>(0, container.kill_at_ms - monotonic_ms());
    if (next < 0 || left < next) next = left;
  }
  return static_cast<int>(next);
}

void Supervisor::accept_connection() {
  Fd connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return;
  if (config_.key.empty()) {
    reply(connection.get(), snapshot());
  } else {
    strangers_.insert(connection.get());
  }
  connections_.push_back(std::move(connection));
}

void Supervisor::reply(int connection, const json::Value& body, const std::vector<int>& fds) {
  (void)send_message(connection, body, fds, config_.sandbox.run_directory);
}
void Supervisor::broadcast(const json::Value& body) {
  for (const auto& connection : connections_) {
    if (!strangers_.contains(connection.get())) reply(connection.get(), body);
  }
}

bool Supervisor::serve_connection(int connection) {
  Message message;
  switch (receive_message(connection, message)) {
    case Received::kNothingYet:
      return true;
    case Received::kClosed:
      return false;
    case Received::kMessage:
      break;
  }
  if (strangers_.contains(connection)) {
    if (json::text_at(message.body, "key") != config_.key) return false;
    strangers_.erase(connection);
    reply(connection, snapshot());
    return true;
  }
  const auto op = json::text_at(message.body, "op");
  const auto request = json::int_at(message.body, "request");
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
  // What nobody waits for.
  move_folder_in();
  if (std::exchange(unsaved_, false)) save_state();
  spent_.reset();
  return true;
}

Result<json::Value> Supervisor::perform(const std::string& op,
                                        const json::Value& body,
                                        int connection,
                                        std::vector<Fd>& fds) {
  if (op == "start") return start(container_config_from_json(json::at(body, "config")));
  if (op == "shutdown") return shutdown(body, connection);
  if (op == "connect") return connect_port(static_cast<int>(json::int_at(body, "port")), fds);
  const auto found = containers_.find(json::text_at(body, "container"));
  if (found == containers_.end())
    return fail(Code::kNotFound,
                fmt::format("container \"{}\" not found", json::text_at(body, "container")));
  auto& container = found->second;
  if (op == "stop") return stop(container, json::int_at(body, "graceMs"));
  if (op == "close-stdin") {
    container.input.reset();
    return json::Value(json::Object{});
  }
  if (op == "limits") return change_limits(container, limits_from_json(json::at(body, "limits")));
  if (op == "exec") return exec(container, body, connection, fds);
  if (op == "attach") return attach(container, body, fds);
  return fail(Code::kBadRequest, fmt::format("unknown operation \"{}\"", op));
}

/// Ends everything. With an address the agent asks whether another pod may follow at it.
Result<json::Value> Supervisor::shutdown(const json::Value& body, int connection) {
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
  end_.next.address = static_cast<std::uint32_t>(json::int_at(body, "address"));
  end_.next.new_users = unfiltered_;
  const bool rests = end_.next.address != 0 && leave(connection);
  return json::Value(json::Object{{"rests", rests}});
}

Result<json::Value> Supervisor::change_limits(Container& container, Limits limits) {
  container.config.limits = limits;
  const auto applied =
      cgroup::change_limits(config_.cgroups, group_of(container.config.name), limits);
  if (!applied) return fail(applied.error());
  return json::Value(json::Object{});
}

/// Lets go of the pod, if this process can serve another one.
bool Supervisor::leave(int connection) {
  const auto own = std::find_if(connections_.begin(), connections_.end(), [&](const Fd& one) {
    return one.get() == connection;
  });
  const bool plain = config_.isolate && !config_.sandbox.host_pid && !config_.sandbox.host_ipc &&
                     !config_.sandbox.host_network && !config_.sandbox.share_process_namespace &&
                     !powerful_ && !owns_outside_;
  if (!plain || !execs_.empty() || own == connections_.end() ||
      !namespaces_.mounts().leave(!config_.sandbox.memory_volumes.empty()))
    return false;
  keep_folder();
  end_.control = std::move(*own);
  connections_.clear();
  listener_.reset();
  return true;
}

/// For the next pod, before the agent removes all that this one had.
void Supervisor::keep_folder() {
  if (shares_files_ || !pod_owner().mapped()) return;
  const auto found = std::find_if(containers_.begin(), containers_.end(), [](const auto& item) {
    return item.second.config.layers.empty();
  });
  if (found != containers_.end()) namespaces_.keep_folder(take_back(config_, found->second.config));
}

namespace {

/// The configuration of the pod to come; nothing if there will be none.
std::optional<ShimConfig> wait_for_pod(int control, PodMounts& mounts) {
  prctl(PR_SET_NAME, "muster-warm");
  for (;;) {
    pollfd items[] = {{control, POLLIN, 0}, {mounts.changes(), POLLPRI, 0}};
    poll(items, std::size(items), -1);
    if (items[1].revents != 0) mounts.forget();
    if (items[0].revents == 0) continue;
    Message message;
    const auto received = receive_message(control, message);
    if (received == Received::kClosed) return std::nullopt;
    // A request that was on its way to the pod before is nothing to us.
    if (received == Received::kMessage && json::string_at(message.body, "op") == "sandbox")
      return shim_config_from_json(json::at(message.body, "config"));
  }
}

/// One pod after another.
int serve(Namespaces& namespaces, std::optional<ShimConfig> config, Fd control) {
  while (config) {
    Supervisor::End end;
    {
      Supervisor pod(std::move(*config), namespaces);
      end = pod.run(std::move(control));
      config = pod.config();
    }
    if (!end.control || !namespaces.renew(*config, end.next)) return end.exit_code;
    control = std::move(end.control);
    namespaces.make_ahead(*config);
    (void)send_message(control.get(), json::Object{{"ev", "warm"}}, {}, "");
    config = wait_for_pod(control.get(), namespaces.mounts());
  }
  return 0;
}

}  // namespace

int supervise(ShimConfig config, Fd control) {
  Namespaces namespaces;
  return serve(namespaces, std::move(config), std::move(control));
}

int supervise_later(const ShimConfig& config, Fd control) {
  Namespaces namespaces;
  const auto entered = namespaces.enter(config);
  if (entered) namespaces.make_ahead(config);
  json::Object answer{{"ev", entered ? "warm" : "failed"}};
  if (!entered) answer["message"] = entered.error().message;
  (void)send_message(control.get(), answer, {}, "");
  if (!entered) return 1;
  auto first = wait_for_pod(control.get(), namespaces.mounts());
  return serve(namespaces, std::move(first), std::move(control));
}

}  // namespace muster::agent::process
