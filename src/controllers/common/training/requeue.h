/// Jobs that want to come back as a whole after they lost a pod to somebody else
/// (kube::names::kOnPreempt), at the place that they had in their queue.
#pragma once

#include "controllers/common/training/pass.h"

namespace muster::controllers {

bool wants_requeue(const json::Value& job);
/// Adds what such a job needs on its pods and groups.
void keep_submission_time(const json::Value& job, json::Value& object);
/// Was this pod taken away by somebody else than its controller?
bool was_preempted(const json::Value& pod);
/// True when the job has lost a pod: the rest goes too, and nothing is made until all of it is gone,
/// so that the gang comes back whole.
bool requeue_whole(Pass& pass);

}  // namespace muster::controllers
