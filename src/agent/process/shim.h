/// `muster agent-shim …`: the processes that hold pods and outlive the agent.
#pragma once

namespace muster::agent {

/// argv as for main, argv[1] == "agent-shim", argv[2] the runtime's directory. First thing in main:
/// nothing may have started threads. Returns once the keeper listens (in the parent) or when it
/// ends (in the keeper).
int shim_main(int argc, char** argv);

}  // namespace muster::agent
