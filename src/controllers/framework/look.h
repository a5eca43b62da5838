/// One look at one Framework, shared by the two machines: attempts of the Framework (plan.cc) and of
/// its tasks (tasks.cc). The status is a copy that both change; nothing else is remembered.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "controllers/common/plan.h"

namespace muster::controllers::framework {

struct Look {
  const json::Value& framework;
  const View& view;
  Time now;
  Plan& plan;
  json::Value status;
  const json::Value* config_map = nullptr;  // of this attempt
  std::vector<const json::Value*> pods;     // of the attempt's ConfigMap, by name
  std::unordered_map<std::string_view, const json::Value*> pod_by_name;
};

/// nullptr if there is none.
inline const json::Value* find_pod(const Look& look, std::string_view name) {
  const auto found = look.pod_by_name.find(name);
  return found == look.pod_by_name.end() ? nullptr : found->second;
}

namespace states {
inline constexpr std::string_view kCreationPending = "AttemptCreationPending";
inline constexpr std::string_view kCreationRequested = "AttemptCreationRequested";
inline constexpr std::string_view kPreparing = "AttemptPreparing";
inline constexpr std::string_view kRunning = "AttemptRunning";
inline constexpr std::string_view kDeletionPending = "AttemptDeletionPending";
inline constexpr std::string_view kDeletionRequested = "AttemptDeletionRequested";
inline constexpr std::string_view kDeleting = "AttemptDeleting";
inline constexpr std::string_view kAttemptCompleted = "AttemptCompleted";
inline constexpr std::string_view kCompleted = "Completed";
}  // namespace states

/// Of a Framework's or a task's status; the time of the change is kept with it.
void enter(json::Value& status, std::string_view state, Time now);
inline std::string_view state_of(const json::Value& status) {
  return json::string_at(status, "state");
}

}  // namespace muster::controllers::framework
