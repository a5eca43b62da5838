/// All commands as one program.
#pragma once

#include "command/command.h"

namespace muster {

/// Under the name it was called by: "muster", or "arena" through a link.
command::Program make_program(std::string name);

int run_program(int argc, char** argv);

}  // namespace muster
