/// The scheduler's configuration file while the program runs: what is written there is taken over,
/// and a file that is wrong changes nothing. The file may be replaced as a whole, as the kubelet
/// does with mounted ConfigMaps.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/env.h"
#include "base/result.h"
#include "main/scheduler_config.h"
#include "scheduler/scheduler.h"

namespace muster {

class SchedulerConfigFile {
 public:
  explicit SchedulerConfigFile(std::string path) : path_(std::move(path)) {}
  /// What the file says or what is wrong with it; nothing when that is what it was at the last
  /// look.
  std::optional<Result<SchedulerConfig>> look();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::optional<Result<std::string>> seen_;
};

/// Looks every second. Everything runs on the loop.
class SchedulerConfigLive {
 public:
  SchedulerConfigLive(Env& env, const std::string& path, scheduler::Scheduler& scheduler)
      : env_(env), file_(path), scheduler_(scheduler) {}
  /// After the scheduler's start, which was made from the same file.
  void start();
  void stop() { timer_.reset(); }

 private:
  void wait();
  void look();
  void take(const SchedulerConfig& config);

  Env& env_;
  SchedulerConfigFile file_;
  scheduler::Scheduler& scheduler_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace muster
