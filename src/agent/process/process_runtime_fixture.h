/// A process runtime on a folder of its own, and what tests of it ask again and again.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/process/process_runtime.h"
#include "net/loop/loop.h"

namespace muster::agent::process {

class ProcessRuntimeTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/muster-runtime-XXXXXX";
    directory = mkdtemp(name);
    make();
  }
  void TearDown() override {
    loop.run_until_done(clean_up());
    std::filesystem::remove_all(directory);
  }
  Task<void> clean_up() {
    for (const auto& id : sandboxes) (void)co_await runtime->remove_sandbox(id);
    co_await runtime->stop(/*clean=*/true);
  }

  void make(bool isolate = true) {
    ProcessRuntimeOptions options;
    options.isolate = isolate;
    options.directory = directory;
    options.shim_binary = "/proc/self/exe";
    runtime = make_process_runtime(loop, options);
    events.clear();
    changed = loop.make_signal();
    loop.run_until_done(start());
  }
  Task<void> start() {
    const auto found = co_await runtime->start([this](RuntimeEvent event) {
      events.push_back(std::move(event));
      changed->notify();
    });
    EXPECT_TRUE(found.has_value());
    if (found) adopted = *found;
  }

  SandboxConfig sandbox(const std::string& id) {
    SandboxConfig config;
    config.id = id;
    config.pod_name = id;
    config.hostname = "host-" + id;
    config.directory = directory + "/pods/" + id;
    config.run_directory = directory + "/run/" + id;
    std::filesystem::create_directories(config.directory);
    std::filesystem::create_directories(config.run_directory);
    config.hosts_file = config.directory + "/hosts";
    std::ofstream(config.hosts_file) << "127.0.0.1 localhost\n";
    sandboxes.push_back(id);
    return config;
  }
  ContainerConfig shell(const std::string& id, const std::string& script) {
    ContainerConfig config;
    config.id = id;
    config.name = "main";
    config.args = {"sh", "-c", script};
    config.env = {"PATH=/usr/bin:/bin:/usr/sbin:/sbin", "GREETING=hello"};
    config.log_path = directory + "/" + id + ".log";
    return config;
  }
  Task<ContainerStatus> exit_of(std::string id) {
    for (;;) {
      for (const auto& event : events) {
        if (event.container_id == id) co_return event.status;
      }
      co_await changed->wait(std::chrono::seconds(20));
    }
  }
  std::string log_of(const std::string& id) {
    std::ifstream file(directory + "/" + id + ".log");
    std::string line, out;
    while (std::getline(file, line)) out += line.substr(line.find(' ') + 1) + "\n";
    return out;
  }
  static Task<std::string> read_all(net::ByteStream* stream) {
    std::string out;
    for (;;) {
      const auto bytes = co_await stream->read();
      if (!bytes || bytes->empty()) co_return out;
      out += *bytes;
    }
  }
  void run(std::function<Task<void>()> body) { loop.run_until_done(body()); }

  net::Loop loop;
  std::string directory;
  std::unique_ptr<Runtime> runtime;
  std::vector<RuntimeEvent> events;
  std::unique_ptr<Signal> changed;
  std::vector<SandboxStatus> adopted;
  std::vector<std::string> sandboxes;
};

}  // namespace muster::agent::process
