/// `muster up`, `down`, `status`, `image`, `backup`, `restore`: the embedded cluster as one process.
#pragma once

#include "command/command.h"

namespace muster {

command::Command up_command();
command::Command down_command();
command::Command status_command();
command::Command image_command();
command::Command backup_command();
command::Command restore_command();

}  // namespace muster
