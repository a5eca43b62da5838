/// The kinds of kubeflow.org/v1 that describe themselves to training.h, each in KIND/plan.cc.
#pragma once

#include "controllers/common/training.h"

namespace muster::controllers {

namespace pytorchjob {
const TrainingKind& kind();
}
namespace tfjob {
const TrainingKind& kind();
}
namespace xgboostjob {
const TrainingKind& kind();
}
namespace paddlejob {
const TrainingKind& kind();
}
namespace jaxjob {
const TrainingKind& kind();
}

/// The kind's plan as the frame calls it.
inline auto plan_with(const TrainingKind& kind) {
  return [&kind](const json::Value& job, const View& view, const Settings& settings, Time now) {
    return kind.plan(job, view, settings, now);
  };
}

}  // namespace muster::controllers
