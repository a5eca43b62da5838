/// MPIJob, kubeflow.org/v1 (training-operator): launcher and workers are pods, mpirun reaches the
/// workers by kubectl exec.
#pragma once

#include "controllers/common/training.h"

namespace muster::controllers::mpijob::v1 {

const TrainingKind& kind();
inline Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now) {
  return kind().plan(job, view, settings, now);
}
/// Empty, or the first thing wrong with the job, in the operator's words.
std::string validate(const json::Value& job_with_defaults);

}  // namespace muster::controllers::mpijob::v1
