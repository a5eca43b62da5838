#include "agent/hollow/hollow_pods.h"

#include <fmt/core.h>

#include "agent/pod/pod_status.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {
namespace {

using json::at;
constexpr int kWriters = 32;
constexpr Duration kRetryFirst = std::chrono::seconds(1);
constexpr Duration kRetryMost = std::chrono::seconds(30);

Duration annotated(const json::Value& pod, std::string_view key) {
  const auto parsed = parse_duration(kube::annotation(pod, key));
  return parsed ? *parsed : Duration(-1);
}

/// Addresses of nobody: 100.64.0.0/10 is for use inside a provider's network.
std::string hollow_address(std::uint32_t number) {
  const auto address = (100U << 24 | 64U << 16) + 1 + number % 4'194'300U;
  return fmt::format(
      "{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255, address & 255);
}

}  // namespace

json::Value hollow_status(const json::Value& pod,
                          const std::string& address,
                          const std::string& host_ip,
                          Time started,
                          Time finished,
                          bool ended,
                          int exit_code) {
  PodState state;
  state.sandbox_ready = !ended;
  state.pod_ip = address;
  state.host_ip = host_ip;
  state.start_time = started;
  state.terminated = ended;
  for (const bool init : {true, false}) {
    for (const auto& container :
         json::array_at(pod, "spec", init ? "initContainers" : "containers")) {
      ContainerRecord record;
      record.name = json::text_at(container, "name");
      record.init = init;
      record.sidecar = init && json::string_at(container, "restartPolicy") == "Always";
      ContainerStatus status;
      status.name = record.name;
      status.id = fmt::format("{}-{}", kube::uid_of(pod), record.name);
      status.started = started;
      const bool done = ended || (init && !record.sidecar);
      status.state = done ? ContainerState::kExited : ContainerState::kRunning;
      if (done) {
        status.finished = ended ? finished : started;
        status.exit_code = init ? 0 : exit_code;
        status.reason = status.exit_code == 0 ? "Completed" : "Error";
      }
      record.current = status;
      record.started = record.ready = true;
      (init ? state.inits : state.containers).push_back(std::move(record));
    }
  }
  return pod_status(
      pod, state, at(pod, "status"), "hollow", ended ? finished : started, json::shared_memory());
}

HollowPods::HollowPods(Env& env, client::Client& client, std::string host_ip)
    : env_(env), client_(client), host_ip_(std::move(host_ip)), ended_(env.make_signal()) {}

void HollowPods::update(const client::ObjectPtr& pod) {
  const std::string uid(kube::uid_of(*pod));
  const auto [place, added] = pods_.try_emplace(uid);
  auto& hollow = place->second;
  hollow.pod = pod;
  if (added) {
    hollow.number = next_number_++;
    if (kube::pod_finished(*pod)) hollow.phase = Phase::kEnded;
    // Seen by an agent before this one.
    if (json::string_at(*pod, "status", "phase") == "Running") {
      hollow.phase = Phase::kRunning;
      const auto started = parse_time(json::string_at(*pod, "status", "startTime"));
      hollow.started = started ? *started : env_.now();
      if (const auto span = annotated(*pod, kube::names::kHollowDuration); span >= Duration::zero())
        schedule(hollow.started + span, {uid});
    } else if (hollow.phase == Phase::kStarting) {
      enqueue(uid, hollow);
    }
  }
  if (kube::is_deleting(*pod) && hollow.phase != Phase::kStopping && hollow.phase != Phase::kGone) {
    hollow.phase = Phase::kStopping;
    const auto grace =
        std::chrono::seconds(json::as_int(at(*pod, "metadata", "deletionGracePeriodSeconds"), 30));
    const auto wanted = annotated(*pod, kube::names::kHollowStopDuration);
    schedule(env_.now() + std::clamp<Duration>(wanted, Duration::zero(), grace), {uid});
  }
}

void HollowPods::removed(const std::string& uid) { pods_.erase(uid); }

void HollowPods::enqueue(const std::string& uid, Hollow& hollow) {
  if (hollow.queued) return;
  hollow.queued = true;
  queue_.push_back(uid);
  if (writers_ < kWriters) {
    ++writers_;
    env_.spawn(write());
  }
}

void HollowPods::schedule(Time when, Due due) {
  due_.emplace(when.us, std::move(due));
  arm();
}

/// The server did not take the write: after a second, then two, at most thirty.
void HollowPods::try_again(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end() || stopping_) return;
  const int doublings = std::min(found->second.failures++, 5);
  schedule(env_.now() + std::min(kRetryFirst * (1 << doublings), kRetryMost), {uid, true});
}

void HollowPods::arm() {
  if (due_.empty() || (timer_ && timer_at_ <= due_.begin()->first)) return;
  timer_at_ = due_.begin()->first;
  const auto delay = std::max<Duration>(Time{timer_at_} - env_.now(), Duration::zero());
  timer_ = env_.after(delay, [this] { on_timer(); });
}

void HollowPods::on_timer() {
  const auto now = env_.now().us;
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto due = due_.begin()->second;
    due_.erase(due_.begin());
    const auto found = pods_.find(due.uid);
    if (found == pods_.end()) continue;
    auto& hollow = found->second;
    if (!due.again && hollow.phase == Phase::kRunning) hollow.phase = Phase::kEnded;
    if (!due.again && hollow.phase == Phase::kStopping) hollow.phase = Phase::kGone;
    enqueue(due.uid, hollow);
  }
  timer_.reset();
  arm();
}

Task<void> HollowPods::write() {
  while (!queue_.empty() && !stopping_) {
    const auto uid = queue_.front();
    queue_.pop_front();
    co_await write_one(uid);
  }
  --writers_;
  ended_->notify();
}

Task<void> HollowPods::write_one(std::string uid) {
  auto found = pods_.find(uid);
  if (found == pods_.end()) co_return;
  found->second.queued = false;
  const auto pod = found->second.pod;
  const auto phase = found->second.phase;
  bool done = true;
  if (phase == Phase::kGone) {
    done = co_await remove(pod);
  } else if (phase == Phase::kStarting) {
    found->second.started = env_.now();
    done = co_await write_status(uid, pod, false);
  } else if (phase == Phase::kEnded && !kube::pod_finished(*pod)) {
    done = co_await write_status(uid, pod, true);
  }
  if (!done) {
    try_again(uid);
    co_return;
  }
  found = pods_.find(uid);
  if (found == pods_.end()) co_return;
  found->second.failures = 0;
  if (phase != Phase::kStarting || found->second.phase != Phase::kStarting) co_return;
  found->second.phase = Phase::kRunning;
  if (const auto span = annotated(*pod, kube::names::kHollowDuration); span >= Duration::zero())
    schedule(found->second.started + span, {uid});
}

Task<bool> HollowPods::remove(client::ObjectPtr pod) {
  const auto ns = std::string(kube::namespace_of(*pod)), name = std::string(kube::name_of(*pod));
  client::DeleteOptions options;
  options.grace_s = 0;
  options.uid = std::string(kube::uid_of(*pod));
  const auto gone = co_await client_.remove(client::resources::kPods, ns, name, options);
  if (gone || gone.error().code == Code::kNotFound || gone.error().code == Code::kConflict)
    co_return true;
  log::warn("agent", "delete hollow pod {}/{}: {}", ns, name, gone.error().message);
  co_return false;
}

Task<bool> HollowPods::write_status(std::string uid, client::ObjectPtr pod, bool ended) {
  const Hollow& hollow = pods_.at(uid);
  const auto ns = std::string(kube::namespace_of(*pod)), name = std::string(kube::name_of(*pod));
  const int code =
      static_cast<int>(parse_int(kube::annotation(*pod, kube::names::kHollowExitCode)).value_or(0));
  auto status = hollow_status(
      *pod, hollow_address(hollow.number), host_ip_, hollow.started, env_.now(), ended, code);
  auto patch = status_patch(*pod, at(*pod, "status"), std::move(status));
  if (patch.is_null()) co_return true;
  const auto written = co_await client_.patch(client::resources::kPods,
                                              ns,
                                              name,
                                              "status",
                                              client::PatchType::kStrategic,
                                              std::move(patch),
                                              client::Answer::kNone);
  if (written || written.error().code == Code::kNotFound || written.error().code == Code::kConflict)
    co_return true;
  log::warn("agent", "status of hollow pod {}/{}: {}", ns, name, written.error().message);
  co_return false;
}

Task<void> HollowPods::stop() {
  stopping_ = true;
  timer_.reset();
  while (writers_ > 0) co_await ended_->wait(Duration::zero());
}

}  // namespace muster::agent
