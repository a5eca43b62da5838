/// Log lines as key=value pairs on standard error: `05:40:01.123 info  store: opened path=/x
/// revision=17`.
///
/// Rooms log through this alone; the engine does not log at all. Thread-safe.
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace muster::log {

enum class Level { kDebug, kInfo, kWarn, kError };

void set_level(Level level);
[[nodiscard]] bool enabled(Level level);
void write(Level level, std::string_view room, std::string_view message);

template <typename... Args>
void debug(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug))
    write(Level::kDebug, room, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void info(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo))
    write(Level::kInfo, room, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void warn(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn))
    write(Level::kWarn, room, fmt::format(format, std::forward<Args>(args)...));
}
template <typename... Args>
void error(std::string_view room, fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kError))
    write(Level::kError, room, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace muster::log
