/// One job of any kind as lists show it. What filters and sorts look at is a small struct of numbers
/// (Keys), so that a pass over a hundred thousand of them stays in the cache; texts are beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::portal {

enum class State : std::uint8_t {
  kWaiting,
  kRunning,
  kStopping,
  kSucceeded,
  kFailed,
  kStopped,
  kSuspended,
};
inline constexpr std::size_t kStates = 7;
std::string_view state_name(State state);  // "WAITING" …

enum class Phase : std::uint8_t {
  kNone,
  kQueued,
  kReserved,
  kMakingRoom,
  kStarting,
  kRunning,
  kRequeued,
};
std::string_view phase_name(Phase phase);

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

/// The place of a job in the index. Reused once the job is gone.
using Slot = std::uint32_t;
/// A text that many jobs share: users, queues, namespaces.
using Word = std::uint32_t;

/// Milliseconds since 1970; 0: none.
using Millis = std::int64_t;

struct Keys {
  Millis submitted = 0, started = 0, ended = 0;
  Word user = 0, vc = 0, queue = 0, ns = 0, prio_class = 0;
  std::int32_t prio = 0;
  std::int32_t gpus = 0;
  std::int32_t tasks_running = 0, tasks_total = 0;
  std::int32_t retries_user = 0, retries_platform = 0;
  State state = State::kWaiting;
  Phase phase = Phase::kNone;
  JobKind kind = JobKind::kPod;
  bool oppo = false;  // runs on what others own, and may be evicted for them
  bool used = false;  // the slot holds a job

  bool operator==(const Keys&) const = default;
};

/// What is known of a wait from what the scheduler wrote down; the engine's own numbers come with
/// the detail of one job.
struct WaitText {
  std::string reason, text;
  bool operator==(const WaitText&) const = default;
};

struct Texts {
  std::string id, name;
  std::vector<std::string> tags;
  WaitText wait;
  std::int32_t exit_code = 0;
  bool has_exit = false;
  std::string exit_phrase;
  bool operator==(const Texts&) const = default;
};

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

}  // namespace muster::portal
