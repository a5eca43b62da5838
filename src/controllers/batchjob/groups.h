/// Kubernetes' own groups of a Job: one Workload, one PodGroup, made before the first pod.
///
/// A Job that has spec.scheduling is a group. One that has not is none, as in a Kubernetes whose
/// gate WorkloadWithJob is off (its default); a template that names a group itself is left alone.
#pragma once

#include <string>

#include "controllers/common/plan.h"

namespace muster::controllers::batchjob {

struct JobGroup {
  bool wait = false;      ///< The objects are on their way: no pods in this pass.
  std::string pod_group;  ///< What pods name; empty: they name none.
};

/// Adds what is missing, and follows parallelism, in `plan`. `started`: the job has or had pods;
/// then nothing is made.
JobGroup plan_group(const json::Value& job, const View& view, bool started, Plan& plan);

}  // namespace muster::controllers::batchjob
