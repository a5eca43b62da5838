/// What objects say of jobs, read off their JSON. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace muster::answers {

enum class JobState : std::uint8_t {
  kWaiting,
  kRunning,
  kStopping,
  kSucceeded,
  kFailed,
  kStopped,
  kSuspended,
};
inline constexpr std::size_t kStates = 7;
std::string_view state_name(JobState state);  // "WAITING" …

enum class JobKind : std::uint8_t {
  kOpenPai,
  kPyTorchJob,
  kTFJob,
  kXGBoostJob,
  kPaddleJob,
  kJAXJob,
  kMpiJob,
  kT9kMpiJob,
  kVcJob,
  kJob,
  kPodGroup,
  kPod,
};
inline constexpr std::size_t kJobKinds = 12;
std::string_view kind_name(JobKind kind);  // as in ids: "pytorchjob" …

/// Milliseconds since 1970; 0: none.
using Millis = std::int64_t;

enum class TaskState : std::uint8_t {
  kWaiting,
  kStarting,
  kRunning,
  kStopping,
  kSucceeded,
  kFailed,
};
inline constexpr std::size_t kTaskStates = 6;
std::string_view task_state_name(TaskState state);

/// One pod of a job.
struct TaskFacts {
  std::string pod;  // its name
  std::string uid, role, node, ip, group, reason, exit_phrase;
  std::string prio_class;
  std::vector<std::int16_t> devices;
  std::vector<std::string> containers;
  std::int32_t index = 0, gpus = 0, restarts = 0, exit_code = 0, prio = 0;
  std::int64_t cpu_milli = 0, memory = 0;
  Millis created = 0, scheduled = 0, started = 0, ended = 0;
  Millis expected_end = 0;  // from what the job says of its duration
  TaskState state = TaskState::kWaiting;
  bool has_exit = false, nominated = false, opportunistic = false;
  std::uint64_t version = 0;
};

/// The object of a job, without its pods.
struct JobFacts {
  JobKind kind = JobKind::kPod;
  std::string id, name, ns, uid;
  std::string user, vc, queue, prio_class;
  std::vector<std::string> tags;
  Millis submitted = 0, started = 0, ended = 0;
  Millis run_ended = 0;              // when what began at `started` was over; 0: with the job
  std::int32_t gpus = 0, tasks = 0;  // what the templates ask for
  /// Of HiveD's cells, where the templates ask for those.
  std::optional<std::int32_t> cell_priority;
  std::int32_t retries_user = 0, retries_platform = 0;
  std::int32_t exit_code = 0;
  bool has_exit = false;
  std::string exit_phrase, failure;
  bool deleting = false, suspended = false;
  /// What the object says by itself; absent: its pods tell.
  std::optional<JobState> final_state;
};

/// `kind` of the informer that saw it. A Volcano job that an OpenPAI job became is kOpenPai.
JobFacts job_facts(JobKind kind, const json::Value& object);
TaskFacts task_facts(const json::Value& pod);

/// "ns/kind/name".
std::string job_id(std::string_view ns, JobKind kind, std::string_view name);
/// The kind of job behind an owner's apiVersion and kind; absent: none of ours.
std::optional<JobKind> kind_of_owner(std::string_view api_version, std::string_view kind);

/// "2026-11-16T14:49:26Z" in milliseconds; 0 when absent or wrong.
Millis millis_at(const json::Value& value);
/// The PodGroup that a pod names, of whatever kind; empty: none.
std::string_view group_of_pod(const json::Value& pod);
/// Devices that a pod asks for.
std::int32_t gpus_of_pod_spec(const json::Value& spec);
/// The same in thousandths: a pod may hold a share of one.
std::int64_t gpu_milli_of_pod(const json::Value& pod);

}  // namespace muster::answers
