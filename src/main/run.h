/// `muster run`: scheduler and job controllers for the cluster of a kubeconfig.
#pragma once

#include "command/command.h"

namespace muster {

command::Command run_command();

}  // namespace muster
