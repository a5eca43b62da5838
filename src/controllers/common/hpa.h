/// The HorizontalPodAutoscaler of an elastic job (PyTorchJob, PaddleJob).
#pragma once

#include "controllers/common/training.h"

namespace muster::controllers {

/// Made when elasticPolicy.metrics is given, follows its spec, goes while the job is suspended,
/// stays at its end.
void sync_autoscaler(Pass& pass, bool suspended);

}  // namespace muster::controllers
