/// Events for pods that cannot start or whose containers fail.
#pragma once

#include "controllers/common/training/pass.h"

namespace muster::controllers {

void report_abnormal_pods(Pass& pass);

}  // namespace muster::controllers
