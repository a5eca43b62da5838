#include "kube/pod_end.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::kube {
namespace {

std::string last_line(std::string_view text) {
  text = trim(text);
  const auto end = text.rfind('\n');
  const auto line = trim(end == std::string_view::npos ? text : text.substr(end + 1));
  return std::string(line.substr(0, 200));
}

}  // namespace

std::string how_container_ended(const json::Value& status) {
  const auto& now = json::at(status, "state", "terminated");
  const auto& end = now.is_object() ? now : json::at(status, "lastState", "terminated");
  const auto code = json::int_at(end, "exitCode");
  if (!end.is_object() || code == 0) return "";
  // Shells, and runtimes that know no better, say 128 + signal.
  auto signal = json::int_at(end, "signal");
  if (signal == 0 && code > 128 && code < 128 + 32) signal = code - 128;
  const auto reason = json::text_at(end, "reason");
  std::string out =
      signal > 0 ? fmt::format("killed by signal {}", signal) : fmt::format("exit code {}", code);
  if (!reason.empty() && reason != "Error") out += fmt::format(" ({})", reason);
  const auto line = last_line(json::string_at(end, "message"));
  return line.empty() ? out : out + ": " + line;
}

std::string how_pod_ended(const json::Value& pod) {
  for (const std::string_view list : {"initContainerStatuses", "containerStatuses"}) {
    for (const auto& container : json::array_at(pod, "status", list)) {
      if (auto how = how_container_ended(container); !how.empty()) return how;
    }
  }
  const auto message = last_line(json::string_at(pod, "status", "message"));
  const auto reason = json::text_at(pod, "status", "reason");
  return reason.empty() ? message : message.empty() ? reason : reason + ": " + message;
}

}  // namespace muster::kube
