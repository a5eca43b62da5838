/// `muster pai-runtime init`: the init container of a task of OpenPAI's. It waits until every task of
/// a gang has its address (the framework barrier), then writes what the task's container runs.
#pragma once

#include "command/command.h"

namespace muster::pai {

command::Command runtime_command();

}  // namespace muster::pai
