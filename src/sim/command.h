/// `muster sim`.
#pragma once

#include "command/command.h"

namespace muster::sim {

command::Command sim_command();

}  // namespace muster::sim
