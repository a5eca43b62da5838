/// `muster run`: scheduler and job controllers of a real Kubernetes cluster.
#pragma once

namespace muster {

int run_run(int argc, char** argv);

}  // namespace muster
