#include "portal/jobs/row.h"

#include <array>

namespace muster::portal {

std::string_view state_name(State state) {
  static constexpr std::array<std::string_view, kStates> kNames{
      "WAITING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED", "STOPPED", "SUSPENDED"};
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view phase_name(Phase phase) {
  static constexpr std::array<std::string_view, 7> kNames{
      "", "queued", "reserved", "making-room", "starting", "running", "requeued"};
  return kNames[static_cast<std::size_t>(phase)];
}

std::string_view kind_name(JobKind kind) {
  static constexpr std::array<std::string_view, kJobKinds> kNames{"openpai",
                                                                  "pytorchjob",
                                                                  "tfjob",
                                                                  "xgboostjob",
                                                                  "paddlejob",
                                                                  "jaxjob",
                                                                  "mpijob",
                                                                  "t9kmpijob",
                                                                  "vcjob",
                                                                  "job",
                                                                  "gang",
                                                                  "pod"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view task_state_name(TaskState state) {
  static constexpr std::array<std::string_view, kTaskStates> kNames{
      "WAITING", "STARTING", "RUNNING", "STOPPING", "SUCCEEDED", "FAILED"};
  return kNames[static_cast<std::size_t>(state)];
}

}  // namespace muster::portal
