/// PodWorker: one container's way. Its configuration, start, hooks, end, back-off and stop.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>

#include "agent/network/services.h"
#include "agent/pod/pod_worker.h"
#include "agent/pod/probes.h"
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

Task<Result<ContainerConfig>> PodWorker::container_config(const ContainerRecord& record,
                                                          const json::Value& spec) {
  const auto image = *record.image;
  EnvList first = default_env(context_, *pod_, spec, image);
  for (const auto& item : service_env(context_, *pod_)) first.push_back(item);
  if (image.of_host()) {
    for (const auto& item : context_.images.host.env) first.push_back(item);
  }
  for (const auto& item : image.env) first.push_back(item);
  const auto given = take_gpus();
  if (given.kind != GpuAnswer::Kind::kGiven) co_return fail(Code::kUnavailable, given.message);
  const auto gpus = gpu_share(given.indices, *pod_, spec);
  const bool real_gpus = !context_.gpu_minors.empty() && !gpus.empty() && has_real_gpus();
  const auto gpu_names = gpu_env(gpus, real_gpus);
  first.insert(first.end(), gpu_names.begin(), gpu_names.end());
  const auto env = container_env(*pod_, spec, facts(), objects_, first);
  if (!env) co_return fail(env.error());
  const auto mounts = container_mounts(spec, volumes_, *env);
  if (!mounts) co_return fail(mounts.error());
  const int attempt = record.current ? record.restarts + 1 : 0;
  auto config = make_container_config(*pod_, spec, image, *env, places_, attempt);
  if (!config) co_return fail(config.error());
  config->mounts = *mounts;
  config->limits = container_limits(spec, context_.pids_max);
  for (const auto index : gpus) {
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
  return node && kube::label(*node, kube::names::kGpuSimulated).empty();
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
  const int attempt = config->attempt;
  const auto started = co_await context_.runtime.start_container(uid_, std::move(*config));
  start_slot_.release();
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
  record.image_name = record.image->name;
  record.image_id = record.image->id;
  record.image.reset();  // the next attempt asks anew
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
  if (const auto pause = json::int_at(hook, "sleep", "seconds"); pause > 0) {
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

}  // namespace muster::agent
