/// TFJob, kubeflow.org/v1.
#pragma once

#include "controllers/common/training.h"

namespace muster::controllers::tfjob {

const TrainingKind& kind();
inline Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now) {
  return kind().plan(job, view, settings, now);
}

}  // namespace muster::controllers::tfjob
