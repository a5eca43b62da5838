#include "agent/pod/pod_containers.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>

#include "agent/network/services.h"
#include "agent/pod/probes.h"
#include "base/log.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;
using std::chrono::seconds;

constexpr int kBackoffFirst_s = 10;
constexpr int kBackoffMax_s = 300;
constexpr Duration kBackoffReset = seconds(600);  // a container that ran this long starts afresh

}  // namespace

Task<Result<ContainerConfig>> PodContainers::make_config(const ContainerRecord& record,
                                                         const json::Value& spec) {
  const auto image = *record.image;
  EnvList first = default_env(life_.context, *life_.pod, spec, image);
  for (const auto& item : service_env(life_.context, *life_.pod)) first.push_back(item);
  if (image.of_host()) {
    for (const auto& item : life_.context.images.host.env) first.push_back(item);
  }
  for (const auto& item : image.env) first.push_back(item);
  const auto given = sandbox_.take_gpus();
  if (given.kind != GpuAnswer::Kind::kGiven) co_return fail(Code::kUnavailable, given.message);
  const auto gpus = gpu_share(given.indices, *life_.pod, spec);
  const bool real_gpus = !life_.context.machine_gpus.empty() && !gpus.empty() && has_real_gpus();
  const auto gpu_names = gpu_env(gpus, real_gpus);
  first.insert(first.end(), gpu_names.begin(), gpu_names.end());
  auto env = container_env(*life_.pod, spec, life_.facts(), sandbox_.objects(), first);
  if (!env) co_return fail(env.error());
  const auto files = co_await files_of(real_gpus ? gpus : std::vector<int>(), !image.of_host());
  if (!files) co_return fail(files.error());
  add_gpu_env(*files, *env);
  const auto mounts = container_mounts(spec, sandbox_.volumes(), *env);
  if (!mounts) co_return fail(mounts.error());
  const int attempt = record.current ? record.restarts + 1 : 0;
  auto config = make_container_config(*life_.pod, spec, image, *env, life_.places, attempt);
  if (!config) co_return fail(config.error());
  const auto profiled = read_seccomp_profile(life_.context.hidden + "/seccomp", *config);
  if (!profiled) co_return fail(profiled.error());
  config->mounts = *mounts;
  config->mounts.insert(config->mounts.end(), files->mounts.begin(), files->mounts.end());
  config->devices = files->devices;
  config->limits = container_limits(spec, life_.context.pids_max);
  if (const auto target = text(at(spec, "targetContainerName")); !target.empty()) {
    const auto* record_of = life_.find(target);
    if (record_of == nullptr || !record_of->running())
      co_return fail(Code::kUnavailable,
                     fmt::format("target container \"{}\" is not running", target));
    config->joins_processes_of = record_of->current->id;
  }
  config->id = fmt::format("{:016x}{:016x}{:016x}{:016x}",
                           life_.context.loop.random(),
                           life_.context.loop.random(),
                           life_.context.loop.random(),
                           life_.context.loop.random());
  co_return config;
}

/// GPUs of a simulated node are numbers; the machine's own, if it has any, are not meant.
bool PodContainers::has_real_gpus() const {
  const auto node = life_.context.informers.get(client::resources::kNodes)
                        .find(text(at(*life_.pod, "spec", "nodeName")));
  return node && kube::label(*node, kube::names::kGpuSimulated).empty();
}

Task<Result<GpuFiles>> PodContainers::files_of(std::vector<int> indices, bool of_image) {
  auto& context = life_.context;
  GpuFilesWish wish;
  wish.cdi_folders = context.cdi_folders;
  wish.of_image = of_image;
  for (const auto index : indices) {
    const auto known = context.machine_gpus.find(index);
    if (known != context.machine_gpus.end()) wish.gpus.push_back(known->second);
  }
  Result<GpuFiles> out;
  if (wish.gpus.empty()) co_return out;
  const auto work = [&out, &wish] { out = gpu_files(wish); };
  co_await context.loop.run_on_worker(work);
  if (!out) co_return out;
  for (const auto& note : out->notes) {
    if (context.said.insert(note).second) log::warn("agent", "{}", note);
  }
  co_return out;
}

Task<void> PodContainers::start(ContainerRecord& record) {
  const auto pod = life_.pod;  // specs below stay valid whatever update() brings
  const auto& spec = life_.spec_of(record);
  auto config = co_await make_config(record, spec);
  if (!config) {
    const bool first = record.waiting_message != config.error().message;
    record.waiting_reason = "CreateContainerConfigError";
    record.waiting_message = config.error().message;
    record.retry_at = life_.context.loop.now() + seconds(2);
    sandbox_.forget_objects();
    const auto refreshed = co_await sandbox_.refresh_volumes();
    if (first)
      life_.event(&record, "Warning", "Failed", fmt::format("Error: {}", record.waiting_message));
    if (!refreshed) record.waiting_message = refreshed.error().message;
    co_return;
  }
  const int attempt = config->attempt;
  const auto started =
      co_await life_.context.runtime.start_container(life_.uid, std::move(*config));
  life_.start_slot.release();
  if (!started) {
    record.waiting_reason = "CreateContainerError";
    record.waiting_message = started.error().message;
    record.retry_at = life_.context.loop.now() + seconds(5);
    life_.event(&record, "Warning", "Failed", fmt::format("Error: {}", started.error().message));
    co_return;
  }
  life_.event(&record, "Normal", "Created", fmt::format("Created container {}", record.name));
  if (record.current) {
    record.previous = record.current;
    record.restarts = attempt;
  }
  record.current = *started;
  record.image_name = record.image->name;
  record.image_id = record.image->id;
  record.image.reset();  // the next attempt asks anew
  record.waiting_reason.clear();
  record.waiting_message.clear();
  record.retry_at = Time{};
  if (started->reason == "StartError") {  // it could not be started at all
    life_.event(
        &record,
        "Warning",
        "Failed",
        fmt::format("Error: failed to start container \"{}\": {}", record.name, started->message));
    ended(record);
    life_.wake();
    co_return;
  }
  for (const auto& path : started->owners_hidden)
    life_.event(
        &record,
        "Warning",
        "VolumeNotIDMapped",
        fmt::format("Files at \"{}\" show no owners in the pod: their file system cannot map "
                    "them to users of its own",
                    path));
  life_.event(&record, "Normal", "Started", fmt::format("Started container {}", record.name));
  if (started->state == ContainerState::kExited) {  // it has ended already
    ended(record);
    life_.wake();
    co_return;
  }
  record.started = at(spec, "startupProbe").is_null();
  record.ready = record.started && at(spec, "readinessProbe").is_null();
  status_.publish();
  if (!at(spec, "lifecycle", "postStart").is_null()) {
    const bool ran = co_await run_hook(record, "postStart", Duration::zero());
    if (!ran && record.running()) {
      life_.event(&record, "Warning", "FailedPostStartHook", "PostStartHook failed");
      (void)co_await life_.context.runtime.stop_container(
          life_.uid, record.current->id, life_.grace_left());
    }
  }
  start_probes(*this, record.name);
}

Task<bool> PodContainers::run_hook(ContainerRecord& record, std::string hook_name, Duration limit) {
  const auto pod = life_.pod;
  const auto& hook = at(life_.spec_of(record), "lifecycle", hook_name);
  if (const auto pause = json::int_at(hook, "sleep", "seconds"); pause > 0) {
    co_await life_.context.loop.sleep(seconds(pause));
    co_return true;
  }
  ProbeTarget target;
  target.sandbox_id = life_.uid;
  target.container_id = record.current->id;
  target.address = life_.state.pod_ip;
  target.timeout = limit == Duration::zero() ? seconds(3600) : limit;
  const auto result = co_await run_check(life_.context, hook, life_.spec_of(record), target);
  co_return result.ok;
}

bool PodContainers::stop_all(Duration grace) {
  bool main_running = false;
  const auto ask = [&](const ContainerRecord& record) {
    const auto asked = stopping_.find(record.name);
    if (asked != stopping_.end() && asked->second <= grace + seconds(2)) return;
    stop_soon(record.name, grace, fmt::format("Stopping container {}", record.name));
  };
  for (const auto& record : life_.state.containers) {
    if (!record.running()) continue;
    main_running = true;
    ask(record);
  }
  for (const auto& record : life_.state.ephemerals) {
    if (record.running()) ask(record);
  }
  for (auto record = life_.state.inits.rbegin(); record != life_.state.inits.rend(); ++record) {
    if (record->running() && (!record->sidecar || !main_running)) ask(*record);
  }
  return !life_.any_running();
}

void PodContainers::stop_soon(const std::string& name, Duration grace, std::string message) {
  stopping_[name] = grace;
  life_.context.loop.spawn(stop(life_.keep(), name, grace, std::move(message)));
}

Task<void> PodContainers::stop(std::shared_ptr<void> keep,
                               std::string name,
                               Duration grace,
                               std::string message) {
  auto* record = life_.find(name);
  if (record == nullptr || !record->running()) co_return;
  const auto id = record->current->id;
  life_.event(record, "Normal", "Killing", message);
  const auto begun = life_.context.loop.monotonic();
  if (grace > Duration::zero() && !at(life_.spec_of(*record), "lifecycle", "preStop").is_null()) {
    const bool ran = co_await run_hook(*record, "preStop", grace);
    if (!ran) life_.event(record, "Warning", "FailedPreStopHook", "PreStopHook failed");
  }
  const auto used = life_.context.loop.monotonic() - begun;
  // Two seconds are the least that SIGTERM is worth after a hook that used up everything.
  const auto left = grace == Duration::zero()
                        ? Duration::zero()
                        : std::max<Duration>(
                              grace - used, used > Duration(100000) ? Duration(seconds(2)) : grace);
  (void)co_await life_.context.runtime.stop_container(life_.uid, id, left);
}

/// Decides when the next attempt may start. The first comes at once, later ones after 10 s, 20 s …
/// 5 min.
void PodContainers::ended(ContainerRecord& record) {
  const auto now = life_.context.loop.now();
  stopping_.erase(record.name);
  record.ready = false;
  if (!record.sidecar) record.started = false;
  auto& ended = *record.current;
  const auto& spec = life_.spec_of(record);
  // Wakes those who follow the log, who watch the folder. A file of that name need not be there: it may
  // just have been turned over.
  if (utimensat(
          AT_FDCWD, log_path(life_.places.disk, record.name, ended.attempt).c_str(), nullptr, 0) !=
      0)
    utimensat(AT_FDCWD, life_.places.disk.c_str(), nullptr, 0);
  if (ended.message.empty())
    ended.message = termination_message(spec,
                                        life_.places,
                                        record.name,
                                        log_path(life_.places.disk, record.name, ended.attempt),
                                        ended.exit_code);
  if (life_.terminal || life_.gone || kube::is_deleting(*life_.pod)) return;
  if (!restarts_after_exit(json::as_string(at(*life_.pod, "spec", "restartPolicy"), "Always"),
                           record))
    return;
  if (ended.finished - ended.started > kBackoffReset) record.backoff_s = 0;
  if (record.backoff_s == 0) {
    record.backoff_s = kBackoffFirst_s;
    record.retry_at = now;
    return;
  }
  record.retry_at = now + seconds(record.backoff_s);
  const auto pod_text = fmt::format(
      "{}_{}({})", kube::name_of(*life_.pod), kube::namespace_of(*life_.pod), life_.uid);
  record.waiting_reason = "CrashLoopBackOff";
  const auto minutes = record.backoff_s / 60;
  const auto span = minutes > 0 ? fmt::format("{}m{}s", minutes, record.backoff_s % 60)
                                : fmt::format("{}s", record.backoff_s);
  record.waiting_message =
      fmt::format("back-off {} restarting failed container={} pod={}", span, record.name, pod_text);
  life_.event(
      &record,
      "Warning",
      "BackOff",
      fmt::format("Back-off restarting failed container {} in pod {}", record.name, pod_text));
  record.backoff_s = std::min(record.backoff_s * 2, kBackoffMax_s);
}

}  // namespace muster::agent
