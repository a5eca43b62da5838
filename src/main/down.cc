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
#include "main/up.h"

namespace muster {
namespace {

std::string data_dir(const command::Values& values) {
  return values.given("data") ? values.text("data") : default_data_dir();
}

int run_down(command::Call& call) {
  const std::string data = data_dir(call.values);
  const Running running = find_running(data);
  if (running.pid <= 0) {
    fmt::print("no muster runs with the data folder \"{}\"\n", data);
    return 0;
  }
  if (::kill(running.pid, SIGTERM) != 0) {
    return call.failed(
        fmt::format("cannot stop process {}: {}", running.pid, std::strerror(errno)));
  }
  // The folder's lock is free exactly when the process is gone.
  for (int i = 0; i < 3000; ++i) {
    if (find_running(data).pid == 0) {
      fmt::print("muster stopped\n");
      return 0;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return call.failed(
      fmt::format("process {} did not stop within 30 s; see {}/muster.log", running.pid, data));
}

int run_status(command::Call& call) {
  const std::string data = data_dir(call.values);
  const Running running = find_running(data);
  if (running.pid == 0) {
    fmt::print("not running; start it with 'muster up' (data folder \"{}\")\n", data);
    return 1;
  }
  if (running.pid < 0) {
    fmt::print("starting (data folder \"{}\")\n", data);
    return 1;
  }
  fmt::print("running at {} (process {})\n\n  export KUBECONFIG={}/kubeconfig\n",
             running.address,
             running.pid,
             data);
  return 0;
}

command::Command with_data(std::string name, std::string summary, command::Run run) {
  command::Command made;
  made.name = std::move(name);
  made.summary = std::move(summary);
  made.flags = {{.name = "data",
                 .help = "the cluster's folder (default $MUSTER_HOME, else ~/.muster)",
                 .completes = command::Completes::kFiles,
                 .value_name = "FOLDER"}};
  made.run = std::move(run);
  return made;
}

}  // namespace

command::Command down_command() {
  command::Command made = with_data("down", "Stop the cluster that 'muster up' started", run_down);
  made.examples = "  muster down\n";
  return made;
}

command::Command status_command() {
  command::Command made = with_data("status", "Show whether a cluster runs, and where", run_status);
  made.details = "Exits with 0 when it runs, else with 1.";
  made.examples = "  muster status\n";
  return made;
}

}  // namespace muster
