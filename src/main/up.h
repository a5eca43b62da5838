/// `muster up`, `muster down`, `muster status`: the embedded cluster as one process.
#pragma once

namespace muster {

int run_up(int argc, char** argv);
int run_down(int argc, char** argv);
int run_status(int argc, char** argv);

}  // namespace muster
