#pragma once

#include <time.h>

#include <cstdint>

namespace muster::agent::process {

inline std::int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace muster::agent::process
