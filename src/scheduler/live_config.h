/// The scheduler's configuration file while the program runs: what is written there is taken over,
/// and a file that is wrong changes nothing. The file may be replaced as a whole, as the kubelet
/// does with mounted ConfigMaps.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.h"
#include "base/result.h"
#include "engine/model/config.h"
#include "engine/model/model.h"
#include "scheduler/scheduler.h"

namespace muster::scheduler {

/// What a configuration file says.
struct Config {
  engine::Config engine;
  /// Of queues that do not say it themselves.
  engine::BackfillMode backfill = engine::BackfillMode::kReservation;
  /// What the file asks for and nothing here does.
  std::vector<std::string> without_effect;
};
/// How the text is understood. Errors name the key, what was wanted and what was found.
using ConfigParser = Result<Config> (*)(std::string_view yaml);

class ConfigFile {
 public:
  /// `optional`: while there is no file, the defaults hold.
  ConfigFile(std::string path, ConfigParser parse, bool optional)
      : path_(std::move(path)), parse_(parse), optional_(optional) {}
  /// What the file says or what is wrong with it; nothing when that is what it was at the last
  /// look.
  std::optional<Result<Config>> look();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
  ConfigParser parse_;
  bool optional_;
  std::optional<Result<std::string>> seen_;
};

/// Looks every second. Everything runs on the loop.
class LiveConfig {
 public:
  LiveConfig(Env& env, ConfigFile file, Scheduler& scheduler)
      : env_(env), file_(std::move(file)), scheduler_(scheduler) {}
  /// After the scheduler's start, which was made from the same file.
  void start();
  void stop() { timer_.reset(); }

 private:
  void wait();
  void look();
  void take(const Config& config);

  Env& env_;
  ConfigFile file_;
  Scheduler& scheduler_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace muster::scheduler
