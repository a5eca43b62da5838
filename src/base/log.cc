#include "base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>

#include "base/time.h"

namespace muster::log {
namespace {

std::atomic<Level> minimum{Level::kInfo};

}  // namespace

void set_level(Level level) { minimum = level; }

bool enabled(Level level) { return level >= minimum; }

void write(Level level, std::string_view room, std::string_view message) {
  static constexpr std::string_view kNames[] = {"debug", "info ", "warn ", "error"};
  const auto now =
      std::chrono::duration_cast<Duration>(std::chrono::system_clock::now().time_since_epoch());
  const std::string line = fmt::format("{} {} {}: {}\n",
                                       format_micro_time(Time{now.count()}),
                                       kNames[static_cast<int>(level)],
                                       room,
                                       message);
  // One write() per line keeps lines of several threads whole.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace muster::log
