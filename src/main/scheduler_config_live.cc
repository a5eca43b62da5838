#include "main/scheduler_config_live.h"

#include <chrono>

#include "base/log.h"
#include "main/identity.h"
#include "scheduler/config.h"

namespace muster {

std::optional<Result<engine::VolcanoConfig>> SchedulerConfigFile::look() {
  auto text = read_file(path_);
  if (seen_) {
    const bool same = text && *seen_ ? *text == **seen_ : !text && !*seen_;
    if (same) return std::nullopt;
  }
  seen_ = text;
  if (!text) return Result<engine::VolcanoConfig>(fail(text.error()));
  return scheduler::parse_volcano_config(*text);
}

void SchedulerConfigLive::start() {
  // The scheduler was made a moment ago; whatever was written since counts.
  const auto first = file_.look();
  if (first && *first) scheduler_.reconfigure(**first);
  wait();
}

void SchedulerConfigLive::wait() {
  timer_ = env_.after(std::chrono::seconds(1), [this] {
    look();
    wait();
  });
}

void SchedulerConfigLive::look() {
  const auto found = file_.look();
  if (!found) return;
  if (!*found) {
    log::warn("scheduler", "{}: {}; the configuration stays as it was", file_.path(), found->error().message);
    return;
  }
  for (const std::string& idle : scheduler::without_effect(**found)) log::warn("scheduler", "{}: {} is accepted and has no effect", file_.path(), idle);
  scheduler_.reconfigure(**found);
  log::info("scheduler", "{}: the new configuration is in force", file_.path());
}

}  // namespace muster
