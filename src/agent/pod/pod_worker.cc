#include "agent/pod/pod_worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "agent/node/node_address.h"
#include "agent/pod/pod_recall.h"
#include "agent/pod/probes.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::at;
using json::text;
using std::chrono::seconds;

constexpr std::size_t kEphemeralsMax = 64;

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
      host_ports_(context.loop),
      published_(at(*pod_, "status")),
      wake_(context.loop.make_signal()),
      patched_(context.loop.make_signal()) {
  const auto& status = at(*pod_, "status");
  const auto node =
      context_.informers.get(client::resources::kNodes).find(text(at(*pod_, "spec", "nodeName")));
  state_.host_ip = node ? node_address(*node, context_.host_ip) : context_.host_ip;
  if (const auto time = parse_time(json::string_at(status, "startTime")); time)
    state_.start_time = *time;
  for (const bool init : {true, false}) {
    auto& records = init ? state_.inits : state_.containers;
    for (const auto& container :
         json::array_at(*pod_, "spec", init ? "initContainers" : "containers")) {
      ContainerRecord record;
      record.name = text(at(container, "name"));
      record.init = init;
      record.sidecar = init && json::string_at(container, "restartPolicy") == "Always";
      for (const auto& item :
           json::array_at(status, init ? "initContainerStatuses" : "containerStatuses")) {
        if (json::string_at(item, "name") == record.name) recall(record, item, context_.loop.now());
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
  for (const auto& container : json::array_at(*pod_, "spec", "ephemeralContainers")) {
    const auto name = text(at(container, "name"));
    if (find_record(name) != nullptr || state_.ephemerals.size() == kEphemeralsMax) continue;
    ContainerRecord record;
    record.name = name;
    record.ephemeral = true;
    for (const auto& item : json::array_at(*pod_, "status", "ephemeralContainerStatuses")) {
      if (json::string_at(item, "name") == name) recall(record, item, context_.loop.now());
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
  if (json::int_at(*pod_, "metadata", "generation") != json::int_at(*pod, "metadata", "generation"))
    limits_stale_ = true;
  pod_ = std::move(pod);
  if (kube::is_deleting(*pod_)) context_.gpus.leave(uid_);
  add_ephemerals_wanted_ = true;
  if (labels_changed) volumes_stale_ = true;
  wake();
}

void PodWorker::removed() {
  gone_ = true;
  context_.gpus.leave(uid_);
  wake();
}

void PodWorker::end(std::string reason, std::string message) {
  state_.reason = std::move(reason);
  state_.message = std::move(message);
  terminal_ = true;
  context_.gpus.leave(uid_);
}

void PodWorker::evict(const std::string& message) {
  if (ended() || kube::is_deleting(*pod_)) return;
  record_event(nullptr, "Warning", "Evicted", message);
  end("Evicted", message);
  killed_at_once_ = true;
  wake();
}

void PodWorker::detach() {
  detached_ = true;
  host_ports_.close();
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
  for (const auto& container : json::array_at(*pod_, "spec", record.list())) {
    if (json::string_at(container, "name") == record.name) return container;
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
        *pod_, fmt::format("spec.{}{{{}}}", record->list(), record->name), type, reason, message);
  }
}

// ---------------------------------------------------------------------------------------- the life

Task<void> PodWorker::run() {
  const auto self = shared_from_this();
  while (!finished_ && !detached_) {
    const auto pause = co_await sync();
    start_slot_.release();
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
  host_ports_.close();
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
  const auto grace = json::as_int(at(*pod_, "spec", "terminationGracePeriodSeconds"), 30);
  if (!stop_all(killed_at_once_ ? Duration::zero() : Duration(seconds(grace))))
    co_return Duration::zero();
  state_.terminated = true;
  host_ports_.close();
  if (sandbox_known_) {
    (void)co_await context_.runtime.remove_sandbox(uid_);
    sandbox_known_ = state_.sandbox_ready = false;
  }
  context_.gpus.release(uid_);
  if (run_removed_) co_return Duration::zero();
  // Once the API knows how the pod ended, only its logs are of use.
  run_removed_ = true;
  co_await flush_status();
  const auto places = places_;
  const auto work = [places] {
    std::error_code ignored;
    fs::remove_all(places.run, ignored);
    for (fs::directory_iterator item(places.disk, ignored), end; !ignored && item != end;
         item.increment(ignored)) {
      std::error_code one;
      if (item->is_directory(one)) fs::remove_all(item->path(), one);
    }
  };
  if (!detached_) co_await context_.loop.run_on_worker(work);
  co_return Duration::zero();
}

Task<Duration> PodWorker::sync_running() {
  const auto now = context_.loop.now();
  if (!state_.start_time) state_.start_time = now;
  Duration pause{0};
  if (const auto limit = json::int_at(*pod_, "spec", "activeDeadlineSeconds"); limit > 0) {
    const auto deadline = state_.start_time + seconds(limit);
    if (now >= deadline) {
      end("DeadlineExceeded", "Pod was active on the node longer than the specified deadline");
      record_event(nullptr, "Normal", "DeadlineExceeded", state_.message);
      co_return std::chrono::milliseconds(1);
    }
    pause = until(deadline, now);
  }
  if (!state_.sandbox_ready) {
    if (now < retry_sandbox_at_) co_return sooner(pause, until(retry_sandbox_at_, now));
    if (!admit())
      co_return terminal_ ? Duration(std::chrono::milliseconds(1))
                          : sooner(pause, until(retry_sandbox_at_, now));
    start_slot_ = co_await context_.start_slots.take();
    if (detached_ || gone_ || kube::is_deleting(*pod_)) co_return std::chrono::milliseconds(1);
    const auto made = co_await make_sandbox();
    if (!made) {
      retry_sandbox_at_ =
          context_.loop.now() +
          std::min<Duration>(seconds(1 << std::min(sandbox_failures_++, 6)), seconds(60));
      co_return sooner(pause, until(retry_sandbox_at_, context_.loop.now()));
    }
  } else if (volumes_stale_ || (tokens_.renew_at() && tokens_.renew_at() <= now)) {
    volumes_stale_ = false;
    const auto refreshed = co_await refresh_volumes();
    if (!refreshed) log::warn("agent", "pod {}: {}", uid_, refreshed.error().message);
  }
  if (const auto renew = tokens_.renew_at(); renew)
    pause = sooner(pause, until(renew, context_.loop.now()));
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
    end(state_.reason, state_.message);
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
  const bool has_image = co_await find_image(record);
  if (!has_image) co_return Duration::zero();
  co_await start_container(record);
  co_return record.retry_at > context_.loop.now() ? until(record.retry_at, context_.loop.now())
                                                  : Duration::zero();
}

// ------------------------------------------------------------------------------------------ status

void PodWorker::publish() {
  if (was_terminal_ || gone_) return;
  changed_ = true;
  if (std::exchange(patching_, true)) return;
  context_.loop.spawn(patch_status(shared_from_this()));
}

Task<void> PodWorker::patch_status(std::shared_ptr<PodWorker> self) {
  int failures = 0;
  while (changed_ && !gone_ && !detached_) {
    auto slot = co_await context_.status_slots.take();
    if (gone_ || detached_) break;
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
    slot.release();
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
