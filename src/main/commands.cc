#include "main/commands.h"

#include <fmt/core.h>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"
#include "main/hived_command.h"
#include "main/run.h"
#include "main/up.h"
#include "sim/command.h"

namespace muster {
namespace {

constexpr std::string_view kVersion = "0.1.0";

struct OwnCommand {
  const char* name;
  const char* summary;
  int (*run)(int argc, char** argv);
};

int run_version(int, char**) {
  fmt::print("muster {} (serves Kubernetes v1.37.0)\n", kVersion);
  return 0;
}

int run_sim(int argc, char** argv) { return sim::run(argc - 1, argv + 1); }

/// The commands of main/. More are added as a line here.
constexpr OwnCommand kCommands[] = {
    {"up", "Start a cluster on this machine", run_up},
    {"down", "Stop it", run_down},
    {"status", "Say whether it runs, and where", run_status},
    {"run", "Be the scheduler and operator of a Kubernetes cluster", run_run},
    {"hived", "Show the cells of HiveD's virtual clusters, or check a new configuration", run_hived},
    {"sim", "Replay a job trace through the scheduling engine", run_sim},
};

/// The other shells' scripts are the command line's own.
constexpr const char* kFish =
    "function __muster_complete\n"
    "  set -l words (commandline -opc) (commandline -ct)\n"
    "  $words[1] __complete -- $words[2..-1] 2>/dev/null\n"
    "end\n"
    "complete -c muster -f -a '(__muster_complete)'\n";

}  // namespace

int run_command(int argc, char** argv) {
  std::vector<cli::CommandInfo> foreign;
  for (const OwnCommand& command : kCommands) foreign.push_back({command.name, command.summary, {}});
  cli::add_foreign_commands(std::move(foreign));
  const std::string word = argc > 1 ? argv[1] : "";
  for (const OwnCommand& command : kCommands) {
    if (word == command.name) return command.run(argc, argv);
  }
  if (word == "completion" && argc == 3 && std::string_view(argv[2]) == "fish") {
    std::fputs(kFish, stdout);
    return 0;
  }
  if (word == "--version" || (word == "version" && !cli::is_command("version"))) return run_version(argc, argv);
  return cli::run(argc, argv);
}

}  // namespace muster
