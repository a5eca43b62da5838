#include "main/commands.h"

#include <string>
#include <vector>

#include "cli/cli.h"
#include "main/hived_command.h"
#include "main/run.h"
#include "main/up.h"
#include "sim/command.h"

namespace muster {
namespace {

struct OwnCommand {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

int run_sim(int argc, char** argv) { return sim::run(argc - 1, argv + 1); }

/// The commands of main/. More are added as a line here.
constexpr OwnCommand kCommands[] = {
    {"up", "Start a cluster on this machine", run_up},
    {"down", "Stop it", run_down},
    {"status", "Say whether it runs, and where", run_status},
    {"run", "Be the scheduler and operator of a Kubernetes cluster", run_run},
    {"hived",
     "Show the cells of HiveD's virtual clusters, or check a new configuration",
     run_hived},
    {"sim", "Replay a job trace through the scheduling engine", run_sim},
};

}  // namespace

int run_command(int argc, char** argv) {
  std::vector<cli::CommandInfo> foreign;
  for (const OwnCommand& command : kCommands)
    foreign.push_back({command.name, command.summary, {}});
  cli::add_foreign_commands(std::move(foreign));
  const std::string word = argc > 1 ? argv[1] : "";
  for (const OwnCommand& command : kCommands) {
    if (word == command.name) return command.run(argc, argv);
  }
  return cli::run(argc, argv);
}

}  // namespace muster
