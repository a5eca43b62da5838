#include "engine/volcano/session.h"

#include <algorithm>
#include <utility>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/reasons.h"

namespace muster::engine::volcano {

Session::Session(State& state, Memory& memory, Time now)
    : state_(state), memory_(memory), snapshot_(state, now), opinions_(snapshot_) {
  const auto& actions = state.config().volcano.actions;
  has_enqueue_ = std::find(actions.begin(), actions.end(), "enqueue") != actions.end();
}

bool Session::action_flag(std::string_view action, std::string_view key, bool fallback) const {
  for (const VolcanoAction& a : state_.config().volcano.configurations) {
    if (a.name != action) continue;
    for (const auto& [k, v] : a.arguments) {
      if (k == key && (v == "true" || v == "false")) return v == "true";
    }
  }
  return fallback;
}

Plan Session::run() {
  const auto& actions = state_.config().volcano.actions;
  for (auto it = actions.begin(); it != actions.end(); ++it) {
    allocate_follows_ = std::find(std::next(it), actions.end(), "allocate") != actions.end();
    run_action(*it, *this);
  }
  close();
  return std::move(plan_);
}

void Session::tell_binds() {
  for (const TaskIx t : bound_) {
    const PodState& pod = snapshot_.pod_of(t);
    const NodeState& node = state_.node(snapshot_.tasks[t].node);
    Bind b;
    b.pod = pod.key;
    b.uid = pod.uid;
    b.node = node.spec->name;
    for (const auto i : pod.devices) b.devices.push_back(node.devices[i].index);
    b.device_share_milli = state_.cls(pod.cls).share_milli;
    plan_.binds.push_back(std::move(b));
  }
}

void Session::write_phase(const Job& job, bool gangs_whole) {
  GangState& gang = state_.gang(job.gang);
  const std::int32_t running = job.count(Status::kRunning);
  const std::int32_t ended = job.count(Status::kSucceeded) + job.count(Status::kFailed);
  const std::int32_t scheduled = running + ended + job.count(Status::kReleasing);
  const std::int32_t ready = job.ready_tasks() + snapshot_.pending_best_effort(job);
  const bool leaving_whole =
      ready + job.count(Status::kReleasing) >= job.min_member && job.count(Status::kPending) == 0;
  GroupPhase phase = job.phase;
  if (gangs_whole && running > 0 && ready < job.min_member && !leaving_whole) {
    phase = GroupPhase::kUnknown;
  } else if (scheduled >= job.min_member) {
    phase = ended == scheduled ? GroupPhase::kCompleted : GroupPhase::kRunning;
  } else if (phase != GroupPhase::kInqueue) {
    phase = GroupPhase::kPending;
  }
  if (phase == gang.phase) return;
  gang.phase = phase;
  plan_.phases.push_back({gang.key, phase});
}

/// A job that is not let in is when its time is over.
void Session::wake_for(const Job& job) {
  for (const auto& tier : opinions_.tiers()) {
    for (const auto& p : tier) {
      const std::int64_t at = p->deadline_us(job);
      if (at > snapshot_.now.us && (!plan_.wake || at < plan_.wake->us)) plan_.wake = Time{at};
    }
  }
}

void Session::close() {
  for (const Task& task : snapshot_.tasks) {
    // Kept for the rest of the session only: the group is not whole.
    if (task.status == Status::kAllocated) state_.unbind(task.pod);
  }
  tell_binds();
  for (const Evict& e : plan_.evicts) state_.evict(state_.find_pod(e.pod));
  Reasons(*this, memory_).tell_waits();
  const bool gangs_whole = opinions_.has("gang");
  for (const Job& job : snapshot_.jobs) {
    if (!state_.gang(job.gang).has_group) continue;
    write_phase(job, gangs_whole);
    if (state_.gang(job.gang).phase == GroupPhase::kPending) wake_for(job);
  }
}

}  // namespace muster::engine::volcano
