/// `muster hived serve`: HiveD's scheduler extender and inspect API, for a cluster that keeps its
/// kube-scheduler.
#pragma once

#include "command/command.h"

namespace muster {

command::Command hived_serve_command();

}  // namespace muster
