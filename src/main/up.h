/// `muster up`, `muster down`, `muster status`, `muster image`: the embedded cluster as one process.
#pragma once

#include "command/command.h"

namespace muster {

command::Command up_command();
command::Command down_command();
command::Command status_command();
command::Command image_command();

}  // namespace muster
