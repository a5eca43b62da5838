#include "agent/pod_worker.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/names.h"
#include "agent/node_address.h"
#include "agent/probes.h"
#include "agent/services.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/pod.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::at;
using json::text;
using std::chrono::seconds;

constexpr std::size_t kEphemeralsMax = 64;
constexpr int kBackoffFirst_s = 10;
constexpr int kBackoffMax_s = 300;
constexpr Duration kBackoffReset = seconds(600);  // a container that ran this long starts afresh

/// The nearer of two wake-up times; zero means none.
Duration sooner(Duration a, Duration b) {
  if (a == Duration::zero()) return b;
  if (b == Duration::zero()) return a;
  return std::min(a, b);
}

/// Until `when`, at least a little.
Duration until(Time when, Time now) {
  return std::max<Duration>(when - now, std::chrono::milliseconds(1));
}

std::optional<ContainerStatus> parse_terminated(const json::Value& value,
                                                const std::string& name,
                                                int attempt) {
  if (value.is_null()) return std::nullopt;
  ContainerStatus status;
  status.name = name;
  status.attempt = attempt;
  status.state = ContainerState::kExited;
  status.exit_code = static_cast<int>(json::as_int(at(value, "exitCode")));
  status.reason = text(at(value, "reason"));
  status.message = text(at(value, "message"));
  const auto id = text(at(value, "containerID"));
  status.id = id.substr(id.find("://") == std::string::npos ? 0 : id.find("://") + 3);
  if (const auto time = parse_time(json::as_string(at(value, "startedAt"))); time)
    status.started = *time;
  if (const auto time = parse_time(json::as_string(at(value, "finishedAt"))); time)
    status.finished = *time;
  return status;
}

/// What the API remembers of a container, for one that the runtime no longer knows.
void recall(ContainerRecord& record, const json::Value& status, Time now) {
  record.restarts = static_cast<int>(json::as_int(at(status, "restartCount")));
  record.previous =
      parse_terminated(at(status, "lastState", "terminated"), record.name, record.restarts - 1);
  record.current =
      parse_terminated(at(status, "state", "terminated"), record.name, record.restarts);
  if (!record.current && !at(status, "state", "running").is_null()) {
    ContainerStatus lost;
    lost.name = record.name;
    lost.attempt = record.restarts;
    lost.state = ContainerState::kExited;
    lost.exit_code = 137;
    lost.reason = "ContainerStatusUnknown";
    lost.message = "The container could not be located when the pod was terminated";
    const auto id = text(at(status, "containerID"));
    lost.id = id.substr(id.find("://") == std::string::npos ? 0 : id.find("://") + 3);
    lost.finished = now;
    record.current = lost;
  }
  if (!record.current && record.previous && !at(status, "state", "waiting").is_null()) {
    record.current = record.previous;  // it waited for its next attempt
    record.previous.reset();
  }
  record.started = record.sidecar && json::as_bool(at(status, "started"));
}

}  // namespace

PodWorker::PodWorker(Context& context,
                     client::ObjectPtr pod,
                     std::optional<SandboxStatus> adopted,
                     std::function<void(const std::string&)> on_finished)
    : context_(context),
      pod_(std::move(pod)),
      uid_(kube::uid_of(*pod_)),
      places_(pod_directories(context.directory, uid_)),
      on_finished_(std::move(on_finished)),
      published_(at(*pod_, "status")),
      wake_(context.loop.make_signal()),
      patched_(context.loop.make_signal()) {
  const auto& status = at(*pod_, "status");
  const auto node =
      context_.informers.get(client::resources::kNodes).find(text(at(*pod_, "spec", "nodeName")));
  state_.host_ip = node ? node_address(*node, context_.host_ip) : context_.host_ip;
  if (const auto time = parse_time(json::as_string(at(status, "startTime"))); time)
    state_.start_time = *time;
  for (const bool init : {true, false}) {
    auto& records = init ? state_.inits : state_.containers;
    for (const auto& container :
         json::as_array(at(*pod_, "spec", init ? "initContainers" : "containers"))) {
      ContainerRecord record;
      record.name = text(at(container, "name"));
      record.init = init;
      record.sidecar = init && json::as_string(at(container, "restartPolicy")) == "Always";
      for (const auto& item :
           json::as_array(at(status, init ? "initContainerStatuses" : "containerStatuses"))) {
        if (json::as_string(at(item, "name")) == record.name)
          recall(record, item, context_.loop.now());
      }
      records.push_back(std::move(record));
    }
  }
  state_.ephemerals.reserve(kEphemeralsMax);  // records are referred to while more are added
  add_ephemerals();
  was_terminal_ = terminal_ = kube::pod_finished(*pod_);
  if (!adopted) return;
  sandbox_known_ = true;
  state_.sandbox_ready = adopted->alive;
  state_.pod_ip = adopted->address.empty() ? context_.host_ip : adopted->address;
  for (const auto& container : adopted->containers) {
    auto* record = find_record(container.name);
    if (record == nullptr) continue;
    if (record->current && record->current->id != container.id) record->previous = record->current;
    record->current = container;
    record->restarts = container.attempt;
    record->started = record->ready = container.state == ContainerState::kRunning;
  }
}

void PodWorker::add_ephemerals() {
  for (const auto& container : json::as_array(at(*pod_, "spec", "ephemeralContainers"))) {
    const auto name = text(at(container, "name"));
    if (find_record(name) != nullptr || state_.ephemerals.size() == kEphemeralsMax) continue;
    ContainerRecord record;
    record.name = name;
    record.ephemeral = true;
    for (const auto& item : json::as_array(at(*pod_, "status", "ephemeralContainerStatuses"))) {
      if (json::as_string(at(item, "name")) == name) recall(record, item, context_.loop.now());
    }
    state_.ephemerals.push_back(std::move(record));
  }
}

void PodWorker::start() {
  const auto self = shared_from_this();
  if (state_.sandbox_ready) open_host_ports();
  for (auto* records : {&state_.inits, &state_.containers, &state_.ephemerals}) {
    for (auto& record : *records) {
      if (record.running()) start_probes(self, record.name);
    }
  }
  starting_ = published_.is_null() || text(at(published_, "phase")) == "Pending";
  if (starting_) ++context_.starting;
  context_.loop.spawn(run());
}

void PodWorker::no_longer_starting() {
  if (std::exchange(starting_, false)) --context_.starting;
}

void PodWorker::update(client::ObjectPtr pod) {
  const bool labels_changed =
      !json::equal(at(*pod_, "metadata", "labels"), at(*pod, "metadata", "labels")) ||
      !json::equal(at(*pod_, "metadata", "annotations"), at(*pod, "metadata", "annotations"));
  if (json::as_int(at(*pod_, "metadata", "generation")) !=
      json::as_int(at(*pod, "metadata", "generation")))
    limits_stale_ = true;
  pod_ = std::move(pod);
  add_ephemerals_wanted_ = true;
  if (labels_changed) volumes_stale_ = true;
  wake();
}

void PodWorker::removed() {
  gone_ = true;
  wake();
}

void PodWorker::detach() {
  detached_ = true;
  host_ports_.clear();
  wake();
}

void PodWorker::object_changed(const ObjectRef& ref) {
  if (!objects_.contains(ref)) return;
  volumes_stale_ = true;
  wake();
}

void PodWorker::on_event(const RuntimeEvent& event) {
  if (event.container_id.empty()) {  // the whole sandbox is lost
    state_.sandbox_ready = false;
    for (auto* records : {&state_.inits, &state_.containers, &state_.ephemerals}) {
      for (auto& record : *records) {
        if (!record.running()) continue;
        record.current->state = ContainerState::kExited;
        record.current->exit_code = 137;
        record.current->reason = "Error";
        record.current->finished = context_.loop.now();
        container_ended(record);
      }
    }
  } else if (auto* record = find_record_by_id(event.container_id);
             record != nullptr && record->running()) {
    record->current = event.status;
    container_ended(*record);
  }
  wake();
}

ContainerRecord* PodWorker::find_record(std::string_view name) {
  for (auto* records : {&state_.inits, &state_.containers, &state_.ephemerals}) {
    for (auto& record : *records) {
      if (record.name == name) return &record;
    }
  }
  return nullptr;
}

const ContainerRecord* PodWorker::find_container(std::string_view name) const {
  return const_cast<PodWorker*>(this)->find_record(name);
}

ContainerRecord* PodWorker::find_record_by_id(const std::string& container_id) {
  for (auto* records : {&state_.inits, &state_.containers, &state_.ephemerals}) {
    for (auto& record : *records) {
      if (record.current && record.current->id == container_id) return &record;
    }
  }
  return nullptr;
}

const json::Value& PodWorker::spec_of(const ContainerRecord& record) const {
  for (const auto& container :
       json::as_array(at(*pod_, "spec", record.list()))) {
    if (json::as_string(at(container, "name")) == record.name) return container;
  }
  return json::null_value();
}

bool PodWorker::any_running() const {
  const auto running = [](const ContainerRecord& record) { return record.running(); };
  return std::any_of(state_.inits.begin(), state_.inits.end(), running) ||
         std::any_of(state_.containers.begin(), state_.containers.end(), running) ||
         std::any_of(state_.ephemerals.begin(), state_.ephemerals.end(), running);
}

PodFacts PodWorker::facts() const {
  return {state_.pod_ip, state_.host_ip, context_.node_cpu_milli, context_.node_memory_bytes};
}

void PodWorker::record_event(const ContainerRecord* record,
                             const char* type,
                             const char* reason,
                             const std::string& message) {
  auto& events = context_.events_of(text(at(*pod_, "spec", "nodeName")));
  if (record == nullptr) {
    events.record(*pod_, type, reason, message);
  } else {
    events.record_field(
        *pod_,
        fmt::format("spec.{}{{{}}}", record->list(), record->name),
        type,
        reason,
        message);
  }
}

// ---- the life
// -------------------------------------------------------------------------------------------

Task<void> PodWorker::run() {
  const auto self = shared_from_this();
  while (!finished_ && !detached_) {
    const auto pause = co_await sync();
    if (finished_ || detached_) break;
    publish();
    if (!patching_) no_longer_starting();  // it waits for something
    co_await wake_->wait(pause);
  }
  no_longer_starting();
  if (finished_) on_finished_(uid_);
}

Task<Duration> PodWorker::sync() {
  if (gone_) {
    co_await tear_down();
    finished_ = true;
    co_return Duration::zero();
  }
  if (kube::is_deleting(*pod_)) {
    const auto pause = co_await sync_deleting();
    co_return pause;
  }
  if (terminal_) {
    const auto pause = co_await sync_terminal();
    co_return pause;
  }
  const auto pause = co_await sync_running();
  co_return pause;
}

Duration PodWorker::grace_left() const {
  const auto grace = json::as_int(at(*pod_, "metadata", "deletionGracePeriodSeconds"), 30);
  const auto asked = kube::deletion_time(*pod_) - seconds(grace);
  const auto left = seconds(grace) - (context_.loop.now() - asked);
  // deletionTimestamp has whole seconds, so up to one is lost by rounding.
  return std::clamp<Duration>(left + seconds(1), Duration::zero(), seconds(grace));
}

Task<Duration> PodWorker::sync_deleting() {
  if (!stop_all(grace_left())) co_return Duration::zero();
  terminal_ = true;
  state_.terminated = true;
  host_ports_.clear();
  if (sandbox_known_) {
    (void)co_await context_.runtime.remove_sandbox(uid_);
    sandbox_known_ = state_.sandbox_ready = false;
  }
  co_await flush_status();
  if (gone_) co_return std::chrono::milliseconds(1);
  client::DeleteOptions options;
  options.grace_s = 0;
  options.uid = uid_;
  const auto ns = std::string(kube::namespace_of(*pod_));
  const auto name = std::string(kube::name_of(*pod_));
  const auto removed = co_await context_.client.remove(client::resources::kPods, ns, name, options);
  if (!removed && removed.error().code != Code::kNotFound &&
      removed.error().code != Code::kConflict) {
    log::warn("agent", "delete pod {}/{}: {}", ns, name, removed.error().message);
    co_return seconds(1);
  }
  co_return seconds(30);  // the informer will say that it is gone; if it has finalizers, that takes
                          // as long as it takes
}

Task<Duration> PodWorker::sync_terminal() {
  if (!stop_all(seconds(json::as_int(at(*pod_, "spec", "terminationGracePeriodSeconds"), 30))))
    co_return Duration::zero();
  state_.terminated = true;
  host_ports_.clear();
  if (sandbox_known_) {
    (void)co_await context_.runtime.remove_sandbox(uid_);
    sandbox_known_ = state_.sandbox_ready = false;
  }
  context_.gpus.release(uid_);
  if (run_removed_) co_return Duration::zero();
  // Once the API knows how the pod ended, only its logs are of use.
  run_removed_ = true;
  co_await flush_status();
  const auto run = places_.run;
  const auto work = [run] {
    std::error_code ignored;
    fs::remove_all(run, ignored);
  };
  if (!detached_) co_await context_.loop.run_on_worker(work);
  co_return Duration::zero();
}

Task<Duration> PodWorker::sync_running() {
  const auto now = context_.loop.now();
  if (!state_.start_time) state_.start_time = now;
  Duration pause{0};
  if (const auto limit = json::as_int(at(*pod_, "spec", "activeDeadlineSeconds")); limit > 0) {
    const auto deadline = state_.start_time + seconds(limit);
    if (now >= deadline) {
      state_.reason = "DeadlineExceeded";
      state_.message = "Pod was active on the node longer than the specified deadline";
      record_event(nullptr, "Normal", "DeadlineExceeded", state_.message);
      terminal_ = true;
      co_return std::chrono::milliseconds(1);
    }
    pause = until(deadline, now);
  }
  if (!state_.sandbox_ready) {
    if (now < retry_sandbox_at_) co_return sooner(pause, until(retry_sandbox_at_, now));
    const auto made = co_await make_sandbox();
    if (!made) {
      retry_sandbox_at_ =
          context_.loop.now() +
          std::min<Duration>(seconds(1 << std::min(sandbox_failures_++, 6)), seconds(60));
      co_return sooner(pause, until(retry_sandbox_at_, context_.loop.now()));
    }
  } else if (volumes_stale_) {
    volumes_stale_ = false;
    const auto refreshed = co_await refresh_volumes();
    if (!refreshed) log::warn("agent", "pod {}: {}", uid_, refreshed.error().message);
  }
  if (gone_ || kube::is_deleting(*pod_)) co_return std::chrono::milliseconds(1);
  if (limits_stale_) co_await apply_limits();
  // Not in update(): that may come while a reference to a record is held across an await.
  if (std::exchange(add_ephemerals_wanted_, false)) add_ephemerals();
  for (auto& record : state_.ephemerals) {
    const auto container_pause = co_await sync_container(record);
    pause = sooner(pause, container_pause);
  }
  bool blocked = false;
  const auto init_pause = co_await sync_inits(blocked);
  pause = sooner(pause, init_pause);
  if (!blocked) {
    for (auto& record : state_.containers) {
      const auto container_pause = co_await sync_container(record);
      pause = sooner(pause, container_pause);
    }
  }
  const auto phase = phase_of(*pod_, state_);
  if (phase == "Succeeded" || phase == "Failed") {
    terminal_ = true;
    co_return std::chrono::milliseconds(1);
  }
  co_return pause;
}

/// Init containers one after the other; a sidecar only has to be started before the next.
Task<Duration> PodWorker::sync_inits(bool& blocked) {
  Duration pause{0};
  for (auto& record : state_.inits) {
    if (!record.sidecar && record.succeeded()) continue;
    const auto one = co_await sync_container(record);
    pause = sooner(pause, one);
    const bool passed = record.sidecar ? record.started : record.succeeded();
    if (!passed) {
      blocked = true;
      co_return pause;
    }
  }
  co_return pause;
}

Task<Duration> PodWorker::sync_container(ContainerRecord& record) {
  if (record.running()) co_return Duration::zero();
  const auto now = context_.loop.now();
  const auto policy = json::as_string(at(*pod_, "spec", "restartPolicy"), "Always");
  if (record.exited() && !restarts_after_exit(policy, record)) co_return Duration::zero();
  if (now < record.retry_at) co_return until(record.retry_at, now);
  co_await start_container(record);
  co_return record.retry_at > context_.loop.now() ? until(record.retry_at, context_.loop.now())
                                                  : Duration::zero();
}

/// Decides when the next attempt may start. The first comes at once, later ones after 10 s, 20 s …
/// 5 min.
void PodWorker::container_ended(ContainerRecord& record) {
  const auto now = context_.loop.now();
  stopping_.erase(record.name);
  record.ready = false;
  if (!record.sidecar) record.started = false;
  auto& ended = *record.current;
  const auto& spec = spec_of(record);
  utimensat(AT_FDCWD,
            log_path(places_.disk, record.name, ended.attempt).c_str(),
            nullptr,
            0);  // wakes those who follow the log
  if (ended.message.empty())
    ended.message = termination_message(spec,
                                        places_,
                                        record.name,
                                        log_path(places_.disk, record.name, ended.attempt),
                                        ended.exit_code);
  if (terminal_ || gone_ || kube::is_deleting(*pod_)) return;
  if (!restarts_after_exit(json::as_string(at(*pod_, "spec", "restartPolicy"), "Always"), record))
    return;
  if (ended.finished - ended.started > kBackoffReset) record.backoff_s = 0;
  if (record.backoff_s == 0) {
    record.backoff_s = kBackoffFirst_s;
    record.retry_at = now;
    return;
  }
  record.retry_at = now + seconds(record.backoff_s);
  const auto pod_text =
      fmt::format("{}_{}({})", kube::name_of(*pod_), kube::namespace_of(*pod_), uid_);
  record.waiting_reason = "CrashLoopBackOff";
  const auto minutes = record.backoff_s / 60;
  const auto span = minutes > 0 ? fmt::format("{}m{}s", minutes, record.backoff_s % 60)
                                : fmt::format("{}s", record.backoff_s);
  record.waiting_message =
      fmt::format("back-off {} restarting failed container={} pod={}", span, record.name, pod_text);
  record_event(
      &record,
      "Warning",
      "BackOff",
      fmt::format("Back-off restarting failed container {} in pod {}", record.name, pod_text));
  record.backoff_s = std::min(record.backoff_s * 2, kBackoffMax_s);
}

// ---- sandbox and volumes
// --------------------------------------------------------------------------------

Task<Result<Objects>> PodWorker::fetch_objects() {
  Objects out;
  const auto ns = std::string(kube::namespace_of(*pod_));
  for (const auto& ref : references(*pod_)) {
    const auto& resource = ref.first == "configmaps" ? client::resources::kConfigMaps
                           : ref.first == "secrets"  ? client::resources::kSecrets
                                                     : client::resources::kPersistentVolumeClaims;
    if (ref.first != "persistentvolumeclaims") {
      const auto known = context_.informers.get(resource).find(ns + "/" + ref.second);
      if (known) {
        out[ref] = *known;
        continue;
      }
    }
    auto got = co_await context_.client.get(resource, ns, ref.second);
    if (!got && got.error().code != Code::kNotFound) co_return fail(got.error());
    out[ref] = got ? std::move(*got) : json::Value();
  }
  co_return out;
}

/// Tokens of the pod's account for each audience its projected volumes ask for.
Task<Result<void>> PodWorker::fetch_tokens() {
  const auto ns = std::string(kube::namespace_of(*pod_));
  const auto account = text(at(*pod_, "spec", "serviceAccountName"));
  for (const auto& volume : json::as_array(at(*pod_, "spec", "volumes"))) {
    for (const auto& source : json::as_array(at(volume, "projected", "sources"))) {
      const auto& wanted = at(source, "serviceAccountToken");
      if (wanted.is_null()) continue;
      const auto audience = text(at(wanted, "audience"));
      auto& cached = context_.tokens[fmt::format("{}/{}/{}", ns, account, audience)];
      if (cached.renew_at <= context_.loop.now()) {
        const auto lifetime =
            std::max<std::int64_t>(600, json::as_int(at(wanted, "expirationSeconds"), 3600));
        json::Object spec{{"expirationSeconds", lifetime}};
        if (!audience.empty()) spec["audiences"] = json::Array{audience};
        json::Value body = json::Object{{"apiVersion", "authentication.k8s.io/v1"},
                                        {"kind", "TokenRequest"},
                                        {"spec", std::move(spec)}};
        const auto answer = co_await context_.client.post_subresource(
            client::resources::kServiceAccounts, ns, account, "token", std::move(body));
        auto& fresh = context_.tokens[fmt::format("{}/{}/{}", ns, account, audience)];
        if (answer) {
          fresh.text = text(at(*answer, "status", "token"));
          fresh.renew_at = context_.loop.now() + seconds(lifetime * 8 / 10);
        } else {
          log::warn(
              "agent", "token of service account {}/{}: {}", ns, account, answer.error().message);
          fresh.renew_at = context_.loop.now() + seconds(10);
        }
        tokens_[audience] = fresh.text;
      } else {
        tokens_[audience] = cached.text;
      }
    }
  }
  co_return Result<void>();
}

Task<Result<void>> PodWorker::refresh_volumes() {
  auto objects = co_await fetch_objects();
  if (!objects) co_return fail(objects.error());
  objects_ = std::move(*objects);
  (void)co_await fetch_tokens();
  VolumeInputs inputs;
  const auto pod = pod_;
  inputs.pod = pod.get();
  inputs.facts = facts();
  inputs.objects = objects_;
  inputs.tokens = tokens_;
  inputs.pod_directory = places_.disk;
  inputs.run_directory = places_.run;
  inputs.group = json::as_int(at(*pod_, "spec", "securityContext", "fsGroup"), -1);
  inputs.claims_directory = context_.directory + "/claims";
  Result<PreparedVolumes> prepared;
  const auto work = [&prepared, &inputs] { prepared = prepare_volumes(inputs); };
  co_await context_.loop.run_on_worker(work);
  if (!prepared) co_return fail(prepared.error());
  volumes_ = std::move(*prepared);
  co_return Result<void>();
}

Task<Result<void>> PodWorker::make_sandbox() {
  if (sandbox_known_) {  // the remains of one that died
    (void)co_await context_.runtime.remove_sandbox(uid_);
    sandbox_known_ = false;
  }
  std::error_code error;
  for (const auto* place : {&places_.disk, &places_.run}) {
    fs::create_directories(*place, error);
    if (error)
      co_return fail(Code::kInternal, fmt::format("make \"{}\": {}", *place, error.message()));
  }
  const auto volumes = co_await refresh_volumes();
  if (!volumes) {
    record_event(nullptr, "Warning", "FailedMount", volumes.error().message);
    co_return volumes;
  }
  auto config = sandbox_config(*pod_, places_);
  config.memory_volumes = volumes_.memory;
  std::ofstream(config.hosts_file) << "127.0.0.1\tlocalhost\n";
  std::ofstream(config.resolv_conf_file) << context_.resolv_conf(*pod_);
  sandbox_known_ = true;
  const auto made = co_await context_.runtime.run_sandbox(std::move(config));
  if (!made) {
    sandbox_known_ = false;
    record_event(nullptr,
                 "Warning",
                 "FailedCreatePodSandBox",
                 fmt::format("Failed to create pod sandbox: {}", made.error().message));
    co_return fail(made.error());
  }
  state_.sandbox_ready = true;
  state_.pod_ip = made->address.empty() ? context_.host_ip : made->address;
  sandbox_failures_ = 0;
  write_names();
  open_host_ports();
  co_return Result<void>();
}

/// In place: the file is mounted into containers that may run already.
void PodWorker::write_names() {
  std::ofstream(places_.run + "/hosts") << hosts_file(*pod_, state_.pod_ip);
}

/// hostPort as a port of this machine that leads to the pod's. TCP only.
void PodWorker::open_host_ports() {
  host_ports_.clear();
  if (state_.pod_ip == context_.host_ip) return;
  for (const auto& container : json::as_array(at(*pod_, "spec", "containers"))) {
    for (const auto& port : json::as_array(at(container, "ports"))) {
      const auto number = json::as_int(at(port, "hostPort"));
      if (number == 0 || json::as_string(at(port, "protocol"), "TCP") != "TCP") continue;
      ProxyPorts ports;
      ports.listen_address = text(at(port, "hostIP"));
      if (ports.listen_address.empty()) ports.listen_address = "0.0.0.0";
      ports.listen_port = static_cast<int>(number);
      ports.target_address = state_.pod_ip;
      ports.target_port = static_cast<int>(json::as_int(at(port, "containerPort")));
      auto proxy = std::make_unique<TcpProxy>(context_.loop);
      const auto opened = proxy->start(std::move(ports));
      if (!opened)
        record_event(nullptr,
                     "Warning",
                     "HostPortConflict",
                     fmt::format("Cannot open host port {}: {}", number, opened.error().message));
      host_ports_.push_back(std::move(proxy));
    }
  }
}

/// After a resize: what runs gets the limits that the spec now has.
Task<void> PodWorker::apply_limits() {
  limits_stale_ = false;
  const auto pod = pod_;
  for (auto* records : {&state_.inits, &state_.containers, &state_.ephemerals}) {
    for (auto& record : *records) {
      if (!record.running()) continue;
      const auto applied = co_await context_.runtime.update_limits(
          uid_, record.current->id, container_limits(spec_of(record)));
      if (!applied)
        log::warn("agent",
                  "resize of container {} of pod {}: {}",
                  record.name,
                  uid_,
                  applied.error().message);
    }
  }
}

// ---- containers
// -----------------------------------------------------------------------------------------

Task<Result<ContainerConfig>> PodWorker::container_config(const ContainerRecord& record,
                                                          const json::Value& spec) {
  const auto image = context_.images.find(text(at(spec, "image")));
  EnvList first = default_env(context_, *pod_, spec);
  for (const auto& item : service_env(context_, *pod_)) first.push_back(item);
  for (const auto& item : image.env) first.push_back(item);
  const auto gpus = gpu_share(context_.gpus, *pod_, spec);
  if (!gpus) co_return fail(gpus.error());
  const bool real_gpus = !context_.gpu_minors.empty() && !gpus->empty() && has_real_gpus();
  const auto gpu_names = gpu_env(*gpus, real_gpus);
  first.insert(first.end(), gpu_names.begin(), gpu_names.end());
  const auto env = container_env(*pod_, spec, facts(), objects_, first);
  if (!env) co_return fail(env.error());
  const auto mounts = container_mounts(spec, volumes_, *env);
  if (!mounts) co_return fail(mounts.error());
  const int attempt = record.current ? record.restarts + 1 : 0;
  auto config = make_container_config(*pod_, spec, image, *env, places_, attempt);
  if (!config) co_return fail(config.error());
  config->mounts = *mounts;
  for (const auto index : *gpus) {
    const auto minor = context_.gpu_minors.find(index);
    if (real_gpus && minor != context_.gpu_minors.end()) config->gpus.push_back(minor->second);
  }
  if (const auto target = text(at(spec, "targetContainerName")); !target.empty()) {
    const auto* record_of = find_container(target);
    if (record_of == nullptr || !record_of->running())
      co_return fail(Code::kUnavailable,
                     fmt::format("target container \"{}\" is not running", target));
    config->joins_processes_of = record_of->current->id;
  }
  config->id = fmt::format("{:016x}{:016x}{:016x}{:016x}",
                           context_.loop.random(),
                           context_.loop.random(),
                           context_.loop.random(),
                           context_.loop.random());
  co_return config;
}

/// GPUs of a simulated node are numbers; the machine's own, if it has any, are not meant.
bool PodWorker::has_real_gpus() const {
  const auto node =
      context_.informers.get(client::resources::kNodes).find(text(at(*pod_, "spec", "nodeName")));
  return node && kube::label(*node, "muster.dev/gpu-simulated").empty();
}

Task<void> PodWorker::start_container(ContainerRecord& record) {
  const auto pod = pod_;  // specs below stay valid whatever update() brings
  const auto& spec = spec_of(record);
  auto config = co_await container_config(record, spec);
  if (!config) {
    const bool first = record.waiting_message != config.error().message;
    record.waiting_reason = "CreateContainerConfigError";
    record.waiting_message = config.error().message;
    record.retry_at = context_.loop.now() + seconds(2);
    objects_.clear();
    const auto refreshed = co_await refresh_volumes();
    if (first)
      record_event(&record, "Warning", "Failed", fmt::format("Error: {}", record.waiting_message));
    if (!refreshed) record.waiting_message = refreshed.error().message;
    co_return;
  }
  record_event(
      &record,
      "Normal",
      "Pulled",
      fmt::format("Container image \"{}\" already present on machine", text(at(spec, "image"))));
  const int attempt = config->attempt;
  const auto started = co_await context_.runtime.start_container(uid_, std::move(*config));
  if (!started) {
    record.waiting_reason = "CreateContainerError";
    record.waiting_message = started.error().message;
    record.retry_at = context_.loop.now() + seconds(5);
    record_event(&record, "Warning", "Failed", fmt::format("Error: {}", started.error().message));
    co_return;
  }
  record_event(&record, "Normal", "Created", fmt::format("Created container {}", record.name));
  if (record.current) {
    record.previous = record.current;
    record.restarts = attempt;
  }
  record.current = *started;
  record.waiting_reason.clear();
  record.waiting_message.clear();
  record.retry_at = Time{};
  if (started->reason == "StartError") {  // it could not be started at all
    record_event(
        &record,
        "Warning",
        "Failed",
        fmt::format("Error: failed to start container \"{}\": {}", record.name, started->message));
    container_ended(record);
    wake();
    co_return;
  }
  record_event(&record, "Normal", "Started", fmt::format("Started container {}", record.name));
  if (started->state == ContainerState::kExited) {  // it has ended already
    container_ended(record);
    wake();
    co_return;
  }
  record.started = at(spec, "startupProbe").is_null();
  record.ready = record.started && at(spec, "readinessProbe").is_null();
  publish();
  if (!at(spec, "lifecycle", "postStart").is_null()) {
    const bool ran = co_await run_hook(record, "postStart", Duration::zero());
    if (!ran && record.running()) {
      record_event(&record, "Warning", "FailedPostStartHook", "PostStartHook failed");
      (void)co_await context_.runtime.stop_container(uid_, record.current->id, grace_left());
    }
  }
  start_probes(shared_from_this(), record.name);
}

Task<bool> PodWorker::run_hook(ContainerRecord& record, std::string hook_name, Duration limit) {
  const auto pod = pod_;
  const auto& hook = at(spec_of(record), "lifecycle", hook_name);
  if (const auto pause = json::as_int(at(hook, "sleep", "seconds")); pause > 0) {
    co_await context_.loop.sleep(seconds(pause));
    co_return true;
  }
  ProbeTarget target;
  target.sandbox_id = uid_;
  target.container_id = record.current->id;
  target.address = state_.pod_ip;
  target.timeout = limit == Duration::zero() ? seconds(3600) : limit;
  const auto result = co_await run_check(context_, hook, spec_of(record), target);
  co_return result.ok;
}

bool PodWorker::stop_all(Duration grace) {
  const auto self = shared_from_this();
  bool main_running = false;
  const auto ask = [&](const ContainerRecord& record) {
    const auto asked = stopping_.find(record.name);
    if (asked != stopping_.end() && asked->second <= grace + seconds(2)) return;
    stopping_[record.name] = grace;
    context_.loop.spawn(stop_container(
        self, record.name, grace, fmt::format("Stopping container {}", record.name)));
  };
  for (const auto& record : state_.containers) {
    if (!record.running()) continue;
    main_running = true;
    ask(record);
  }
  for (const auto& record : state_.ephemerals) {
    if (record.running()) ask(record);
  }
  for (auto record = state_.inits.rbegin(); record != state_.inits.rend(); ++record) {
    if (record->running() && (!record->sidecar || !main_running)) ask(*record);
  }
  return !any_running();
}

Task<void> PodWorker::stop_container(std::shared_ptr<PodWorker> self,
                                     std::string name,
                                     Duration grace,
                                     std::string message) {
  auto* record = find_record(name);
  if (record == nullptr || !record->running()) co_return;
  const auto id = record->current->id;
  record_event(record, "Normal", "Killing", message);
  const auto begun = context_.loop.monotonic();
  if (grace > Duration::zero() && !at(spec_of(*record), "lifecycle", "preStop").is_null()) {
    const bool ran = co_await run_hook(*record, "preStop", grace);
    if (!ran) record_event(record, "Warning", "FailedPreStopHook", "PreStopHook failed");
  }
  const auto used = context_.loop.monotonic() - begun;
  // Two seconds are the least that SIGTERM is worth after a hook that used up everything.
  const auto left = grace == Duration::zero()
                        ? Duration::zero()
                        : std::max<Duration>(
                              grace - used, used > Duration(100000) ? Duration(seconds(2)) : grace);
  (void)co_await context_.runtime.stop_container(uid_, id, left);
}

Task<void> PodWorker::tear_down() {
  host_ports_.clear();
  if (sandbox_known_) (void)co_await context_.runtime.remove_sandbox(uid_);
  sandbox_known_ = false;
  context_.gpus.release(uid_);
  const auto places = places_;
  const auto work = [places] {
    std::error_code ignored;
    fs::remove_all(places.disk, ignored);
    fs::remove_all(places.run, ignored);
  };
  co_await context_.loop.run_on_worker(work);
}

// ---- status
// ---------------------------------------------------------------------------------------------

void PodWorker::publish() {
  if (was_terminal_ || gone_) return;
  changed_ = true;
  if (std::exchange(patching_, true)) return;
  context_.loop.spawn(patch_status(shared_from_this()));
}

Task<void> PodWorker::patch_status(std::shared_ptr<PodWorker> self) {
  int failures = 0;
  while (changed_ && !gone_ && !detached_) {
    changed_ = false;
    auto status = pod_status(*pod_, state_, published_, "process", context_.loop.now());
    auto patch = status_patch(*pod_, published_, status);
    if (patch.is_null()) break;
    const auto ns = std::string(kube::namespace_of(*pod_));
    const auto name = std::string(kube::name_of(*pod_));
    const auto written = co_await context_.client.patch(client::resources::kPods,
                                                        ns,
                                                        name,
                                                        "status",
                                                        client::PatchType::kStrategic,
                                                        std::move(patch));
    if (written) {
      published_ = std::move(status);
      failures = 0;
      continue;
    }
    if (written.error().code == Code::kNotFound || written.error().code == Code::kConflict)
      break;  // deleted, or another pod of the same name
    log::warn("agent", "status of pod {}/{}: {}", ns, name, written.error().message);
    if (++failures > 10) break;
    changed_ = true;
    co_await context_.loop.sleep(std::chrono::milliseconds(100 << std::min(failures, 5)));
  }
  patching_ = false;
  no_longer_starting();
  patched_->notify();
}

Task<void> PodWorker::flush_status() {
  publish();
  while (patching_) co_await patched_->wait(Duration::zero());
}

}  // namespace muster::agent
