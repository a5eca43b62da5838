#include "portal/topics/packed.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "base/result.h"
#include "json/text.h"

namespace muster::portal {
namespace {

/// "llama-000123": the digits at its end, at most nine of them, so that any reader can count with it.
std::size_t digits_at_end(std::string_view text) {
  std::size_t count = 0;
  while (count < 9 && count < text.size()) {
    const char one = text[text.size() - 1 - count];
    if (one < '0' || one > '9') break;
    ++count;
  }
  return count;
}

void append_number(std::string& out, std::int64_t number) {
  if (out.back() != '[') out += ',';
  out += std::to_string(number);
}

/// Calls each(value, count) for every run of equal ones.
template <typename Each>
void for_runs(const std::vector<std::int32_t>& values, Each each) {
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    each(values[i], end - i);
    i = end;
  }
}

}  // namespace

void append_runs(std::string& out, const std::vector<std::int32_t>& values) {
  out += '[';
  for_runs(values, [&](std::int32_t value, std::size_t count) {
    append_number(out, value);
    append_number(out, static_cast<std::int64_t>(count));
  });
  out += ']';
}

void append_names(std::string& out, const std::vector<std::string_view>& texts) {
  std::map<std::pair<std::string_view, std::size_t>, std::int64_t> known;
  std::string stems = "[", widths = "[", stem = "[", number = "[";
  std::int64_t before = 0;
  for (const std::string_view text : texts) {
    const std::size_t width = digits_at_end(text);
    const std::string_view head = text.substr(0, text.size() - width);
    const auto [at, fresh] =
        known.try_emplace({head, width}, static_cast<std::int64_t>(known.size()));
    if (fresh) {
      if (stems.back() != '[') stems += ',';
      json::append_string(stems, head);
      append_number(widths, static_cast<std::int64_t>(width));
    }
    append_number(stem, at->second);
    if (width == 0) continue;
    const std::int64_t now =
        std::strtoll(std::string(text.substr(head.size())).c_str(), nullptr, 10);
    append_number(number, now - before);
    before = now;
  }
  out += fmt::format(
      R"({{"stems":{}],"widths":{}],"stem":{}],"number":{}]}})", stems, widths, stem, number);
}

void append_owners(std::string& out, const std::vector<std::int32_t>& owners) {
  std::string who = "[", count = "[";
  std::int32_t highest = 0;
  for_runs(owners, [&](std::int32_t owner, std::size_t run) {
    const std::int32_t job = std::abs(owner);
    MUSTER_CHECK(job <= highest + 1, "jobs of the map are numbered as they come up");
    const std::int32_t back = job == 0 ? 0 : highest - job + 2;
    highest = std::max(highest, job);
    append_number(who, owner < 0 ? -back : back);
    append_number(count, static_cast<std::int64_t>(run));
  });
  out += fmt::format(R"({{"who":{}],"count":{}]}})", who, count);
}

}  // namespace muster::portal
