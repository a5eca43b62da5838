#include "portal/live/protocol.h"

#include <fmt/core.h>

namespace muster::portal {
namespace {

Result<std::int64_t> number_of(std::string_view key, const json::Value& value) {
  const std::int64_t number = value.is_int64() ? value.get_int64() : -1;
  if (number < 0 || number > 1'000'000'000)
    return fail(Code::kBadRequest, fmt::format("{}: wanted a number from 0 to 1000000000", key));
  return number;
}

}  // namespace

Result<Said> parse_said(std::string_view text, std::int64_t* sub) {
  *sub = -1;
  if (text.size() > kSaidMax)
    return fail(
        Code::kTooLarge,
        fmt::format("a message of {} bytes, at most {} are allowed", text.size(), kSaidMax));
  const auto value = json::parse(text);
  if (!value || !value->is_object())
    return fail(Code::kBadRequest, R"(wanted a JSON object, e.g. {"sub":1,"topic":"jobs"})");
  Said said;
  std::string_view key;
  for (const std::string_view one : {"sub", "win", "unsub"}) {
    if (json::at(*value, one).is_null()) continue;
    if (!key.empty()) return fail(Code::kBadRequest, "wanted one of sub, win and unsub");
    key = one;
  }
  if (key.empty()) return fail(Code::kBadRequest, "wanted one of sub, win and unsub");
  const auto number = number_of(key, json::at(*value, key));
  if (!number) return fail(number.error());
  *sub = said.sub = *number;
  said.what = key == "sub"   ? Said::What::kSubscribe
              : key == "win" ? Said::What::kWindow
                             : Said::What::kUnsubscribe;
  if (said.what == Said::What::kUnsubscribe) return said;
  auto window = parse_window(json::at(*value, "window"));
  if (!window) return fail(window.error());
  said.window = *window;
  if (said.what == Said::What::kWindow) return said;
  said.topic = json::text_at(*value, "topic");
  if (said.topic.empty()) return fail(Code::kBadRequest, "topic: wanted one, e.g. jobs");
  said.query = json::at(*value, "query");
  return said;
}

}  // namespace muster::portal
