/// One look at one Framework, shared by the two machines: attempts of the Framework (plan.cc) and of
/// its tasks (tasks.cc). The status is a copy that both change; nothing else is remembered.
#pragma once

#include <map>
#include <string>

#include "controllers/common/plan.h"

namespace muster::controllers::framework {

struct Look {
  const json::Value& framework;
  const View& view;
  Time now;
  Plan& plan;
  json::Value status;
  const json::Value* config_map = nullptr;         // of this attempt
  std::map<std::string, const json::Value*> pods;  // of the attempt's ConfigMap, by name
};

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
