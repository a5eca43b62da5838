/// How many pods one object may ask for. A controller looks at each of them in turn, so an object
/// that wants two thousand million would stop the server by itself.
#pragma once

#include <cstdint>

#include "json/json.h"

namespace muster::apiserver {

/// As many as Kubernetes allows an indexed Job.
inline constexpr std::int64_t kPodsOfOneMax = 100'000;

/// Of all roles together; at least kPodsOfOneMax + 1 where it is more than that.
[[nodiscard]] std::int64_t pods_wanted(const json::Value& object);

}  // namespace muster::apiserver
