#include "agent/process/process_runtime.h"

#include <fmt/core.h>
#include <signal.h>

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "agent/files.h"
#include "agent/process/address_pool.h"
#include "agent/process/conntrack.h"
#include "agent/process/keeper_link.h"
#include "agent/process/machine.h"
#include "agent/process/nat.h"
#include "agent/process/session.h"
#include "agent/process/supervisor_link.h"
#include "agent/process/user_range.h"
#include "agent/process/warm_pool.h"
#include "base/log.h"
#include "net/loop/other_network.h"

namespace muster::agent::process {
namespace {

namespace fs = std::filesystem;
constexpr Duration kShutdownPatience = std::chrono::seconds(10);

using LinkPtr = std::shared_ptr<SupervisorLink>;

/// One piece: it is the runtime's interface; what has a state of its own (the keeper, the pool of pods
/// made ahead, addresses, one pod's supervisor) stands apart.
class ProcessRuntime final : public Runtime {
 public:
  ProcessRuntime(net::Loop& loop, ProcessRuntimeOptions options)
      : loop_(loop),
        options_(std::move(options)),
        keeper_(options_.shim_binary, options_.directory),
        warm_(
            loop,
            [this] { return begin_warm(); },
            [this](const WarmSandbox& one) { give_back(one.address, one.home); }) {}

  std::string version() const override { return "process://0.1.0"; }
  std::string id_scheme(const std::string&) const override { return "process"; }
  std::vector<std::string> shortcomings() const override { return machine_.shortcomings; }
  std::string gateway() const override {
    return machine_.bridge.empty() ? "" : ipv4_text(machine_.gateway);
  }
  bool hides_devices() const override { return machine_.isolates; }
  bool translates_addresses() const override { return machine_.translates; }

  Task<Result<void>> set_virtual_ports(std::vector<VirtualPort> ports) override {
    ports_ = std::move(ports);
    const auto applied = co_await apply_rules();
    co_return applied;
  }

  Task<Result<void>> set_fences(std::vector<Fence> fences) override {
    fences_ = std::move(fences);
    const auto applied = co_await apply_rules();
    co_return applied;
  }

  Task<Result<std::vector<SandboxStatus>>> start(
      std::function<void(RuntimeEvent)> on_event) override {
    on_event_ = std::move(on_event);
    signal(SIGPIPE, SIG_IGN);
    const auto place = make_directory(options_.directory + "/run");
    if (!place) co_return fail(place.error());
    auto prepared =
        prepare_machine(options_.directory,
                        {options_.isolate,
                         options_.map_users,
                         {options_.hidden, options_.show, options_.hide, options_.images}});
    if (!prepared) co_return fail(prepared.error());
    machine_ = std::move(*prepared);
    make_pool();
    std::error_code error;
    std::vector<SandboxStatus> found;
    for (fs::directory_iterator item(options_.directory + "/run", error), end;
         !error && item != end;
         item.increment(error)) {
      const auto adopted = adopt(item->path().string());
      if (adopted) found.push_back(*adopted);
    }
    if (machine_.own_root)
      keeper_.want_own_network(machine_.bridge, machine_.subnet.base, machine_.subnet.prefix);
    const auto kept = keeper_.connect();
    if (!kept) co_return fail(kept.error());
    if (machine_.own_root)
      net::set_other_network(machine_.subnet.base, machine_.subnet.prefix, [this](int type) {
        return keeper_.make_socket(type);
      });
    if (machine_.isolates && !machine_.bridge.empty())
      warm_.start(options_.warm_sandboxes, options_.warm_sandboxes_max);
    co_return found;
  }

  Task<void> stop(bool clean) override {
    stopping_ = true;
    warm_.stop();
    for (auto& [id, link] : links_) link->close();
    links_.clear();
    if (machine_.own_root) net::set_other_network(0, 0, nullptr);
    if (clean) {
      keeper_.end();
      if (machine_.translates) co_await loop_.run_on_worker([this] { forget_rules(); });
      clean_machine(options_.directory, machine_);
    }
    keeper_.disconnect();
    co_return;
  }

  Task<Result<SandboxStatus>> run_sandbox(SandboxConfig config) override {
    const WarmPool::Busy busy(warm_);
    ShimConfig wanted;
    wanted.sandbox = std::move(config);
    wanted.isolate = machine_.isolates;
    wanted.cgroups = machine_.cgroups;
    wanted.roots = machine_.roots;
    wanted.closed = machine_.closed;
    wanted.key = machine_.key;
    if (!machine_.isolates || machine_.bridge.empty()) wanted.sandbox.host_network = true;
    wanted.maps_users = machine_.maps_users && !wanted.sandbox.host_network;
    auto socket = co_await hand_to_warm(wanted);
    if (stopping_) co_return fail(Code::kUnavailable, "muster stops");
    const bool surely = socket && cannot_be_refused(wanted.sandbox);
    if (!socket) {
      auto handed = hand_to_keeper(wanted);
      if (!handed) co_return fail(handed.error());
      socket = std::move(*handed);
    }
    const auto link = make_link(wanted);
    links_[wanted.sandbox.id] = link;
    link->listen(std::move(socket));
    if (surely) co_return status_of(*link);
    while (!link->ready && link->alive && link->failure.empty())
      co_await link->changed->wait(Duration::zero());
    if (!link->ready) {
      links_.erase(wanted.sandbox.id);
      give_back(wanted.address, wanted.home);
      co_return fail(Code::kInternal,
                     link->failure.empty() ? "the pod's supervisor ended at once" : link->failure);
    }
    co_return status_of(*link);
  }

  Task<Result<void>> remove_sandbox(std::string sandbox_id) override {
    const auto found = links_.find(sandbox_id);
    if (found == links_.end()) co_return Result<void>();
    const auto link = found->second;
    const bool in_order = co_await end_supervisor(link);
    if (links_.erase(sandbox_id) > 0) give_back_address(*link);
    const auto tree = machine_.cgroups;
    const auto kill_left_overs = [tree, sandbox_id] {
      for (const auto& group : cgroup::groups_of(tree, sandbox_id)) {
        for (const auto pid : cgroup::members(tree, group)) ::kill(pid, SIGKILL);
        cgroup::remove(tree, group);
      }
    };
    if (!in_order) co_await loop_.run_on_worker(kill_left_overs);
    co_return Result<void>();
  }

  Task<Result<ContainerStatus>> start_container(std::string sandbox_id,
                                                ContainerConfig config) override {
    const WarmPool::Busy busy(warm_);
    const auto link = find(sandbox_id);
    if (!link)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    json::Object body{{"config", to_json(config)}};
    auto answer = co_await link->call("start", std::move(body));
    if (!answer && !link->failure.empty()) co_return fail(Code::kInternal, link->failure);
    if (!answer) co_return fail(answer.error());
    auto status = container_status_from_json(answer->value);
    // The exit of a quick command may have been read together with this answer.
    auto& known = link->containers[status.id];
    if (known.state != ContainerState::kExited) known = status;
    co_return known;
  }

  Task<Result<void>> stop_container(std::string sandbox_id,
                                    std::string container_id,
                                    Duration grace) override {
    const auto link = find(sandbox_id);
    if (!link) co_return Result<void>();
    json::Object body{{"container", container_id}, {"graceMs", grace.count() / 1000}};
    const auto answer = co_await link->call("stop", std::move(body));
    if (!answer && answer.error().code != Code::kNotFound) co_return fail(answer.error());
    co_return Result<void>();
  }

  Task<Result<void>> update_limits(std::string sandbox_id,
                                   std::string container_id,
                                   Limits limits) override {
    const auto link = find(sandbox_id);
    if (!link) co_return fail(Code::kNotFound, "sandbox is not running");
    json::Object body{{"container", container_id}, {"limits", to_json(limits)}};
    const auto answer = co_await link->call("limits", std::move(body));
    if (!answer) co_return fail(answer.error());
    co_return Result<void>();
  }

  Task<Result<std::unique_ptr<Session>>> exec(std::string sandbox_id,
                                              std::string container_id,
                                              ExecConfig config) override {
    const auto link = find(sandbox_id);
    if (!link)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    auto state = make_exec_state();
    const auto number = link->add_exec(state);
    json::Array command;
    for (const auto& word : config.command) command.emplace_back(word);
    json::Object body{{"container", container_id},
                      {"exec", number},
                      {"command", std::move(command)},
                      {"tty", config.tty},
                      {"stdin", config.stdin_open},
                      {"stdout", config.stdout_open},
                      {"stderr", config.stderr_open}};
    auto answer = co_await link->call("exec", std::move(body));
    if (!answer) {
      link->drop_exec(number);
      co_return fail(answer.error());
    }
    state->pid = static_cast<int>(json::int_at(answer->value, "pid"));
    auto session = std::make_unique<ProcessSession>(state);
    session->take_exec_streams(loop_, answer->fds, config);
    std::unique_ptr<Session> out = std::move(session);
    co_return out;
  }

  Task<Result<std::unique_ptr<Session>>> attach(std::string sandbox_id,
                                                std::string container_id,
                                                ExecConfig config) override {
    const auto link = find(sandbox_id);
    if (!link)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    json::Object body{{"container", container_id},
                      {"stdin", config.stdin_open},
                      {"stdout", config.stdout_open},
                      {"stderr", config.stderr_open}};
    auto answer = co_await link->call("attach", std::move(body));
    if (!answer) co_return fail(answer.error());
    const bool tty = json::bool_at(answer->value, "tty");
    auto session = std::make_unique<ProcessSession>(make_exec_state());
    link->add_attached(container_id, session->state);
    session->take_attach_streams(loop_, answer->fds, config, tty);
    if (session->in && json::bool_at(answer->value, "stdinOnce")) {
      session->on_close_stdin = [link, container_id] {
        link->tell(json::Object{{"op", "close-stdin"}, {"container", container_id}});
      };
    }
    std::unique_ptr<Session> out = std::move(session);
    co_return out;
  }

  Task<Result<std::unique_ptr<net::ByteStream>>> connect(std::string sandbox_id,
                                                         int port) override {
    const auto link = find(sandbox_id);
    if (!link)
      co_return fail(Code::kNotFound, fmt::format("sandbox \"{}\" is not running", sandbox_id));
    json::Object body{{"port", port}};
    auto answer = co_await link->call("connect", std::move(body));
    if (!answer) co_return fail(answer.error());
    if (answer->fds.empty())
      co_return fail(Code::kInternal, "the pod's supervisor sent no connection");
    co_return net::make_fd_stream(loop_, answer->fds.front().release());
  }

  Task<Result<std::map<std::string, Usage>>> usage(std::string sandbox_id) override {
    const auto link = find(sandbox_id);
    std::map<std::string, Usage> out;
    if (!link) co_return out;
    std::vector<std::pair<std::string, std::string>> running;
    for (const auto& [id, status] : link->containers) {
      if (status.state == ContainerState::kRunning) running.emplace_back(id, status.name);
    }
    const auto tree = machine_.cgroups;
    const auto read = [&out, running, tree, sandbox_id] {
      for (const auto& [id, name] : running)
        out[id] = cgroup::usage(tree, cgroup::group_name(sandbox_id, name));
    };
    co_await loop_.run_on_worker(read);
    co_return out;
  }

 private:
  LinkPtr find(const std::string& id) const {
    const auto found = links_.find(id);
    return found == links_.end() || !found->second->alive ? nullptr : found->second;
  }

  /// A supervisor that waits has all that such a sandbox needs, so that nobody need wait for its answer:
  /// what could still go wrong is what makes a supervisor end later, too.
  static bool cannot_be_refused(const SandboxConfig& sandbox) {
    return sandbox.memory_volumes.empty() && !sandbox.share_process_namespace && !sandbox.own_users;
  }

  SandboxStatus status_of(const SupervisorLink& link) const {
    SandboxStatus status;
    status.id = link.config.sandbox.id;
    status.address = link.config.address != 0 ? ipv4_text(link.config.address) : "";
    status.alive = link.alive;
    for (const auto& [id, container] : link.containers) status.containers.push_back(container);
    return status;
  }

  LinkPtr make_link(ShimConfig config) {
    SupervisorLink::Listener listener;
    const std::weak_ptr<bool> here = here_;
    listener.on_exit = [this, here](const SupervisorLink& link, const ContainerStatus& status) {
      if (!here.expired() && !stopping_)
        on_event_(RuntimeEvent{link.config.sandbox.id, status.id, status});
    };
    listener.on_gone = [this, here](const SupervisorLink& link) {
      if (!here.expired() && !stopping_ && links_.contains(link.config.sandbox.id))
        on_event_(RuntimeEvent{link.config.sandbox.id, "", {}});
    };
    return std::make_shared<SupervisorLink>(loop_, std::move(config), std::move(listener));
  }

  std::shared_ptr<ExecState> make_exec_state() {
    auto state = std::make_shared<ExecState>();
    state->changed = loop_.make_signal();
    return state;
  }

  Task<Result<void>> apply_rules() {
    Result<void> applied;
    if (!machine_.translates || !ports_ || !fences_) co_return applied;
    const auto& subnet = machine_.subnet;
    const NatConfig config{machine_.bridge,
                           fmt::format("{}/{}", ipv4_text(subnet.base), subnet.prefix)};
    const auto number = ++rules_said_;
    bool filtered = machine_.bridge_filtered;
    const auto work =
        [this, &applied, &config, &filtered, number, ports = *ports_, fences = *fences_] {
          const std::lock_guard lock(nat_mutex_);
          // Workers may come in any order; what was said last stays.
          if (nat_removed_ || number < rules_written_) return;
          filtered = arrange_bridge(config.bridge);
          applied = apply_nat(config, ports, fences);
          if (applied) rules_written_ = number;
          if (applied) forget_closed(fences);
        };
    co_await loop_.run_on_worker(work);
    machine_.bridge_filtered = filtered;
    co_return applied;
  }

  /// What was open before a policy came, and is not allowed by it. Said once, where it cannot be done.
  void forget_closed(const std::vector<Fence>& fences) {
    if (fences == fences_held_) return;
    const auto forgotten = forget_connections(fences);
    if (forgotten) {
      fences_held_ = fences;
    } else if (!std::exchange(keeps_connections_, true)) {
      log::warn("agent",
                "connections that are open when a network policy comes stay open: {}",
                forgotten.error().message);
    }
  }

  void forget_rules() {
    const std::lock_guard lock(nat_mutex_);
    nat_removed_ = true;
    remove_nat(machine_.bridge);
  }

  /// An address stands for a range of users as well, which may be somebody else's.
  void make_pool() {
    const auto base = machine_.subnet.base + 2;
    pool_ = AddressPool(base, base + kRanges - 1);
    if (!machine_.maps_users) return;
    auto taken = ranges_in(read_file("/etc/subuid"));
    const auto groups = ranges_in(read_file("/etc/subgid"));
    taken.insert(taken.end(), groups.begin(), groups.end());
    if (taken.empty()) return;
    for (std::uint32_t i = 0; i < kRanges; ++i) {
      if (overlaps(first_id(i, machine_.subnet.base >> 16), taken)) pool_.reserve(base + i);
    }
  }

  void give_back(std::uint32_t address, std::uint32_t home) {
    pool_.give_back(address);
    pool_.give_back(home);
  }
  /// A supervisor that serves another pod has another address already; what it was born with it keeps.
  void give_back_address(const SupervisorLink& link) {
    if (!link.rested) pool_.give_back(link.config.home);
    if (!link.rested || link.config.address != link.config.home)
      pool_.give_back(link.config.address);
  }

  void set_network(ShimConfig& config, std::uint32_t address, std::uint32_t home) const {
    config.bridge = machine_.bridge;
    config.isolated_port = machine_.translates && !machine_.bridge_filtered;
    config.hairpin_port = machine_.translates && machine_.bridge_filtered;
    config.address = address;
    config.home = home;
    config.gateway = machine_.gateway;
    config.prefix = machine_.subnet.prefix;
  }
  Result<void> give_network(ShimConfig& config) {
    const auto address = pool_.take();
    if (!address) return fail(Code::kUnavailable, "no free pod address is left in the subnet");
    set_network(config, *address, *address);
    return {};
  }

  /// What an agent that is started later has to know to go on with this pod.
  static json::Value save_config(const ShimConfig& config) {
    auto value = to_json(config);
    (void)write_file(config.sandbox.run_directory + "/shim.json", json::dump(value), 0600);
    return value;
  }

  Result<std::unique_ptr<net::Descriptor>> hand_to_keeper(ShimConfig& config) {
    if (!config.sandbox.host_network) {
      const auto given = give_network(config);
      if (!given) return fail(given.error());
    }
    auto socket = keeper_.fork_supervisor("sandbox", save_config(config));
    if (!socket) {
      give_back(config.address, config.home);
      return fail(socket.error());
    }
    return net::make_descriptor(loop_, socket->release());
  }

  /// Null: none waits, or this pod needs another kind.
  Task<std::unique_ptr<net::Descriptor>> hand_to_warm(ShimConfig& config) {
    if (config.sandbox.host_network || config.sandbox.host_ipc) co_return nullptr;
    auto one = co_await warm_.take();
    if (!one) co_return nullptr;
    set_network(config, one->address, one->home);
    const json::Value message = json::Object{{"op", "sandbox"}, {"config", save_config(config)}};
    const auto sent = send_message(one->socket->fd(), message, {}, config.sandbox.run_directory);
    if (!sent) {  // somebody killed it
      give_back(one->address, one->home);
      co_return nullptr;
    }
    co_return std::move(one->socket);
  }

  Result<WarmSandbox> begin_warm() {
    ShimConfig config;
    config.roots = machine_.roots;
    config.maps_users = machine_.maps_users;
    const auto given = give_network(config);
    if (!given) return fail(given.error());
    auto socket = keeper_.fork_supervisor("warm", to_json(config));
    if (!socket) {
      give_back(config.address, config.home);
      return fail(socket.error());
    }
    WarmSandbox one;
    one.socket = net::make_descriptor(loop_, socket->release());
    one.address = config.address;
    one.home = config.home;
    return one;
  }

  /// A pod directory of an earlier run: its supervisor if it lives, else what it last wrote.
  std::optional<SandboxStatus> adopt(const std::string& directory) {
    const auto saved = json::parse(read_file(directory + "/shim.json"));
    if (!saved) return std::nullopt;
    const auto link = make_link(shim_config_from_json(*saved));
    const auto id = link->config.sandbox.id;
    for (const auto address : {link->config.address, link->config.home}) {
      if (address != 0) pool_.reserve(address);
    }
    auto connected = connect_at(directory, "shim.sock");
    Message hello;
    if (connected && !link->config.key.empty())
      (void)send_message(connected->get(), json::Object{{"key", link->config.key}}, {}, directory);
    if (connected && receive_message(connected->get(), hello) == Received::kMessage) {
      link->ready = true;
      link->take_snapshot(hello.body);
      link->listen(net::make_descriptor(loop_, connected->release()));
    } else {
      const auto state = json::parse(read_file(directory + "/state"));
      if (state) link->take_snapshot(*state);
      link->alive = false;
      for (auto& [container_id, container] : link->containers) {
        if (container.state == ContainerState::kExited) continue;
        container.state = ContainerState::kExited;
        container.exit_code = 137;
        container.reason = "Error";
        container.finished = loop_.now();
      }
    }
    links_[id] = link;
    return status_of(*link);
  }

  /// Ends the pod's processes; the supervisor ends, too, or waits for another pod. False: it was
  /// not there or had to be killed, and may have left something.
  Task<bool> end_supervisor(LinkPtr link) {
    if (!link->alive) co_return false;
    bool killed = false;
    const auto timer = loop_.after(kShutdownPatience, [link, &killed] {
      log::warn("agent", "supervisor of pod {} does not end; killed", link->config.sandbox.id);
      if (link->pid > 0) ::kill(link->pid, SIGKILL);
      killed = true;
    });
    json::Object body;
    std::uint32_t next = 0;  // an address for the pod that may follow
    if (!link->config.sandbox.host_network && warm_.has_room()) next = pool_.take().value_or(0);
    if (next != 0) body["address"] = next;
    std::optional<WarmPool::Ending> ending;
    if (next != 0) ending.emplace(warm_);
    const auto told = co_await link->call("shutdown", std::move(body));
    ending.reset();
    if (link->rests && !stopping_) {
      link->rested = true;
      warm_.rest({std::move(link->rests), next, link->config.home});
      co_return true;
    }
    if (next != 0) pool_.give_back(next);
    while (told && link->alive) co_await link->changed->wait(Duration::zero());
    co_return told && !killed;
  }

  net::Loop& loop_;
  ProcessRuntimeOptions options_;
  std::function<void(RuntimeEvent)> on_event_;
  bool stopping_ = false;
  const std::shared_ptr<bool> here_ = std::make_shared<bool>();  // links may be read after our end
  Machine machine_;
  std::mutex nat_mutex_;  // rules are written and removed on workers, one at a time
  std::optional<std::vector<VirtualPort>> ports_;
  std::optional<std::vector<Fence>> fences_;
  std::uint64_t rules_said_ = 0, rules_written_ = 0;
  std::vector<Fence> fences_held_;  // no connection that they close is open
  bool keeps_connections_ = false;  // it was said that this cannot be done
  bool nat_removed_ = false;        // for good: a change that comes late must not write them again
  AddressPool pool_;
  KeeperLink keeper_;
  WarmPool warm_;
  std::map<std::string, LinkPtr> links_;  // by pod uid
};

}  // namespace

std::unique_ptr<Runtime> make_process_runtime(net::Loop& loop, ProcessRuntimeOptions options) {
  return std::make_unique<ProcessRuntime>(loop, std::move(options));
}

}  // namespace muster::agent::process
