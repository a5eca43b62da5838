/// What nearly every source includes anyway, parsed once for the whole build (cmake/room.cmake): a
/// third less time for a build from nothing. Sources name what they use as if this were not here.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
