#include "scheduler/live_config.h"

#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "base/log.h"

namespace muster::scheduler {

std::optional<Result<Config>> ConfigFile::look() {
  auto text = read_file(path_);
  if (seen_) {
    const bool same = text && *seen_ ? *text == **seen_ : !text && !*seen_;
    if (same) return std::nullopt;
  }
  seen_ = text;
  if (!text && optional_ && !std::filesystem::exists(path_)) return Config{};
  if (!text) return Result<Config>(fail(text.error()));
  return parse_(*text);
}

void LiveConfig::start() {
  // The scheduler was made a moment ago; whatever was written since counts.
  const auto first = file_.look();
  if (first && *first) (void)scheduler_.reconfigure((*first)->engine, (*first)->backfill);
  wait();
}

void LiveConfig::wait() {
  timer_ = env_.after(std::chrono::seconds(1), [this] {
    look();
    wait();
  });
}

void LiveConfig::look() {
  const auto found = file_.look();
  if (!found) return;
  if (!*found) {
    log::warn("scheduler",
              "{}: {}; the configuration stays as it was",
              file_.path(),
              found->error().message);
    return;
  }
  take(**found);
}

void LiveConfig::take(const Config& config) {
  const auto taken = scheduler_.reconfigure(config.engine, config.backfill);
  if (!taken) {
    log::warn("scheduler", "{}: {}", file_.path(), taken.error().message);
    return;
  }
  for (const std::string& idle : config.without_effect)
    log::warn("scheduler", "{}: {} is accepted and has no effect", file_.path(), idle);
  log::info("scheduler", "{}: the new configuration is in force", file_.path());
}

}  // namespace muster::scheduler
