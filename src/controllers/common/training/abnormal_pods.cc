#include "controllers/common/training/abnormal_pods.h"

#include <fmt/core.h>

namespace muster::controllers {
namespace {

constexpr std::size_t kAbnormalPodsPerPass = 10;

}  // namespace

void report_abnormal_pods(Pass& pass) {
  std::size_t reported = 0;
  for (const auto* pod : pass.pods) {
    if (!is_active(*pod) || reported >= kAbnormalPodsPerPass) continue;
    const auto& status = json::at(*pod, "status");
    const auto& main = json::array_at(status, "containerStatuses");
    const auto& containers = main.empty() ? json::array_at(status, "initContainerStatuses") : main;
    const auto before = pass.plan.events.size();
    for (const auto& container : containers) {
      const auto& terminated = json::at(container, "state", "terminated");
      const auto& waiting = json::at(container, "state", "waiting");
      const auto name = json::string_at(container, "name");
      if (terminated.is_object() && json::int_at(terminated, "exitCode") != 0) {
        pass.event(true,
                   json::text_at(terminated, "reason"),
                   fmt::format("Error pod {} container {} exitCode: {} terminated message: {}",
                               name_of(*pod),
                               name,
                               json::int_at(terminated, "exitCode"),
                               json::string_at(terminated, "message")));
      } else if (!json::string_at(waiting, "message").empty()) {
        pass.event(true,
                   json::text_at(waiting, "reason"),
                   fmt::format("Error pod {} container {} waiting message: {}",
                               name_of(*pod),
                               name,
                               json::string_at(waiting, "message")));
      }
    }
    if (containers.empty()) {
      const json::Value* newest = nullptr;
      for (const auto& condition : json::array_at(status, "conditions")) {
        if (newest == nullptr || json::string_at(*newest, "lastTransitionTime") <
                                     json::string_at(condition, "lastTransitionTime"))
          newest = &condition;
      }
      if (newest != nullptr && json::string_at(*newest, "status") != "True") {
        pass.event(true,
                   json::text_at(*newest, "reason"),
                   fmt::format("Error pod {} condition message: {}",
                               name_of(*pod),
                               json::string_at(*newest, "message")));
      }
    }
    if (pass.plan.events.size() != before) ++reported;
  }
}

}  // namespace muster::controllers
