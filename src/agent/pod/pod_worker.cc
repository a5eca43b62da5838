#include "agent/pod/pod_worker.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "agent/node/node_address.h"
#include "agent/pod/pod_recall.h"
#include "agent/pod/probes.h"
#include "base/log.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::at;
using json::text;
using std::chrono::seconds;

constexpr std::size_t kEphemeralsMax = 64;
/// Volumes that could not be brought up to date: the API server did not answer.
constexpr Duration kRefreshAgain = seconds(2);

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
    : life_(context, std::move(pod)),
      on_finished_(std::move(on_finished)),
      status_(life_),
      sandbox_(life_),
      images_(life_, status_),
      containers_(life_, sandbox_, status_) {
  recall_containers(adopted);
}

void PodWorker::recall_containers(const std::optional<SandboxStatus>& adopted) {
  const auto& status = at(*life_.pod, "status");
  const auto node = life_.context.informers.get(client::resources::kNodes)
                        .find(text(at(*life_.pod, "spec", "nodeName")));
  life_.state.host_ip = node ? node_address(*node, life_.context.host_ip) : life_.context.host_ip;
  if (const auto time = parse_time(json::string_at(status, "startTime")); time)
    life_.state.start_time = *time;
  for (const bool init : {true, false}) {
    auto& records = init ? life_.state.inits : life_.state.containers;
    for (const auto& container :
         json::array_at(*life_.pod, "spec", init ? "initContainers" : "containers")) {
      ContainerRecord record;
      record.name = text(at(container, "name"));
      record.init = init;
      record.sidecar = init && json::string_at(container, "restartPolicy") == "Always";
      for (const auto& item :
           json::array_at(status, init ? "initContainerStatuses" : "containerStatuses")) {
        if (json::string_at(item, "name") == record.name)
          recall(record, item, life_.context.loop.now());
      }
      records.push_back(std::move(record));
    }
  }
  life_.state.ephemerals.reserve(kEphemeralsMax);  // records are referred to while more are added
  add_ephemerals();
  if (!adopted) return;
  sandbox_.adopt();
  // Its volumes and tokens are known to nobody yet: containers that are still to start need them, and
  // tokens run out.
  volumes_stale_ = true;
  life_.state.sandbox_ready = adopted->alive;
  life_.state.pod_ip = adopted->address.empty() ? life_.context.host_ip : adopted->address;
  for (const auto& container : adopted->containers) {
    auto* record = life_.find(container.name);
    if (record == nullptr) continue;
    if (record->current && record->current->id != container.id) record->previous = record->current;
    record->current = container;
    record->restarts = container.attempt;
    record->started = record->ready = container.state == ContainerState::kRunning;
  }
}

void PodWorker::add_ephemerals() {
  for (const auto& container : json::array_at(*life_.pod, "spec", "ephemeralContainers")) {
    const auto name = text(at(container, "name"));
    if (life_.find(name) != nullptr || life_.state.ephemerals.size() == kEphemeralsMax) continue;
    ContainerRecord record;
    record.name = name;
    record.ephemeral = true;
    for (const auto& item : json::array_at(*life_.pod, "status", "ephemeralContainerStatuses")) {
      if (json::string_at(item, "name") == name) recall(record, item, life_.context.loop.now());
    }
    life_.state.ephemerals.push_back(std::move(record));
  }
}

void PodWorker::start() {
  life_.owner = weak_from_this();
  if (life_.state.sandbox_ready) sandbox_.open_ports();
  for (auto* records : {&life_.state.inits, &life_.state.containers, &life_.state.ephemerals}) {
    for (auto& record : *records) {
      if (record.running()) start_probes(containers_, record.name);
    }
  }
  status_.begin();
  life_.context.loop.spawn(run());
}

void PodWorker::update(client::ObjectPtr pod) {
  const bool labels_changed =
      !json::equal(at(*life_.pod, "metadata", "labels"), at(*pod, "metadata", "labels")) ||
      !json::equal(at(*life_.pod, "metadata", "annotations"), at(*pod, "metadata", "annotations"));
  if (json::int_at(*life_.pod, "metadata", "generation") !=
      json::int_at(*pod, "metadata", "generation"))
    limits_stale_ = true;
  life_.pod = std::move(pod);
  if (kube::is_deleting(*life_.pod)) life_.context.gpus.leave(life_.uid);
  add_ephemerals_wanted_ = true;
  if (labels_changed) volumes_stale_ = true;
  life_.wake();
}

void PodWorker::removed() {
  life_.gone = true;
  life_.context.gpus.leave(life_.uid);
  life_.wake();
}

void PodWorker::evict(const std::string& message) {
  if (ended() || kube::is_deleting(*life_.pod)) return;
  life_.event(nullptr, "Warning", "Evicted", message);
  life_.end("Evicted", message);
  killed_at_once_ = true;
  life_.wake();
}

void PodWorker::detach() {
  life_.detached = true;
  sandbox_.close_ports();
  life_.wake();
}

void PodWorker::object_changed(const ObjectRef& ref) {
  if (!sandbox_.objects().contains(ref)) return;
  volumes_stale_ = true;
  life_.wake();
}

void PodWorker::on_event(const RuntimeEvent& event) {
  if (event.container_id.empty()) {  // the whole sandbox is lost
    life_.state.sandbox_ready = false;
    for (auto* records : {&life_.state.inits, &life_.state.containers, &life_.state.ephemerals}) {
      for (auto& record : *records) {
        if (!record.running()) continue;
        record.current->state = ContainerState::kExited;
        record.current->exit_code = 137;
        record.current->reason = "Error";
        record.current->finished = life_.context.loop.now();
        containers_.ended(record);
      }
    }
  } else if (auto* record = life_.find_by_id(event.container_id);
             record != nullptr && record->running()) {
    record->current = event.status;
    containers_.ended(*record);
  }
  life_.wake();
}

// ---------------------------------------------------------------------------------------- the life

Task<void> PodWorker::run() {
  const auto self = shared_from_this();
  while (!finished_ && !life_.detached) {
    const auto pause = co_await sync();
    life_.start_slot.release();
    if (finished_ || life_.detached) break;
    status_.publish();
    status_.rest();
    co_await life_.changed->wait(pause);
  }
  status_.no_longer_starting();
  if (finished_) on_finished_(life_.uid);
}

Task<Duration> PodWorker::sync() {
  if (life_.gone) {
    co_await sandbox_.tear_down();
    finished_ = true;
    co_return Duration::zero();
  }
  if (kube::is_deleting(*life_.pod)) {
    const auto pause = co_await sync_deleting();
    co_return pause;
  }
  if (life_.terminal) {
    const auto pause = co_await sync_terminal();
    co_return pause;
  }
  const auto pause = co_await sync_running();
  co_return pause;
}

Task<Duration> PodWorker::sync_deleting() {
  if (!containers_.stop_all(life_.grace_left())) co_return Duration::zero();
  life_.terminal = true;
  life_.state.terminated = true;
  co_await sandbox_.remove();
  co_await status_.flush();
  if (life_.gone) co_return std::chrono::milliseconds(1);
  client::DeleteOptions options;
  options.grace_s = 0;
  options.uid = life_.uid;
  const auto ns = std::string(kube::namespace_of(*life_.pod));
  const auto name = std::string(kube::name_of(*life_.pod));
  const auto removed =
      co_await life_.context.client.remove(client::resources::kPods, ns, name, options);
  if (!removed && removed.error().code != Code::kNotFound &&
      removed.error().code != Code::kConflict) {
    log::warn("agent", "delete pod {}/{}: {}", ns, name, removed.error().message);
    co_return seconds(1);
  }
  // The informer will say that it is gone; if it has finalizers, that takes as long as it takes.
  co_return seconds(30);
}

Task<Duration> PodWorker::sync_terminal() {
  const auto grace = json::as_int(at(*life_.pod, "spec", "terminationGracePeriodSeconds"), 30);
  if (!containers_.stop_all(killed_at_once_ ? Duration::zero() : Duration(seconds(grace))))
    co_return Duration::zero();
  life_.state.terminated = true;
  co_await sandbox_.remove();
  life_.context.gpus.release(life_.uid);
  if (run_removed_) co_return Duration::zero();
  // Once the API knows how the pod ended, only its logs are of use.
  run_removed_ = true;
  co_await status_.flush();
  const auto places = life_.places;
  const auto work = [places, roots = life_.root_folders()] {
    std::error_code ignored;
    fs::remove_all(places.run, ignored);
    for (const auto& root : roots) fs::remove_all(root, ignored);
    for (fs::directory_iterator item(places.disk, ignored), end; !ignored && item != end;
         item.increment(ignored)) {
      std::error_code one;
      if (item->is_directory(one)) fs::remove_all(item->path(), one);
    }
  };
  const auto slot = co_await life_.context.removal_slots.take();
  if (!life_.detached) co_await life_.context.loop.run_on_worker(work);
  co_return Duration::zero();
}

Task<Duration> PodWorker::sync_running() {
  const auto now = life_.context.loop.now();
  if (!life_.state.start_time) life_.state.start_time = now;
  Duration pause{0};
  if (const auto limit = json::int_at(*life_.pod, "spec", "activeDeadlineSeconds"); limit > 0) {
    const auto deadline = life_.state.start_time + seconds(limit);
    if (now >= deadline) {
      life_.end("DeadlineExceeded",
                "Pod was active on the node longer than the specified deadline");
      life_.event(nullptr, "Normal", "DeadlineExceeded", life_.state.message);
      co_return std::chrono::milliseconds(1);
    }
    pause = until(deadline, now);
  }
  if (!life_.state.sandbox_ready) {
    if (now < sandbox_.retry_at()) co_return sooner(pause, until(sandbox_.retry_at(), now));
    if (!sandbox_.admit())
      co_return life_.terminal ? Duration(std::chrono::milliseconds(1))
                               : sooner(pause, until(sandbox_.retry_at(), now));
    life_.start_slot = co_await life_.context.start_slots.take();
    if (life_.over()) co_return std::chrono::milliseconds(1);
    const auto made = co_await sandbox_.make();
    if (!made) co_return sooner(pause, until(sandbox_.retry_at(), life_.context.loop.now()));
  } else if (volumes_stale_ || (sandbox_.renew_at() && sandbox_.renew_at() <= now)) {
    volumes_stale_ = false;
    const auto refreshed = co_await sandbox_.refresh_volumes();
    if (!refreshed) {
      log::warn("agent", "pod {}: {}", life_.uid, refreshed.error().message);
      volumes_stale_ = true;
      pause = sooner(pause, kRefreshAgain);
      if (!sandbox_.knows_volumes()) co_return pause;
    }
  }
  if (const auto renew = sandbox_.renew_at(); renew)
    pause = sooner(pause, until(renew, life_.context.loop.now()));
  if (life_.gone || kube::is_deleting(*life_.pod)) co_return std::chrono::milliseconds(1);
  if (std::exchange(limits_stale_, false)) co_await sandbox_.apply_limits();
  // Not in update(): that may come while a reference to a record is held across an await.
  if (std::exchange(add_ephemerals_wanted_, false)) add_ephemerals();
  for (auto& record : life_.state.ephemerals) {
    const auto container_pause = co_await sync_container(record);
    pause = sooner(pause, container_pause);
  }
  bool blocked = false;
  const auto init_pause = co_await sync_inits(blocked);
  pause = sooner(pause, init_pause);
  if (!blocked) {
    for (auto& record : life_.state.containers) {
      const auto container_pause = co_await sync_container(record);
      pause = sooner(pause, container_pause);
    }
  }
  const auto phase = phase_of(*life_.pod, life_.state);
  if (phase == "Succeeded" || phase == "Failed") {
    life_.end(life_.state.reason, life_.state.message);
    co_return std::chrono::milliseconds(1);
  }
  co_return pause;
}

/// Init containers one after the other; a sidecar only has to be started before the next.
Task<Duration> PodWorker::sync_inits(bool& blocked) {
  Duration pause{0};
  for (auto& record : life_.state.inits) {
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
  const auto now = life_.context.loop.now();
  const auto policy = json::as_string(at(*life_.pod, "spec", "restartPolicy"), "Always");
  if (record.exited() && !restarts_after_exit(policy, record)) co_return Duration::zero();
  if (now < record.retry_at) co_return until(record.retry_at, now);
  const bool has_image = co_await images_.find(record);
  if (!has_image) co_return Duration::zero();
  co_await containers_.start(record);
  co_return record.retry_at > life_.context.loop.now()
      ? until(record.retry_at, life_.context.loop.now())
      : Duration::zero();
}

}  // namespace muster::agent
