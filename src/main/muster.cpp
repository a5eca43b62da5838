#include <string_view>

#include "agent/process/shim.h"
#include "main/commands.h"

int main(int argc, char** argv) {
  // The processes that hold pods: before anything else has made a thread or opened a file.
  if (argc > 1 && std::string_view(argv[1]) == "agent-shim")
    return muster::agent::shim_main(argc, argv);
  return muster::run_program(argc, argv);
}
