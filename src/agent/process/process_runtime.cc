#include "agent/process/process_runtime.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>

#include "agent/process/address_pool.h"
#include "agent/process/messages.h"
#include "agent/process/nat.h"
#include "agent/process/netlink.h"
#include "agent/process/warm_pool.h"
#include "agent/process/wire.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/descriptor.h"

extern char** environ;

namespace muster::agent::process {
namespace {

namespace fs = std::filesystem;
constexpr Duration kShutdownPatience = std::chrono::seconds(10);

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// A command that an exec started.
struct ExecState {
  std::unique_ptr<Signal> changed;
  std::optional<int> code;
  bool lost = false;
  int pid = 0;
};

struct Reply {
  json::Value value;
  std::vector<Fd> fds;
};

/// What the agent holds of one pod's supervisor.
struct Shim {
  ShimConfig config;
  int pid = 0;
  std::unique_ptr<net::Descriptor> socket;
  std::unique_ptr<net::Descriptor> kept;  // the same once it is done with the pod
  bool alive = true;
  bool ready = false;
  std::string failure;              // why it could not start
  std::unique_ptr<Signal> changed;  // ready, failed or gone
  std::map<std::string, ContainerStatus> containers;
  struct Pending {
    std::unique_ptr<Signal> answered;
    std::optional<Result<Reply>> result;
  };
  std::int64_t next_request = 0;
  std::map<std::int64_t, std::shared_ptr<Pending>> pending;
  std::map<std::int64_t, std::shared_ptr<ExecState>> execs;
  std::map<std::string, std::vector<std::shared_ptr<ExecState>>> attached;  // by container id
};
using ShimPtr = std::shared_ptr<Shim>;

class ProcessSession final : public Session {
 public:
  std::unique_ptr<net::ByteStream> in, out, err;
  int terminal = -1;  // a duplicate of the master, for resize
  std::function<void()> on_close_stdin;
  std::shared_ptr<ExecState> state;

  ~ProcessSession() override {
    if (terminal >= 0) ::close(terminal);
  }
  net::ByteStream* stdin_stream() override { return in.get(); }
  net::ByteStream* stdout_stream() override { return out.get(); }
  net::ByteStream* stderr_stream() override { return err.get(); }
  void close_stdin() override {
    if (in && terminal < 0) in->close();
    if (terminal >= 0 && ::write(terminal, "\x04", 1) < 0) return;  // a terminal's end of input
    if (on_close_stdin) on_close_stdin();
  }
  void resize(int columns, int rows) override {
    winsize size{};
    size.ws_col = static_cast<unsigned short>(columns);
    size.ws_row = static_cast<unsigned short>(rows);
    if (terminal >= 0) ioctl(terminal, TIOCSWINSZ, &size);
  }
  Task<Result<int>> wait() override {
    const auto held = state;
    while (!held->code && !held->lost) co_await held->changed->wait(Duration::zero());
    if (!held->code) co_return fail(Code::kUnavailable, "the pod's supervisor is gone");
    co_return *held->code;
  }
  void abandon() override {
    if (state->pid > 0 && !state->code) ::kill(state->pid, SIGKILL);
  }
};

class ProcessRuntime final : public Runtime {
 public:
  ProcessRuntime(net::Loop& loop, ProcessRuntimeOptions options)
      : loop_(loop),
        options_(std::move(options)),
        warm_(loop, [this] { return begin_warm(); }, [this](std::uint32_t address) {
          pool_.give_back(address);
        }) {}

  std::string version() const override { return "process://0.1.0"; }
  std::vector<std::string> shortcomings() const override { return shortcomings_; }
  std::string gateway() const override { return bridge_.empty() ? "" : ipv4_text(gateway_); }
  bool hides_devices() const override { return isolate_; }
  bool translates_addresses() const override { return translates_; }

  Task<Result<void>> set_virtual_ports(std::vector<VirtualPort> ports) override {
    if (!translates_) co_return Result<void>();
    const NatConfig config{bridge_, fmt::format("{}/{}", ipv4_text(subnet_.base), subnet_.prefix)};
    Result<void> applied;
    const auto work = [this, &applied, &config, &ports] {
      const std::lock_guard lock(nat_mutex_);
      if (!nat_removed_) applied = apply_nat(config, ports);
    };
    co_await loop_.run_on_worker(work);
    co_return applied;
  }

  Task<Result<std::vector<SandboxStatus>>> start(
      std::function<void(RuntimeEvent)> on_event) override {
    on_event_ = std::move(on_event);
    signal(SIGPIPE, SIG_IGN);
    std::error_code error;
    fs::create_directories(options_.directory + "/run", error);
    if (error)
      co_return fail(Code::kInternal,
                     fmt::format("make \"{}/run\": {}", options_.directory, error.message()));
    const auto prepared = prepare_machine();
    if (!prepared) co_return fail(prepared.error());
    std::vector<SandboxStatus> found;
    for (fs::directory_iterator item(options_.directory + "/run", error), end;
         !error && item != end;
         item.increment(error)) {
      const auto adopted = adopt(item->path().string());
      if (adopted) found.push_back(*adopted);
    }
    const auto kept = connect_keeper();
    if (!kept) co_return fail(kept.error());
    if (found.empty()) remove_mountpoints();
    if (isolate_ && !bridge_.empty()) warm_.start(options_.warm_sandboxes, options_.warm_sandboxes_max);
    co_return found;
  }

  Task<void> stop(bool clean) override {
    stopping_ = true;
    for (const auto address : warm_.stop()) pool_.give_back(address);
    for (auto& [id, shim] : shims_) {
      if (shim->socket) shim->socket->close();
    }
    shims_.clear();
    if (clean) {
      (void)send_message(keeper_.get(), json::Object{{"op", "exit"}}, {}, options_.directory);
      if (translates_) {
        const auto bridge = bridge_;
        const auto forget = [this, bridge] {
          const std::lock_guard lock(nat_mutex_);
          nat_removed_ = true;
          remove_nat(bridge);
        };
        co_await loop_.run_on_worker(forget);
      }
      if (!bridge_.empty()) remove_link(bridge_);
      cgroup::remove_tree(cgroups_);
      remove_mountpoints();
      std::error_code ignored;
      fs::remove(options_.directory + "/network.json", ignored);
    }
    keeper_.reset();
    co_return;
  }

  Task<Result<SandboxStatus>> run_sandbox(SandboxConfig config) override {
    const WarmPool::Busy busy(warm_);
    auto shim = std::make_shared<Shim>();
    shim->changed = loop_.make_signal();
    shim->config.sandbox = std::move(config);
    auto& wanted = shim->config;
    const auto id = wanted.sandbox.id;
    wanted.isolate = isolate_;
    wanted.cgroups = cgroups_;
    wanted.mountpoints_file = options_.directory + "/mountpoints";
    if (!isolate_ || bridge_.empty()) wanted.sandbox.host_network = true;
    const bool warm = hand_to_warm(*shim);
    if (!warm) {
      const auto handed = hand_to_keeper(*shim);
      if (!handed) co_return fail(handed.error());
    }
    shims_[id] = shim;
    loop_.spawn(read_loop(shim));
    while (!shim->ready && shim->alive && shim->failure.empty())
      co_await shim->changed->wait(Duration::zero());
    if (!shim->ready) {
      shims_.erase(id);
      pool_.give_back(wanted.address);
      co_return fail(Code::kInternal,
                     shim->failure.empty() ? "the pod's supervisor ended at once" : shim->failure);
    }
    co_return status_of(*shim);
  }

  Task<Result<void>> remove_sandbox(std::string sandbox_id) override {
    const auto found = shims_.find(sandbox_id);
    if (found == shims_.end()) co_return Result<void>();
    const auto shim = found->second;
    const bool in_order = co_await end_supervisor(shim);
    if (shims_.erase(sandbox_id) > 0) pool_.give_back(shim->config.address);
    const auto tree = cgroups_;
    const auto kill_left_overs = [tree, sandbox_id] {
      for (const auto& group : cgroup::groups_of(tree, sandbox_id)) {
        for (const auto pid : cgroup::members(tree, group)) ::kill(pid, SIGKILL);
        cgroup::remove(tree, group);
      }
    };
    if (!in_order) co_await loop_.run_on_worker(kill_left_overs);
    if (shims_.empty()) remove_mountpoints();
    co_return Result<void>();
  }

  Task<Result<ContainerStatus>> start_container(std::string sandbox_id,
                                                ContainerConfig config) override {
    const WarmPool::Busy busy(warm_);
    const auto shim = find(sandbox_id);
    if (!shim)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    json::Object body{{"config", to_json(config)}};
    auto answer = co_await call(shim, "start", std::move(body));
    if (!answer) co_return fail(answer.error());
    auto status = container_status_from_json(answer->value);
    // The exit of a quick command may have been read together with this answer.
    auto& known = shim->containers[status.id];
    if (known.state != ContainerState::kExited) known = status;
    co_return known;
  }

  Task<Result<void>> stop_container(std::string sandbox_id,
                                    std::string container_id,
                                    Duration grace) override {
    const auto shim = find(sandbox_id);
    if (!shim) co_return Result<void>();
    json::Object body{{"container", container_id}, {"graceMs", grace.count() / 1000}};
    const auto answer = co_await call(shim, "stop", std::move(body));
    if (!answer && answer.error().code != Code::kNotFound) co_return fail(answer.error());
    co_return Result<void>();
  }

  Task<Result<void>> update_limits(std::string sandbox_id,
                                   std::string container_id,
                                   Limits limits) override {
    const auto shim = find(sandbox_id);
    if (!shim) co_return fail(Code::kNotFound, "sandbox is not running");
    json::Object body{{"container", container_id}, {"limits", to_json(limits)}};
    const auto answer = co_await call(shim, "limits", std::move(body));
    if (!answer) co_return fail(answer.error());
    co_return Result<void>();
  }

  Task<Result<std::unique_ptr<Session>>> exec(std::string sandbox_id,
                                              std::string container_id,
                                              ExecConfig config) override {
    const auto shim = find(sandbox_id);
    if (!shim)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    const auto number = ++shim->next_request;
    auto state = std::make_shared<ExecState>();
    state->changed = loop_.make_signal();
    shim->execs[number] = state;
    json::Array command;
    for (const auto& word : config.command) command.emplace_back(word);
    json::Object body{{"container", container_id},
                      {"exec", number},
                      {"command", std::move(command)},
                      {"tty", config.tty},
                      {"stdin", config.stdin_open},
                      {"stdout", config.stdout_open},
                      {"stderr", config.stderr_open}};
    auto answer = co_await call(shim, "exec", std::move(body));
    if (!answer) {
      shim->execs.erase(number);
      co_return fail(answer.error());
    }
    state->pid = static_cast<int>(json::as_int(json::at(answer->value, "pid")));
    auto session = std::make_unique<ProcessSession>();
    session->state = state;
    take_streams(*session, answer->fds, config, config.tty);
    std::unique_ptr<Session> out = std::move(session);
    co_return out;
  }

  Task<Result<std::unique_ptr<Session>>> attach(std::string sandbox_id,
                                                std::string container_id,
                                                ExecConfig config) override {
    const auto shim = find(sandbox_id);
    if (!shim)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    json::Object body{{"container", container_id},
                      {"stdin", config.stdin_open},
                      {"stdout", config.stdout_open},
                      {"stderr", config.stderr_open}};
    auto answer = co_await call(shim, "attach", std::move(body));
    if (!answer) co_return fail(answer.error());
    const bool tty = json::as_bool(json::at(answer->value, "tty"));
    auto session = std::make_unique<ProcessSession>();
    session->state = std::make_shared<ExecState>();
    session->state->changed = loop_.make_signal();
    shim->attached[container_id].push_back(session->state);
    if (config.stdin_open && !answer->fds.empty()) {
      if (tty) session->terminal = fcntl(answer->fds.front().get(), F_DUPFD_CLOEXEC, 3);
      session->in = net::make_fd_stream(loop_, answer->fds.front().release());
      answer->fds.erase(answer->fds.begin());
      if (json::as_bool(json::at(answer->value, "stdinOnce")))
        session->on_close_stdin = [this, shim, container_id] { close_stdin(shim, container_id); };
    }
    if (config.stdout_open && !answer->fds.empty()) {
      session->out = net::make_fd_stream(loop_, answer->fds.front().release());
      answer->fds.erase(answer->fds.begin());
    }
    if (config.stderr_open && !tty && !answer->fds.empty())
      session->err = net::make_fd_stream(loop_, answer->fds.front().release());
    std::unique_ptr<Session> out = std::move(session);
    co_return out;
  }

  Task<Result<std::unique_ptr<net::ByteStream>>> connect(std::string sandbox_id,
                                                         int port) override {
    const auto shim = find(sandbox_id);
    if (!shim)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    json::Object body{{"port", port}};
    auto answer = co_await call(shim, "connect", std::move(body));
    if (!answer) co_return fail(answer.error());
    if (answer->fds.empty())
      co_return fail(Code::kInternal, "the pod's supervisor sent no connection");
    co_return net::make_fd_stream(loop_, answer->fds.front().release());
  }

  Task<Result<std::map<std::string, Usage>>> usage(std::string sandbox_id) override {
    const auto shim = find(sandbox_id);
    std::map<std::string, Usage> out;
    if (!shim) co_return out;
    std::vector<std::pair<std::string, std::string>> running;
    for (const auto& [id, status] : shim->containers) {
      if (status.state == ContainerState::kRunning) running.emplace_back(id, status.name);
    }
    const auto tree = cgroups_;
    const auto read = [&out, running, tree, sandbox_id] {
      for (const auto& [id, name] : running) out[id] = cgroup::usage(tree, cgroup::group_name(sandbox_id, name));
    };
    co_await loop_.run_on_worker(read);
    co_return out;
  }

 private:
  ShimPtr find(const std::string& id) const {
    const auto found = shims_.find(id);
    return found == shims_.end() || !found->second->alive ? nullptr : found->second;
  }

  SandboxStatus status_of(const Shim& shim) const {
    SandboxStatus status;
    status.id = shim.config.sandbox.id;
    status.address = shim.config.address != 0 ? ipv4_text(shim.config.address) : "";
    status.alive = shim.alive;
    for (const auto& [id, container] : shim.containers) status.containers.push_back(container);
    return status;
  }

  // ---- this machine
  // -------------------------------------------------------------------------------------

  static bool can_make_namespaces() {
    const auto pid = fork();
    if (pid == 0)
      _exit(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) == 0
                ? 0
                : 1);
    int status = 1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  Result<void> prepare_machine() {
    std::uint32_t hash = 2166136261U;
    for (const char c : options_.directory)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    isolate_ = options_.isolate && geteuid() == 0 && can_make_namespaces();
    if (!isolate_) {
      shortcomings_.push_back(
          fmt::format("pods share this machine's network, processes and files: no namespaces, "
                      "volumes mounted at paths, or limits ({})",
                      geteuid() == 0 ? "namespaces are not allowed here" : "not root"));
      return {};
    }
    remove_orphans();
    cgroups_ = cgroup::prepare(fmt::format("muster-{:08x}", hash));
    if (!cgroups_.missing.empty()) shortcomings_.push_back("missing: " + cgroups_.missing);
    return prepare_network(hash);
  }

  /// What agents left behind that crashed and whose data folder was deleted since: there are only so
  /// many subnets. A bridge and the control groups of one agent have the same number.
  static void remove_orphans() {
    for (const auto& bridge : orphaned_bridges()) {
      log::info("agent", "removing bridge {}: its owner is gone", bridge);
      remove_link(bridge);
      remove_nat(bridge);
      cgroup::remove_tree(cgroup::prepare("muster-" + bridge.substr(4)));
    }
    for (const auto& bridge : bridges_gone_with_rules_left()) {
      log::info("agent", "removing rules of bridge {}, which is gone", bridge);
      remove_nat(bridge);
    }
  }

  /// The subnet is remembered, so that pods of an earlier run keep their addresses.
  Result<void> prepare_network(std::uint32_t hash) {
    const auto path = options_.directory + "/network.json";
    const auto saved = json::parse(read_file(path));
    if (saved) {
      subnet_.base = static_cast<std::uint32_t>(json::as_int(json::at(*saved, "base")));
      bridge_ = json::text(json::at(*saved, "bridge"));
    } else {
      const auto free = free_subnet();
      if (!free) return fail(free.error());
      subnet_ = *free;
      bridge_ = fmt::format("mstr{:08x}", hash);
      std::ofstream(path) << json::dump(json::Object{{"base", subnet_.base}, {"bridge", bridge_}});
    }
    gateway_ = subnet_.base + 1;
    pool_ = AddressPool(subnet_.base + 2, subnet_.base + 65534);
    const auto made = ensure_bridge(bridge_, gateway_, subnet_.prefix, options_.directory);
    if (!made) {
      shortcomings_.push_back("pods share this machine's network: " + made.error().message);
      bridge_.clear();
      return {};
    }
    translates_ = nat_works();
    if (!translates_)
      shortcomings_.push_back("pods do not reach beyond this machine and services have no addresses "
                              "of their own, only names: iptables does not work here");
    return {};
  }

  /// Directories and files that were made on this machine as places for mounts. Only when no pod is
  /// left: a directory that is removed takes the mounts of other namespaces with it.
  void remove_mountpoints() {
    const auto path = options_.directory + "/mountpoints";
    auto lines = split_nonempty(read_file(path), '\n');
    std::reverse(lines.begin(), lines.end());
    for (const auto& line : lines) {
      std::error_code ignored;
      if (fs::is_directory(line, ignored) ||
          (fs::is_regular_file(line, ignored) && fs::file_size(line, ignored) == 0))
        fs::remove(line, ignored);
    }
    unlink(path.c_str());
  }

  // ---- the keeper
  // ---------------------------------------------------------------------------------------

  Result<void> connect_keeper() {
    auto connected = connect_at(options_.directory, "keeper.sock");
    if (!connected) {
      std::vector<std::string> words{options_.shim_binary, "agent-shim", options_.directory};
      std::vector<char*> argv;
      for (auto& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      // Symbols resolved once in the keeper are not resolved again in each supervisor forked from it.
      std::string bind_now = "LD_BIND_NOW=1";
      std::vector<char*> env{bind_now.data()};
      for (auto** item = environ; *item != nullptr; ++item) env.push_back(*item);
      env.push_back(nullptr);
      pid_t pid = -1;
      const int problem =
          posix_spawn(&pid, options_.shim_binary.c_str(), nullptr, nullptr, argv.data(), env.data());
      if (problem != 0)
        return fail(
            system_error(fmt::format("start \"{} agent-shim\"", options_.shim_binary), problem));
      int status = 0;
      while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      if (status != 0)
        return fail(Code::kInternal,
                    fmt::format("\"{} agent-shim {}\" failed with status {}",
                                options_.shim_binary,
                                options_.directory,
                                status));
      connected = connect_at(options_.directory, "keeper.sock");
      if (!connected) return fail(connected.error());
    }
    keeper_ = std::move(*connected);
    return {};
  }

  /// One that the keeper forks speaks on the socket returned.
  Result<Fd> tell_keeper(const char* op, const json::Value& config) {
    auto pair = socket_pair();
    if (!pair) return fail(pair.error());
    const json::Value message = json::Object{{"op", op}, {"config", config}};
    auto sent = send_message(keeper_.get(), message, {pair->second.get()}, options_.directory);
    if (!sent) {
      const auto again = connect_keeper();
      if (!again) return fail(again.error());
      sent = send_message(keeper_.get(), message, {pair->second.get()}, options_.directory);
      if (!sent) return fail(sent.error());
    }
    return std::move(pair->first);
  }

  Result<void> give_network(ShimConfig& config) {
    const auto address = pool_.take();
    if (!address) return fail(Code::kUnavailable, "no free pod address is left in the subnet");
    config.bridge = bridge_;
    config.address = *address;
    config.gateway = gateway_;
    config.prefix = subnet_.prefix;
    return {};
  }

  /// What an agent that is started later has to know to go on with this pod.
  static json::Value save_config(const ShimConfig& config) {
    auto value = to_json(config);
    std::ofstream(config.sandbox.run_directory + "/shim.json") << json::dump(value);
    return value;
  }

  Result<void> hand_to_keeper(Shim& shim) {
    if (!shim.config.sandbox.host_network) {
      const auto given = give_network(shim.config);
      if (!given) return given;
    }
    auto socket = tell_keeper("sandbox", save_config(shim.config));
    if (!socket) {
      pool_.give_back(shim.config.address);
      return fail(socket.error());
    }
    shim.socket = net::make_descriptor(loop_, socket->release());
    return {};
  }

  /// False: none waits, or this pod needs another kind.
  bool hand_to_warm(Shim& shim) {
    auto& wanted = shim.config;
    if (wanted.sandbox.host_network || wanted.sandbox.host_ipc) return false;
    auto one = warm_.take();
    if (!one) return false;
    wanted.bridge = bridge_;
    wanted.address = one->address;
    wanted.gateway = gateway_;
    wanted.prefix = subnet_.prefix;
    const json::Value message = json::Object{{"op", "sandbox"}, {"config", save_config(wanted)}};
    const auto sent =
        send_message(one->socket->fd(), message, {}, wanted.sandbox.run_directory);
    if (!sent) {  // somebody killed it
      pool_.give_back(one->address);
      return false;
    }
    shim.socket = std::move(one->socket);
    return true;
  }

  Result<WarmSandbox> begin_warm() {
    ShimConfig config;
    const auto given = give_network(config);
    if (!given) return fail(given.error());
    auto socket = tell_keeper("warm", to_json(config));
    if (!socket) {
      pool_.give_back(config.address);
      return fail(socket.error());
    }
    WarmSandbox one;
    one.socket = net::make_descriptor(loop_, socket->release());
    one.address = config.address;
    return one;
  }

  // ---- supervisors
  // --------------------------------------------------------------------------------------

  /// A pod directory of an earlier run: its supervisor if it lives, else what it last wrote.
  std::optional<SandboxStatus> adopt(const std::string& directory) {
    const auto saved = json::parse(read_file(directory + "/shim.json"));
    if (!saved) return std::nullopt;
    auto shim = std::make_shared<Shim>();
    shim->changed = loop_.make_signal();
    shim->config = shim_config_from_json(*saved);
    const auto id = shim->config.sandbox.id;
    if (shim->config.address != 0) pool_.reserve(shim->config.address);
    auto connected = connect_at(directory, "shim.sock");
    Message hello;
    if (connected && receive_message(connected->get(), hello) == Received::kMessage) {
      shim->ready = true;
      take_snapshot(*shim, hello.body);
      shim->socket = net::make_descriptor(loop_, connected->release());
      loop_.spawn(read_loop(shim));
    } else {
      const auto state = json::parse(read_file(directory + "/state"));
      if (state) take_snapshot(*shim, *state);
      shim->alive = false;
      for (auto& [container_id, container] : shim->containers) {
        if (container.state == ContainerState::kExited) continue;
        container.state = ContainerState::kExited;
        container.exit_code = 137;
        container.reason = "Error";
        container.finished = loop_.now();
      }
    }
    shims_[id] = shim;
    return status_of(*shim);
  }

  /// Ends the pod's processes; the supervisor ends, too, or waits for another pod. False: it was not
  /// there or had to be killed, and may have left something.
  Task<bool> end_supervisor(ShimPtr shim) {
    if (!shim->alive) co_return false;
    bool killed = false;
    const auto timer = loop_.after(kShutdownPatience, [shim, &killed] {
      log::warn("agent", "supervisor of pod {} does not end; killed", shim->config.sandbox.id);
      if (shim->pid > 0) ::kill(shim->pid, SIGKILL);
      killed = true;
    });
    json::Object body;
    std::uint32_t next = 0;  // an address for the pod that may follow
    if (!shim->config.sandbox.host_network && warm_.has_room()) next = pool_.take().value_or(0);
    if (next != 0) body["address"] = next;
    const auto told = co_await call(shim, "shutdown", std::move(body));
    if (shim->kept && !stopping_) {
      warm_.rest({std::move(shim->kept), next});
      co_return true;
    }
    if (next != 0) pool_.give_back(next);
    while (told && shim->alive) co_await shim->changed->wait(Duration::zero());
    co_return told && !killed;
  }

  static void take_snapshot(Shim& shim, const json::Value& body) {
    shim.pid = static_cast<int>(json::as_int(json::at(body, "pid")));
    for (const auto& item : json::as_array(json::at(body, "containers"))) {
      auto status = container_status_from_json(item);
      shim.containers[status.id] = status;
    }
  }

  Task<Result<Reply>> call(ShimPtr shim, std::string op, json::Object body) {
    if (!shim->alive) co_return fail(Code::kUnavailable, "the pod's supervisor is gone");
    const auto number = ++shim->next_request;
    body["op"] = op;
    body["request"] = number;
    auto pending = std::make_shared<Shim::Pending>();
    pending->answered = loop_.make_signal();
    shim->pending[number] = pending;
    const json::Value message = std::move(body);
    const auto sent = send_message(shim->socket->fd(), message, {}, shim->config.sandbox.run_directory);
    if (!sent) {
      shim->pending.erase(number);
      co_return fail(sent.error());
    }
    while (!pending->result) co_await pending->answered->wait(Duration::zero());
    co_return std::move(*pending->result);
  }

  Task<void> read_loop(ShimPtr shim) {
    for (;;) {
      Message message;
      const auto received = receive_message(shim->socket->fd(), message);
      if (received == Received::kClosed) break;
      if (received == Received::kMessage) {
        handle(shim, message);
        if (!shim->socket) co_return;  // another pod's from now on
        continue;
      }
      const bool open = co_await shim->socket->readable();
      if (!open) break;
    }
    gone(shim);
  }

  void handle(const ShimPtr& shim, Message& message) {
    const auto event = json::as_string(json::at(message.body, "ev"));
    if (event == "reply") {
      const auto found = shim->pending.find(json::as_int(json::at(message.body, "request")));
      if (found == shim->pending.end()) return;
      const auto pending = found->second;
      shim->pending.erase(found);
      if (const auto& problem = json::at(message.body, "error"); !problem.is_null()) {
        Error error;
        error.code =
            json::as_bool(json::at(message.body, "notFound")) ? Code::kNotFound : Code::kInternal;
        error.message = json::text(problem);
        pending->result = Result<Reply>(tl::unexpected<Error>(std::move(error)));
      } else {
        const auto& value = json::at(message.body, "value");
        if (json::as_bool(json::at(value, "rests"))) {
          shim->kept = std::move(shim->socket);
          shim->alive = false;
        }
        pending->result = Result<Reply>(Reply{value, std::move(message.fds)});
      }
      pending->answered->notify();
    } else if (event == "ready") {
      shim->ready = true;
      shim->pid = static_cast<int>(json::as_int(json::at(message.body, "pid")));
      shim->changed->notify();
    } else if (event == "failed") {
      shim->failure = json::text(json::at(message.body, "message"));
      shim->changed->notify();
    } else if (event == "exited") {
      container_exited(shim, container_status_from_json(json::at(message.body, "container")));
    } else if (event == "exec-exit") {
      const auto found = shim->execs.find(json::as_int(json::at(message.body, "exec")));
      if (found == shim->execs.end()) return;
      found->second->code = static_cast<int>(json::as_int(json::at(message.body, "code")));
      found->second->changed->notify();
      shim->execs.erase(found);
    }
  }

  void container_exited(const ShimPtr& shim, const ContainerStatus& status) {
    shim->containers[status.id] = status;
    for (const auto& waiting : shim->attached[status.id]) {
      waiting->code = status.exit_code;
      waiting->changed->notify();
    }
    shim->attached.erase(status.id);
    if (!stopping_) on_event_(RuntimeEvent{shim->config.sandbox.id, status.id, status});
  }

  void gone(const ShimPtr& shim) {
    shim->alive = false;
    for (auto& [number, pending] : shim->pending) {
      Error error;
      error.code = Code::kUnavailable;
      error.message = "the pod's supervisor is gone";
      pending->result = Result<Reply>(tl::unexpected<Error>(std::move(error)));
      pending->answered->notify();
    }
    shim->pending.clear();
    for (auto& [number, exec] : shim->execs) {
      exec->lost = true;
      exec->changed->notify();
    }
    for (auto& [id, waiting] : shim->attached) {
      for (const auto& one : waiting) {
        one->lost = true;
        one->changed->notify();
      }
    }
    shim->changed->notify();
    if (!stopping_ && shims_.contains(shim->config.sandbox.id))
      on_event_(RuntimeEvent{shim->config.sandbox.id, "", {}});
  }

  void close_stdin(const ShimPtr& shim, const std::string& container_id) {
    json::Object body{{"op", "close-stdin"}, {"request", 0}, {"container", container_id}};
    if (shim->alive)
      (void)send_message(
          shim->socket->fd(), json::Value(std::move(body)), {}, shim->config.sandbox.run_directory);
  }

  void take_streams(ProcessSession& session,
                    std::vector<Fd>& fds,
                    const ExecConfig& config,
                    bool tty) {
    std::size_t next = 0;
    const auto take = [&]() -> std::unique_ptr<net::ByteStream> {
      return next < fds.size() ? net::make_fd_stream(loop_, fds[next++].release()) : nullptr;
    };
    if (tty) {
      if (fds.empty()) return;
      session.terminal = fcntl(fds.front().get(), F_DUPFD_CLOEXEC, 3);
      const int writer = fcntl(fds.front().get(), F_DUPFD_CLOEXEC, 3);
      session.out = take();
      session.in = net::make_fd_stream(loop_, writer);
      return;
    }
    if (config.stdin_open) session.in = take();
    if (config.stdout_open) session.out = take();
    if (config.stderr_open) session.err = take();
  }

  net::Loop& loop_;
  ProcessRuntimeOptions options_;
  std::function<void(RuntimeEvent)> on_event_;
  bool isolate_ = false;
  bool stopping_ = false;
  std::vector<std::string> shortcomings_;
  cgroup::Tree cgroups_;
  Subnet subnet_;
  std::string bridge_;  // empty: pods share the machine's network
  std::uint32_t gateway_ = 0;
  bool translates_ = false;
  std::mutex nat_mutex_;      // rules are written and removed on workers, one at a time
  bool nat_removed_ = false;  // for good: a change that comes late must not write them again
  AddressPool pool_;
  Fd keeper_;
  WarmPool warm_;
  std::map<std::string, ShimPtr> shims_;  // by pod uid
};

}  // namespace

std::unique_ptr<Runtime> make_process_runtime(net::Loop& loop, ProcessRuntimeOptions options) {
  return std::make_unique<ProcessRuntime>(loop, std::move(options));
}

}  // namespace muster::agent::process
