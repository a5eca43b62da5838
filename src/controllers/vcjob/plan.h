/// Volcano's Job, batch.volcano.sh/v1alpha1: tasks of several shapes that start as one gang.
///
/// The controller makes a PodGroup `<job>-<uid>`, and the pods `<job>-<task>-<i>` once the group
/// has left Pending. What happens to a pod is an event (PodFailed, PodEvicted, TaskCompleted …);
/// the first policy that names it, a task's before the job's, says what to do (RestartJob,
/// TerminateJob …); without one nothing is done and the job ends when its pods have. Phases:
/// Pending, Running, Restarting, Aborting → Aborted, Completing → Completed, Terminating →
/// Terminated, Failed.
///
/// Plugins: env, svc, ssh and pytorch. Commands of the bus (AbortJob, ResumeJob) are taken from the
/// annotation muster.dev/suspend, which `muster suspend` and `muster resume` set.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::vcjob {

Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::vcjob
