#include "main/commands.h"

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "answers/score.h"
#include "cli/cli.h"
#include "command/dispatch.h"
#include "main/hived_serve.h"
#include "main/run.h"
#include "main/up.h"
#include "pai/runtime/init.h"
#include "sim/command.h"

namespace muster {
namespace {

std::string name_of(const char* path) {
  const std::string name(path == nullptr ? "muster" : path);
  const std::string last = name.substr(name.rfind('/') + 1);
  const bool known =
      last == "arena" || last == "kubectl" || last == "paictl" || last == "paictl.py";
  return known ? last : "muster";
}

/// One of them runs a service and so is made here, not with those for people.
command::Command hived_command() {
  command::Command hived = cli::hived_command();
  hived.children.push_back(hived_serve_command());
  return hived;
}

/// The simulator knows no forecasts, and those who make them know the simulator.
std::string score_forecasts(const sim::Scoring& scoring, bool as_json) {
  answers::ScoreSettings settings;
  settings.told = scoring.policy.durations_known ? answers::Told::kAll : answers::Told::kNone;
  settings.every = scoring.every;
  settings.draws = scoring.draws;
  const auto cpu_seconds = [] {
    timespec spent{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    return static_cast<double>(spent.tv_sec) + static_cast<double>(spent.tv_nsec) / 1e9;
  };
  const answers::Score score =
      answers::score(scoring.jobs, scoring.nodes, scoring.policy, settings, cpu_seconds);
  if (!as_json) return answers::score_table(score);
  json::Object figures = answers::score_json(score).as_object();
  figures["policy"] = scoring.policy.name;
  return json::dump(figures);
}

/// The commands of clusters as a whole. More are added as a line here.
command::Section clusters_section() {
  return {.title = "Clusters",
          .manual_title = "CLUSTER COMMANDS",
          .commands = {up_command(),
                       down_command(),
                       status_command(),
                       backup_command(),
                       restore_command(),
                       image_command(),
                       run_command(),
                       hived_command(),
                       cli::pai_command(),
                       pai::runtime_command(),
                       sim::sim_command(score_forecasts)},
          .strict = true};
}

}  // namespace

command::Program make_program(std::string name) {
  return {std::move(name),
          "runs training jobs on shared GPUs",
          {cli::jobs_section(), clusters_section()}};
}

int run_program(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  std::string name = name_of(argc > 0 ? argv[0] : nullptr);
  if (name == "kubectl") return cli::run_as_kubectl(words);
  if (name.starts_with("paictl")) return command::run(cli::paictl_program(std::move(name)), words);
  return command::run(make_program(std::move(name)), words);
}

}  // namespace muster
