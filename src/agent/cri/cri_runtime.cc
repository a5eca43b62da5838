// One piece: it is the runtime's interface, and each call of it is a request of CRI and what is
// remembered of the answer.
#include "agent/cri/cri_runtime.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "agent/cri/log_rotation.h"
#include "agent/cri/messages.h"
#include "agent/cri/network.h"
#include "agent/cri/pause_image.h"
#include "agent/cri/staging.h"
#include "agent/cri/streaming.h"
#include "agent/files.h"
#include "agent/image/containerd.h"
#include "agent/image/cri_messages.h"
#include "agent/image/image_source.h"
#include "agent/image/socket_watch.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http2/grpc.h"

namespace muster::agent::cri {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

constexpr Duration kQuick = seconds(10);
/// Networks and control groups are made by programs, on a machine that may be busy.
constexpr Duration kSlow = seconds(240);
constexpr Duration kLook = seconds(10);
constexpr Duration kLogsLook = seconds(1);
constexpr Duration kAnswer = seconds(30);
constexpr Duration kRecordsMin = std::chrono::milliseconds(2);
constexpr Duration kRecordsMax = seconds(4);
constexpr Duration kRetryMin = std::chrono::milliseconds(100);
constexpr Duration kRetryMax = seconds(10);
constexpr const char* kService = "/runtime.v1.RuntimeService/";
constexpr int kStartErrorCode = 128;

/// What we know of a pod here.
struct Known {
  std::string sandbox_id;
  std::string message;  // PodSandboxConfig
  SandboxConfig config;
  UserRange users;
  std::map<std::string, ContainerStatus> containers;  // by id
  std::map<std::string, std::string> logs;            // container id -> path
};

class Cri final : public Runtime {
 public:
  Cri(net::Loop& loop, CriOptions options)
      : loop_(loop),
        options_(std::move(options)),
        client_(net::make_grpc_client(loop, options_.socket)),
        followed_(net::make_grpc_client(loop, options_.socket)),
        ranges_(options_.directory),
        wake_(loop.make_signal()) {}

  ~Cri() override { *alive_ = false; }

  std::string version() const override {
    const auto space = version_.find(' ');
    if (space == std::string::npos) return "containerd://";
    return fmt::format("{}://{}", version_.substr(0, space), version_.substr(space + 1));
  }
  std::string id_scheme(const std::string&) const override {
    const auto whole = version();
    return whole.substr(0, whole.find(':'));
  }
  std::vector<std::string> shortcomings() const override { return {}; }

  Task<Result<std::vector<SandboxStatus>>> start(
      std::function<void(RuntimeEvent)> on_event) override {
    on_event_ = std::move(on_event);
    const auto answers = co_await wait_for_answer();
    if (!answers) co_return fail(answers.error());
    if (options_.own) {
      const auto imported = co_await import_pause();
      if (!imported) co_return fail(imported.error());
    }
    auto found = co_await adopt();
    if (!found) co_return fail(found.error());
    loop_.spawn(follow_events(alive_));
    loop_.spawn(look_again_and_again(alive_));
    loop_.spawn(turn_logs_again_and_again(alive_));
    co_return found;
  }

  Task<void> stop(bool clean) override {
    *alive_ = false;
    wake_->notify();
    followed_->close();
    if (clean) {
      co_await remove_all("");
      co_await remove_cgroups();
      unlink(mark_of(options_.directory).c_str());
    }
    client_->close();
  }

  Task<Result<SandboxStatus>> run_sandbox(SandboxConfig config) override;
  Task<Result<void>> remove_sandbox(std::string sandbox_id) override;
  Task<Result<ContainerStatus>> start_container(std::string sandbox_id,
                                                ContainerConfig config) override;

  Task<Result<void>> stop_container(std::string sandbox_id,
                                    std::string container_id,
                                    Duration grace) override {
    (void)sandbox_id;
    loop_.spawn(stop_beside(std::move(container_id), grace));
    co_return Result<void>();
  }

  Task<Result<void>> update_limits(std::string sandbox_id,
                                   std::string container_id,
                                   Limits limits) override {
    (void)sandbox_id;
    const auto done = co_await call(
        "UpdateContainerResources", update_limits_request(container_id, limits), kQuick);
    if (!done) co_return fail(done.error());
    co_return Result<void>();
  }

  Task<Result<std::unique_ptr<Session>>> exec(std::string sandbox_id,
                                              std::string container_id,
                                              ExecConfig config) override {
    (void)sandbox_id;
    const auto answer = co_await call("Exec", exec_request(container_id, config), kQuick);
    if (!answer) co_return fail(answer.error());
    const auto url = read_text(*answer, "ExecResponse");
    if (!url) co_return fail(url.error());
    auto session = co_await open_session(loop_, *url, std::move(config));
    co_return session;
  }

  Task<Result<std::unique_ptr<Session>>> attach(std::string sandbox_id,
                                                std::string container_id,
                                                ExecConfig config) override {
    (void)sandbox_id;
    const auto answer = co_await call("Attach", attach_request(container_id, config), kQuick);
    if (!answer) co_return fail(answer.error());
    const auto url = read_text(*answer, "AttachResponse");
    if (!url) co_return fail(url.error());
    auto session = co_await open_session(loop_, *url, std::move(config));
    co_return session;
  }

  Task<Result<std::unique_ptr<net::ByteStream>>> connect(std::string sandbox_id,
                                                         int port) override {
    const auto known = pods_.find(sandbox_id);
    if (known == pods_.end()) co_return fail(unknown(sandbox_id));
    const auto answer =
        co_await call("PortForward", port_forward_request(known->second.sandbox_id, port), kQuick);
    if (!answer) co_return fail(answer.error());
    const auto url = read_text(*answer, "PortForwardResponse");
    if (!url) co_return fail(url.error());
    auto stream = co_await open_port(loop_, *url, port);
    co_return stream;
  }

  Task<Result<std::map<std::string, Usage>>> usage(std::string sandbox_id) override {
    const auto known = pods_.find(sandbox_id);
    if (known == pods_.end()) co_return fail(unknown(sandbox_id));
    const auto answer =
        co_await call("ListContainerStats", list_stats_request(known->second.sandbox_id), kQuick);
    if (!answer) co_return fail(answer.error());
    co_return read_stats(*answer);
  }

  // The machine's network is the process runtime's.
  std::string gateway() const override { return ""; }
  bool hides_devices() const override { return true; }
  bool translates_addresses() const override { return false; }
  Task<Result<void>> set_virtual_ports(std::vector<VirtualPort>) override {
    co_return Result<void>();
  }
  Task<Result<void>> set_fences(std::vector<Fence>) override { co_return Result<void>(); }

 private:
  static Error unknown(const std::string& uid) {
    Error error;
    error.code = Code::kNotFound;
    error.message = fmt::format("pod \"{}\" has no sandbox", uid);
    return error;
  }

  Task<Result<std::string>> call(std::string method, std::string message, Duration timeout) {
    net::GrpcCall one;
    one.method = kService + method;
    one.message = std::move(message);
    one.timeout = timeout;
    one.metadata = {{"containerd-namespace", image::kContainerdNamespace}};
    auto answer = co_await client_->call(std::move(one));
    co_return answer;
  }

  /// A containerd that was just started needs a moment; its socket is there before it answers.
  Task<Result<void>> wait_for_answer() {
    const auto deadline = loop_.monotonic() + kAnswer;
    for (;;) {
      image::SocketWatch appears(loop_, options_.socket);
      const auto answer = co_await call("Version", "", kQuick);
      if (answer) {
        const auto version = image::read_version(*answer);
        if (!version) co_return fail(version.error());
        version_ = *version;
        co_return Result<void>();
      }
      if (loop_.monotonic() > deadline) co_return fail(answer.error());
      co_await appears.wait();
    }
  }

  Task<Result<void>> import_pause() {
    const auto path = options_.directory + "/pause.tar";
    Result<void> done;
    const auto work = [&done, &path, this] {
      const auto written = write_file(path, pause_archive(), 0600);
      if (!written) {
        done = written;
        return;
      }
      const auto imported = image::import_archive(options_.socket, path);
      if (!imported) done = fail(imported.error());
      unlink(path.c_str());
    };
    co_await loop_.run_on_worker(work);
    co_return done;
  }

  std::string sandbox_file(const std::string& run_directory) const {
    return run_directory + "/cri-sandbox";
  }

  /// One folder of control groups for all our pods.
  std::string cgroup_parent() const {
    return fmt::format("/muster-cri-{:08x}",
                       static_cast<std::uint32_t>(std::hash<std::string>{}(options_.directory)));
  }

  Task<void> remove_cgroups() {
    const auto name = cgroup_parent();
    const auto work = [name] {
      std::error_code error;
      // Version 2, or one folder for each controller of version 1.
      (void)rmdir(("/sys/fs/cgroup" + name).c_str());
      for (fs::directory_iterator item("/sys/fs/cgroup", error), end; !error && item != end;
           item.increment(error))
        (void)rmdir((item->path().string() + name).c_str());
    };
    co_await loop_.run_on_worker(work);
  }

  Task<Result<UserRange>> users_for(SandboxConfig config);
  Task<void> remove_all(std::string uid);
  Task<void> clear(SandboxConfig config);
  Task<Result<std::vector<SandboxStatus>>> adopt();
  Task<void> follow_events(std::shared_ptr<bool> alive);
  Task<void> look_again_and_again(std::shared_ptr<bool> alive);
  Task<void> look(std::shared_ptr<bool> alive);
  Task<void> turn_logs_again_and_again(std::shared_ptr<bool> alive);
  Task<void> refresh(std::shared_ptr<bool> alive, std::string container_id);
  Task<void> await_end(std::shared_ptr<bool> alive, std::string container_id);
  Task<void> stop_beside(std::string container_id, Duration grace);
  Task<Result<Container>> status_of(std::string container_id);
  Task<void> remove_earlier(std::string uid, std::string name, int attempt);

  std::string pod_of(const std::string& container_id) const {
    for (const auto& [uid, known] : pods_) {
      if (known.containers.contains(container_id)) return uid;
    }
    return "";
  }

  net::Loop& loop_;
  CriOptions options_;
  std::unique_ptr<net::GrpcClient> client_, followed_;  // events have a connection of their own
  std::function<void(RuntimeEvent)> on_event_;
  std::string version_;
  std::map<std::string, Known> pods_;    // by the pod's uid
  std::map<std::string, int> attempts_;  // sandboxes tried, by the pod's uid
  UserRanges ranges_;
  std::unique_ptr<Signal> wake_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// ------------------------------------------------------------------------------------- a pod's way

/// A range of users for a pod that must have its own; none for others. The runtime is asked whether it can:
/// an older one would ignore the wish in silence.
Task<Result<UserRange>> Cri::users_for(SandboxConfig config) {
  UserRange out;
  if (!config.own_users) co_return out;
  const auto refused = [this](const char* why) {
    return fail(
        Code::kInvalid,
        fmt::format(
            "hostUsers: false, but {} cannot give pods users of their own{}", version_, why));
  };
  if (config.host_network || config.host_pid || config.host_ipc)
    co_return refused(" beside namespaces of the machine");
  const auto answer = co_await call("Status", "", kQuick);
  if (!answer) co_return fail(answer.error());
  const auto can = read_maps_users(*answer, config.handler);
  if (!can) co_return fail(can.error());
  if (!*can) co_return refused(" here; containerd 2.0 and runc 1.2 can");
  out = ranges_.take();
  if (!out) co_return fail(Code::kUnavailable, "no range of users is left for another pod");
  co_return out;
}

Task<Result<SandboxStatus>> Cri::run_sandbox(SandboxConfig config) {
  const auto users = co_await users_for(config);
  if (!users) co_return fail(users.error());
  const Staging staging(config.run_directory, options_.hidden);
  Result<void> ready;
  const auto prepare = [&ready, &staging, &config] {
    ready = make_directory(config.directory);
    if (ready) ready = staging.mount_memory(config.memory_volumes);
  };
  co_await loop_.run_on_worker(prepare);
  if (!ready) co_return fail(ready.error());
  SandboxWish wish;
  wish.config = config;
  wish.users = *users;
  wish.owner = options_.directory;
  wish.cgroup_parent = cgroup_parent();
  wish.attempt = attempts_[config.id]++;
  Known known;
  known.users = *users;
  known.message = sandbox_message(wish);
  const auto uid = config.id;
  const auto kept = write_file(sandbox_file(config.run_directory), known.message, 0600);
  if (!kept) co_return fail(kept.error());
  const auto marked = write_file(mark_of(options_.directory), "", 0600);
  if (!marked) co_return fail(marked.error());
  const auto made =
      co_await call("RunPodSandbox", run_sandbox_request(known.message, config.handler), kSlow);
  if (!made) {
    // What was begun keeps its name and its network until it is removed.
    co_await remove_all(uid);
    co_await clear(config);
    co_return fail(made.error());
  }
  const auto id = read_text(*made, "RunPodSandboxResponse");
  if (!id) co_return fail(id.error());
  known.sandbox_id = *id;
  known.config = std::move(config);
  SandboxStatus out;
  out.id = uid;
  if (!known.config.host_network) {
    const auto status = co_await call("PodSandboxStatus", id_request(*id), kQuick);
    if (!status) co_return fail(status.error());
    const auto address = read_sandbox_address(*status);
    if (!address) co_return fail(address.error());
    out.address = *address;
  }
  pods_[uid] = std::move(known);
  co_return out;
}

/// What was mounted for a sandbox.
Task<void> Cri::clear(SandboxConfig config) {
  const Staging staging(config.run_directory, options_.hidden);
  const auto work = [&staging, &config] { staging.clear(config.directory); };
  co_await loop_.run_on_worker(work);
}

/// Whatever is ours, or this pod's, and not known here.
Task<void> Cri::remove_all(std::string uid) {
  const auto listed =
      co_await call("ListPodSandbox", list_sandboxes_request(options_.directory), kQuick);
  const auto sandboxes = listed ? read_sandboxes(*listed) : std::vector<Sandbox>();
  if (!sandboxes) co_return;
  for (const auto& sandbox : *sandboxes) {
    if (!uid.empty() && sandbox.uid != uid) continue;
    (void)co_await call("StopPodSandbox", id_request(sandbox.id), kSlow);
    (void)co_await call("RemovePodSandbox", id_request(sandbox.id), kSlow);
  }
}

Task<Result<void>> Cri::remove_sandbox(std::string sandbox_id) {
  attempts_.erase(sandbox_id);
  const auto known = pods_.find(sandbox_id);
  if (known == pods_.end()) co_return Result<void>();
  auto pod = std::move(known->second);
  pods_.erase(known);
  const auto stopped = co_await call("StopPodSandbox", id_request(pod.sandbox_id), kSlow);
  if (!stopped && stopped.error().code != Code::kNotFound) {
    const auto error = stopped.error();
    pods_[sandbox_id] = std::move(pod);
    co_return fail(error);
  }
  const auto removed = co_await call("RemovePodSandbox", id_request(pod.sandbox_id), kSlow);
  co_await clear(pod.config);
  if (!removed && removed.error().code != Code::kNotFound) co_return fail(removed.error());
  co_return Result<void>();
}

Task<Result<ContainerStatus>> Cri::start_container(std::string sandbox_id, ContainerConfig config) {
  auto known = pods_.find(sandbox_id);
  if (known == pods_.end()) co_return fail(unknown(sandbox_id));
  const auto& pod = known->second;
  ContainerWish wish;
  wish.sandbox = pod.config;
  wish.users = pod.users;
  wish.sandbox_id = pod.sandbox_id;
  wish.sandbox_message = pod.message;
  wish.owner = options_.directory;
  wish.joined = config.joins_processes_of;
  const Staging staging(pod.config.run_directory, options_.hidden);
  Result<std::vector<Mount>> mounts;
  const auto prepare = [&] {
    mounts = staging.prepare(fmt::format("{}_{}", config.name, config.attempt), config.mounts);
  };
  co_await loop_.run_on_worker(prepare);
  if (!mounts) co_return fail(mounts.error());
  config.mounts = std::move(*mounts);
  const auto add = [&config](const std::string& source, const std::string& target) {
    for (const auto& one : config.mounts) {
      if (one.target == target) return;
    }
    Mount mount;
    mount.source = source;
    mount.target = target;
    config.mounts.push_back(std::move(mount));
  };
  add(wish.sandbox.hosts_file, "/etc/hosts");
  add(wish.sandbox.resolv_conf_file, "/etc/resolv.conf");
  if (!wish.sandbox.host_ipc) add(staging.shared_memory(), "/dev/shm");
  if (!config.termination_message_path.empty())
    add(config.termination_message_file, config.termination_message_path);
  const auto name = config.name;
  const auto attempt = config.attempt;
  const auto log = config.log_path;
  wish.config = std::move(config);
  const auto made = co_await call("CreateContainer", create_container_request(wish), kSlow);
  if (!made) co_return fail(made.error());
  const auto id = read_text(*made, "CreateContainerResponse");
  if (!id) co_return fail(id.error());
  // Before it runs: its end may come before the answer.
  known = pods_.find(sandbox_id);
  if (known == pods_.end()) co_return fail(unknown(sandbox_id));
  auto& record = known->second.containers[*id];
  record.id = *id;
  record.name = name;
  record.attempt = attempt;
  known->second.logs[*id] = log;
  const auto started = co_await call("StartContainer", id_request(*id), kSlow);
  auto status = co_await status_of(*id);
  if (!started) {
    ContainerStatus out;
    if (status) out = status->status;
    out.id = *id;
    out.name = name;
    out.attempt = attempt;
    out.state = ContainerState::kExited;
    out.reason = "StartError";
    out.exit_code = kStartErrorCode;
    out.message = started.error().message;
    if (out.finished == Time{}) out.finished = loop_.now();
    if (known = pods_.find(sandbox_id); known != pods_.end()) known->second.containers[*id] = out;
    co_return out;
  }
  if (!status) co_return fail(status.error());
  if (known = pods_.find(sandbox_id); known != pods_.end()) {
    auto& last = known->second.containers[*id];
    // An event may have told its end while we asked.
    if (last.state != ContainerState::kExited) last = status->status;
    status->status = last;
  }
  loop_.spawn(remove_earlier(sandbox_id, name, attempt));
  co_return status->status;
}

/// The one before this attempt is kept, as a kubelet does: `kubectl logs -p` and whoever looks with
/// crictl want to see it.
Task<void> Cri::remove_earlier(std::string uid, std::string name, int attempt) {
  const auto known = pods_.find(uid);
  if (known == pods_.end()) co_return;
  std::vector<std::string> old;
  for (const auto& [id, status] : known->second.containers) {
    if (status.name == name && status.attempt < attempt - 1) old.push_back(id);
  }
  for (const auto& id : old) {
    known->second.containers.erase(id);
    known->second.logs.erase(id);
  }
  for (const auto& id : old) (void)co_await call("RemoveContainer", id_request(id), kQuick);
}

Task<void> Cri::stop_beside(std::string container_id, Duration grace) {
  const auto alive = alive_;
  const auto whole = std::chrono::duration_cast<seconds>(grace + std::chrono::milliseconds(999));
  const auto stopped = co_await call(
      "StopContainer", stop_container_request(container_id, whole.count()), grace + kSlow);
  if (!stopped) log::warn("agent", "stop container {}: {}", container_id, stopped.error().message);
  if (*alive) co_await refresh(alive, container_id);
}

Task<Result<Container>> Cri::status_of(std::string container_id) {
  const auto answer = co_await call("ContainerStatus", id_request(container_id), kQuick);
  if (!answer) co_return fail(answer.error());
  co_return read_container_status(*answer);
}

// ----------------------------------------------------------------------------- what runs, and ends

Task<Result<std::vector<SandboxStatus>>> Cri::adopt() {
  const auto listed =
      co_await call("ListPodSandbox", list_sandboxes_request(options_.directory), kQuick);
  if (!listed) co_return fail(listed.error());
  const auto sandboxes = read_sandboxes(*listed);
  if (!sandboxes) co_return fail(sandboxes.error());
  const auto all =
      co_await call("ListContainers", list_containers_request(options_.directory), kQuick);
  if (!all) co_return fail(all.error());
  const auto containers = read_containers(*all);
  if (!containers) co_return fail(containers.error());
  std::map<std::string, SandboxStatus> found;
  for (const auto& sandbox : *sandboxes) {
    if (sandbox.uid.empty()) continue;
    auto& status = found[sandbox.uid];
    status = SandboxStatus{};
    status.id = sandbox.uid;
    status.alive = sandbox.ready;
    const auto detail = co_await call("PodSandboxStatus", id_request(sandbox.id), kQuick);
    if (detail) status.address = read_sandbox_address(*detail).value_or("");
    Known known;
    known.sandbox_id = sandbox.id;
    known.config.id = sandbox.uid;
    known.config.directory = options_.directory + "/pods/" + sandbox.uid;
    known.config.run_directory = options_.directory + "/run/" + sandbox.uid;
    known.config.hosts_file = known.config.run_directory + "/hosts";
    known.config.resolv_conf_file = known.config.run_directory + "/resolv.conf";
    known.message = read_file(sandbox_file(known.config.run_directory));
    const auto namespaces = read_namespaces(known.message);
    known.config.host_network = namespaces.host_network;
    known.config.host_pid = namespaces.host_pid;
    known.config.host_ipc = namespaces.host_ipc;
    known.config.share_process_namespace = namespaces.share_process_namespace;
    if (namespaces.users) known.users = ranges_.hold(*namespaces.users);
    for (const auto& one : *containers) {
      if (one.sandbox_id != sandbox.id) continue;
      const auto whole = co_await status_of(one.status.id);
      const auto& seen = whole ? whole->status : one.status;
      // Told of already, or cut off with the agent that asked for it: then it is to be started yet.
      if (seen.state == ContainerState::kExited && seen.reason == "StartError") {
        (void)co_await call("RemoveContainer", id_request(seen.id), kQuick);
        continue;
      }
      status.containers.push_back(seen);
      known.containers[seen.id] = seen;
      if (whole) known.logs[seen.id] = whole->log_path;
    }
    pods_[sandbox.uid] = std::move(known);
  }
  std::vector<SandboxStatus> out;
  for (auto& [uid, status] : found) out.push_back(std::move(status));
  co_return out;
}

/// Containerd's own events come at once. Other runtimes have none of these, and are looked at.
Task<void> Cri::follow_events(std::shared_ptr<bool> alive) {
  Duration pause = kRetryMin;
  while (*alive) {
    net::GrpcCall wanted;
    wanted.method = "/containerd.services.events.v1.Events/Subscribe";
    wanted.message = subscribe_request();
    wanted.metadata = {{"containerd-namespace", image::kContainerdNamespace}};
    const auto begun = loop_.monotonic();
    const auto each = [this, alive](const std::string& message) {
      if (!*alive) return;
      const auto event = read_event(message);
      if (event && event->exec_id.empty()) loop_.spawn(await_end(alive, event->container_id));
    };
    const auto ended = co_await followed_->follow(std::move(wanted), each);
    if (!*alive) co_return;
    if (!ended && ended.error().code == Code::kMethodNotAllowed) {
      log::warn("agent", "the container runtime sends no events; it is polled every 10 s instead");
      co_return;
    }
    log::warn(
        "agent",
        "the container runtime's events ended and are asked for again ({}); of containers that "
        "end before it is back the last lines may be missing",
        ended ? "end of stream" : ended.error().message);
    wake_->notify();
    pause = loop_.monotonic() - begun > kRetryMax ? kRetryMin : std::min(pause * 2, kRetryMax);
    co_await loop_.sleep(pause);
  }
}

/// Heals what no event told.
Task<void> Cri::look_again_and_again(std::shared_ptr<bool> alive) {
  while (*alive) {
    co_await wake_->wait(kLook);
    if (!*alive) co_return;
    co_await look(alive);
  }
}

Task<void> Cri::look(std::shared_ptr<bool> alive) {
  if (pods_.empty()) co_return;
  const auto answer =
      co_await call("ListContainers", list_containers_request(options_.directory), kQuick);
  if (!*alive || !answer) co_return;
  const auto now = read_containers(*answer);
  if (!now) co_return;
  for (const auto& one : *now) {
    if (one.status.state != ContainerState::kExited) continue;
    const auto uid = pod_of(one.status.id);
    if (uid.empty()) continue;
    if (pods_[uid].containers[one.status.id].state == ContainerState::kRunning)
      co_await refresh(alive, one.status.id);
    if (!*alive) co_return;
  }
  const auto listed =
      co_await call("ListPodSandbox", list_sandboxes_request(options_.directory), kQuick);
  if (!*alive || !listed) co_return;
  const auto sandboxes = read_sandboxes(*listed);
  if (!sandboxes) co_return;
  for (const auto& sandbox : *sandboxes) {
    const auto known = pods_.find(sandbox.uid);
    if (sandbox.ready || known == pods_.end() || known->second.sandbox_id != sandbox.id) continue;
    on_event_(RuntimeEvent{sandbox.uid, "", {}});
  }
}

/// A log that grows fast is longer than it should be by what is written in a second.
Task<void> Cri::turn_logs_again_and_again(std::shared_ptr<bool> alive) {
  for (;;) {
    co_await loop_.sleep(kLogsLook);
    if (!*alive) co_return;
    std::map<std::string, std::string> logs;  // of those that still write
    for (const auto& [uid, known] : pods_) {
      for (const auto& [id, status] : known.containers) {
        const auto log = known.logs.find(id);
        if (status.state == ContainerState::kRunning && log != known.logs.end())
          logs[id] = log->second;
      }
    }
    if (logs.empty()) continue;
    std::vector<std::string> turned;
    const auto turn = [&logs, &turned] {
      for (const auto& [id, path] : logs) {
        if (turn_log_over(path)) turned.push_back(id);
      }
    };
    co_await loop_.run_on_worker(turn);
    for (const auto& id : turned) {
      if (!*alive) co_return;
      const auto reopened = co_await call("ReopenContainerLog", id_request(id), kQuick);
      if (!reopened) log::warn("agent", "log of container {}: {}", id, reopened.error().message);
    }
  }
}

/// Its task is gone; a moment later the runtime's own records say so, too, and for that there is no
/// event (CRI's are new in containerd 1.7).
Task<void> Cri::await_end(std::shared_ptr<bool> alive, std::string container_id) {
  for (Duration pause = kRecordsMin; pause < kRecordsMax; pause *= 2) {
    co_await refresh(alive, container_id);
    if (!*alive) co_return;
    const auto uid = pod_of(container_id);
    if (uid.empty() || pods_[uid].containers[container_id].state == ContainerState::kExited)
      co_return;
    co_await loop_.sleep(pause);
    if (!*alive) co_return;
  }
}

Task<void> Cri::refresh(std::shared_ptr<bool> alive, std::string container_id) {
  if (pod_of(container_id).empty()) co_return;
  const auto now = co_await status_of(container_id);
  if (!*alive || !now) co_return;
  const auto uid = pod_of(container_id);  // it may have gone meanwhile
  if (uid.empty()) co_return;
  auto& known = pods_[uid].containers[container_id];
  if (known.state == ContainerState::kExited || now->status.state == known.state) co_return;
  const bool unstarted = known.state == ContainerState::kCreated;
  known = now->status;
  // One that is being started is told of by whoever starts it.
  if (known.state == ContainerState::kExited && !unstarted)
    on_event_(RuntimeEvent{uid, container_id, known});
}

}  // namespace

std::unique_ptr<Runtime> make_cri_runtime(net::Loop& loop, CriOptions options) {
  return std::make_unique<Cri>(loop, std::move(options));
}

std::string mark_of(const std::string& agent_directory) { return agent_directory + "/cri-pods"; }

std::string cri_missing() {
  const auto there = [](std::initializer_list<const char*> places) {
    for (const auto* place : places) {
      if (access(place, X_OK) == 0) return true;
    }
    return false;
  };
  if (!there({"/usr/sbin/runc", "/usr/bin/runc", "/usr/local/sbin/runc", "/usr/local/bin/runc"}))
    return "runc is not installed (Debian: apt-get install runc)";
  if (plugin_folder().empty())
    return "the plugins for networks are not installed (Debian: apt-get install "
           "containernetworking-plugins)";
  return "";
}

}  // namespace muster::agent::cri
