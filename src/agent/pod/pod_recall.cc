#include "agent/pod/pod_recall.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;

std::optional<ContainerStatus> parse_terminated(const json::Value& value,
                                                const std::string& name,
                                                int attempt) {
  if (value.is_null()) return std::nullopt;
  ContainerStatus status;
  status.name = name;
  status.attempt = attempt;
  status.state = ContainerState::kExited;
  status.exit_code = static_cast<int>(json::int_at(value, "exitCode"));
  status.reason = text(at(value, "reason"));
  status.message = text(at(value, "message"));
  const auto id = text(at(value, "containerID"));
  status.id = id.substr(id.find("://") == std::string::npos ? 0 : id.find("://") + 3);
  if (const auto time = parse_time(json::string_at(value, "startedAt")); time)
    status.started = *time;
  if (const auto time = parse_time(json::string_at(value, "finishedAt")); time)
    status.finished = *time;
  return status;
}

}  // namespace

void recall(ContainerRecord& record, const json::Value& status, Time now) {
  record.restarts = static_cast<int>(json::int_at(status, "restartCount"));
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
  // An image that was pulled is known by its digest.
  if (const auto id = text(at(status, "imageID")); id.find("sha256:") != std::string::npos) {
    record.image_name = text(at(status, "image"));
    record.image_id = id;
  }
  record.started = record.sidecar && json::bool_at(status, "started");
}

}  // namespace muster::agent
