/// `muster sim`: replays a trace with one or several policies and prints what came of it.
#pragma once

namespace muster::sim {

/// argv[0] is "sim". Returns the exit code.
int run(int argc, char** argv);

}  // namespace muster::sim
