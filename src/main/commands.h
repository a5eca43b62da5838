/// The first word of the command line chooses what runs.
#pragma once

namespace muster {

int run_command(int argc, char** argv);

}  // namespace muster
