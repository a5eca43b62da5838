/// One job of any kind as lists show it. What filters and sorts look at is a small struct of numbers
/// (Keys), so that a pass over a hundred thousand of them stays in the cache; texts are beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "answers/jobs/facts.h"

namespace muster::portal {

using answers::gpus_of_pod_spec;
using answers::group_of_pod;
using answers::job_facts;
using answers::job_id;
using answers::JobFacts;
using answers::JobKind;
using answers::kind_name;
using answers::kind_of_owner;
using answers::kJobKinds;
using answers::kStates;
using answers::kTaskStates;
using answers::Millis;
using answers::millis_at;
using State = answers::JobState;
using answers::state_name;
using answers::task_facts;
using answers::task_state_name;
using answers::TaskFacts;
using answers::TaskState;

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

/// The place of a job in the index. Reused once the job is gone.
using Slot = std::uint32_t;
/// A text that many jobs share: users, queues, namespaces.
using Word = std::uint32_t;

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

/// What is foretold of a job that waits.
struct Ahead {
  Millis start = 0;        // 0: no estimate
  std::int32_t place = 0;  // in its queue, from 1; 0: not known
  bool operator==(const Ahead&) const = default;
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

}  // namespace muster::portal
