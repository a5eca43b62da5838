/// What a tab says on its WebSocket. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "json/json.h"
#include "portal/jobs/query.h"

namespace muster::portal {

struct Said {
  enum class What : std::uint8_t { kSubscribe, kWindow, kUnsubscribe };
  What what = What::kUnsubscribe;
  std::int64_t sub = 0;
  std::string topic;  // "jobs", "job/ID" …
  json::Value query;
  Window window;
};

/// An error names what is wrong; `sub`, if it can be read, is filled in all the same.
Result<Said> parse_said(std::string_view text, std::int64_t* sub);

inline constexpr std::size_t kSaidMax = 64 * 1024;

}  // namespace muster::portal
