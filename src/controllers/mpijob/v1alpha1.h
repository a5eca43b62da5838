/// MPIJob, kubeflow.org/v1alpha1, as arena submits it: workers are a StatefulSet, the launcher is a
/// batch Job that starts when all workers are ready. No conditions: status.launcherStatus says
/// Active, Succeeded or Failed.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::mpijob::v1alpha1 {

Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::mpijob::v1alpha1
