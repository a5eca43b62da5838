/// `muster down` and `muster status`.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "main/data_dir.h"
#include "main/flags.h"
#include "main/up.h"

namespace muster {
namespace {

constexpr const char* kDownHelp =
    "Stop the cluster that 'muster up' started.\n\nUsage:\n  muster down [--data DIR]\n";
constexpr const char* kStatusHelp =
    "Say whether a cluster runs, and where.\n\nUsage:\n  muster status [--data DIR]\n";

struct Options {
  std::string data = default_data_dir();
  bool help = false;
};

bool parse(int argc, char** argv, const char* command, Options* options) {
  const auto parsed =
      parse_flags(argc, argv, 2, {{"data", &options->data}, {"help", nullptr, &options->help}});
  if (!parsed) fmt::print(stderr, "muster {}: {}\n", command, parsed.error().message);
  return parsed.has_value();
}

}  // namespace

int run_down(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, "down", &options)) return 2;
  if (options.help) {
    std::fputs(kDownHelp, stdout);
    return 0;
  }
  const Running running = find_running(options.data);
  if (running.pid <= 0) {
    fmt::print("no muster runs with the data folder \"{}\"\n", options.data);
    return 0;
  }
  if (::kill(running.pid, SIGTERM) != 0) {
    fmt::print(
        stderr, "muster down: cannot stop process {}: {}\n", running.pid, std::strerror(errno));
    return 1;
  }
  // The folder's lock is free exactly when the process is gone.
  for (int i = 0; i < 3000; ++i) {
    if (find_running(options.data).pid == 0) {
      fmt::print("muster stopped\n");
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  fmt::print(stderr,
             "muster down: process {} did not stop within 30 s; see {}/muster.log\n",
             running.pid,
             options.data);
  return 1;
}

int run_status(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, "status", &options)) return 2;
  if (options.help) {
    std::fputs(kStatusHelp, stdout);
    return 0;
  }
  const Running running = find_running(options.data);
  if (running.pid == 0) {
    fmt::print("not running; start it with 'muster up' (data folder \"{}\")\n", options.data);
    return 1;
  }
  if (running.pid < 0) {
    fmt::print("starting (data folder \"{}\")\n", options.data);
    return 1;
  }
  fmt::print("running at {} (process {})\n\n  export KUBECONFIG={}/kubeconfig\n",
             running.address,
             running.pid,
             options.data);
  return 0;
}

}  // namespace muster
