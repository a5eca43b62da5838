#include "controllers/framework/outcome.h"

#include <fmt/core.h>

#include <functional>

#include "base/md5.h"
#include "base/strings.h"
#include "controllers/common/objects.h"
#include "kube/framework.h"

namespace muster::controllers::framework {
namespace {

namespace completion = kube::completion;

constexpr std::int64_t kDelayLeast_s = 60, kDelayMost_s = 900;

/// The whole pod's reason, when it did not fail by a container's doing.
std::optional<std::int64_t> code_of_reason(const json::Value& pod) {
  const auto reason = json::string_at(pod, "status", "reason");
  if (reason == "Evicted") return completion::kPodEvicted;
  if (reason == "NodeLost") return completion::kPodNodeLost;
  if (reason.starts_with("OutOf") || reason == "UnexpectedAdmissionError")
    return completion::kPodInsufficientResource;
  if (reason == "Preempting") return completion::kPodPreemptedForCriticalPod;
  if (reason == "DeadlineExceeded") return completion::kPodDeadlineExceeded;
  return std::nullopt;
}

json::Array containers_of(const json::Value& pod) {
  json::Array out;
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& each : json::array_at(pod, "status", list)) {
      const json::Value& ended = json::at(each, "state", "terminated");
      if (!ended.is_object()) continue;
      json::Object container{{"name", json::at(each, "name")},
                             {"code", json::int_at(ended, "exitCode")}};
      for (const char* key : {"reason", "message"}) {
        if (!json::string_at(ended, key).empty()) container[key] = json::at(ended, key);
      }
      if (const auto signal = json::int_at(ended, "signal"); signal != 0)
        container["signal"] = signal;
      container["finishedAt"] = json::at(ended, "finishedAt");
      out.push_back(std::move(container));
    }
  }
  return out;
}

/// The code of the container that failed last; the times, which say which that is, are taken off.
std::int64_t code_of_containers(json::Array& containers) {
  std::int64_t code = completion::kPodFailedWithoutFailedContainer;
  std::string last;
  for (json::Value& each : containers) {
    const std::string when = json::text_at(each, "finishedAt");
    each.as_object().erase("finishedAt");
    if (json::int_at(each, "code") == 0) continue;
    if (when < last) continue;
    last = when;
    code = json::string_at(each, "reason") == "OOMKilled" ? completion::kContainerOomKilled
                                                          : json::int_at(each, "code");
  }
  return code;
}

}  // namespace

json::Value completion_status(std::int64_t code, std::string diagnostics) {
  const kube::Completion known = kube::completion_of(code);
  json::Array attributes;
  switch (known.behaviour) {
    case kube::Behaviour::kTransient:
      attributes.push_back("Transient");
      break;
    case kube::Behaviour::kConflict:
      attributes = {"Transient", "Conflict"};
      break;
    case kube::Behaviour::kPermanent:
      attributes.push_back("Permanent");
      break;
    case kube::Behaviour::kSucceeded:
    case kube::Behaviour::kUnknown:
      break;
  }
  return json::Object{
      {"code", code},
      {"phrase", known.phrase},
      {"type",
       json::Object{{"name", code == completion::kSucceeded ? "Succeeded" : "Failed"},
                    {"attributes", std::move(attributes)}}},
      {"diagnostics", std::move(diagnostics)}};
}

json::Value completion_of_pod(const json::Value& pod) {
  json::Array containers = containers_of(pod);
  const std::int64_t of_containers = code_of_containers(containers);
  json::Object seen{{"containers", std::move(containers)}};
  for (const char* key : {"reason", "message"}) {
    if (const auto text = json::string_at(pod, "status", key); !text.empty()) seen[key] = text;
  }
  if (json::string_at(pod, "status", "phase") == "Succeeded") {
    json::Value status = completion_status(completion::kSucceeded, "Pod succeeded");
    status.as_object()["pod"] = std::move(seen);
    return status;
  }
  const std::int64_t code = code_of_reason(pod).value_or(of_containers);
  json::Value status = completion_status(code, "Pod failed: " + json::dump(seen));
  status.as_object()["pod"] = std::move(seen);
  return status;
}

bool ended_by_itself(const json::Value& pod) {
  if (code_of_reason(pod)) return true;
  const Time began =
      time_at(json::at(pod, "metadata", "deletionTimestamp")) -
      std::chrono::seconds(json::int_at(pod, "metadata", "deletionGracePeriodSeconds"));
  bool ended = false;
  for (const json::Value& each : json::array_at(pod, "status", "containerStatuses")) {
    const json::Value& finished = json::at(each, "state", "terminated", "finishedAt");
    if (!finished.is_string() || time_at(finished) >= began) return false;
    ended = true;
  }
  return ended;
}

std::string missing_image(const json::Value& pod) {
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const json::Value& each : json::array_at(pod, "status", list)) {
      const json::Value& waiting = json::at(each, "state", "waiting");
      const auto reason = json::string_at(waiting, "reason");
      const auto said = json::string_at(waiting, "message");
      const bool pulling = reason == "ErrImagePull" || reason == "ImagePullBackOff";
      // The words of containerd and of registries; anything else may be an outage.
      const bool absent = said.find("code = NotFound") != std::string_view::npos ||
                          said.find("manifest unknown") != std::string_view::npos ||
                          said.find(": not found") != std::string_view::npos;
      if (reason == "InvalidImageName" || (pulling && absent))
        return fmt::format("{}: {}", reason, said);
    }
  }
  return {};
}

bool has_succeeded(const json::Value& status) {
  return json::string_at(status, "type", "name") == "Succeeded";
}

Retry decide_retry(const json::Value& policy,
                   const json::Value& policy_status,
                   const json::Value& status,
                   bool delays,
                   const std::string& seed) {
  const auto code = json::int_at(status, "code");
  if (code == completion::kStopFrameworkRequested ||
      code == completion::kFrameworkAttemptCompletion || code == completion::kDeleteTaskRequested)
    return {};
  const bool failed = !has_succeeded(status);
  if (json::bool_at(policy, "fancyRetryPolicy") && failed) {
    const kube::Behaviour behaviour = kube::completion_of(code).behaviour;
    if (behaviour == kube::Behaviour::kConflict && delays) {
      const auto drawn = std::stoull(md5_hex(seed).substr(0, 12), nullptr, 16);
      return {
          true,
          false,
          kDelayLeast_s + static_cast<std::int64_t>(drawn % (kDelayMost_s - kDelayLeast_s + 1))};
    }
    if (behaviour == kube::Behaviour::kTransient || behaviour == kube::Behaviour::kConflict)
      return {true, false, 0};
    if (behaviour == kube::Behaviour::kPermanent) return {};
  }
  const auto most = json::int_at(policy, "maxRetryCount");
  if (most == -2) return {true, true, 0};
  if (!failed) return {};
  if (most == -1 || json::int_at(policy_status, "accountableRetriedCount") < most)
    return {true, true, 0};
  return {};
}

}  // namespace muster::controllers::framework
