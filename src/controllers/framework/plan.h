/// OpenPAI's Framework (frameworkcontroller.microsoft.com/v1): roles of tasks, tried together and
/// tried again as its policies say.
///
/// A Framework is a sequence of attempts, each a ConfigMap that owns the attempt's pods; a task is a
/// sequence of attempts, each a pod. An attempt of the Framework ends when enough of its tasks have
/// failed or succeeded, or when it is told to stop; what still runs is stopped. Pods that ended by
/// themselves stay, so that their logs can be read, until a new attempt needs their names.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::framework {

Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::framework
