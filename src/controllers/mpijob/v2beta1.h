/// MPIJob, kubeflow.org/v2beta1 (mpi-operator): workers are pods with sshd, the launcher is a batch
/// Job.
#pragma once

#include "controllers/common/field.h"
#include "controllers/common/plan.h"

namespace muster::controllers::mpijob::v2beta1 {

json::Value with_defaults(const json::Value& job);
/// Of a job with defaults.
Verdict validate(const json::Value& job_with_defaults);
Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::mpijob::v2beta1
