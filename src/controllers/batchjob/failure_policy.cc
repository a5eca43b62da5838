#include "controllers/batchjob/failure_policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "base/strings.h"
#include "controllers/common/objects.h"

namespace muster::controllers::batchjob {
namespace {

/// Ten times what Kubernetes lets a Job have. The text is a user's, and a few letters can name
/// billions.
constexpr std::int64_t kIndexesMax = 1'000'000;

Consequence consequence_of(std::string_view action) {
  if (action == "FailJob") return Consequence::kFailJob;
  if (action == "FailIndex") return Consequence::kFailIndex;
  return action == "Ignore" ? Consequence::kIgnore : Consequence::kCount;
}

/// The container whose exit code matches, or null. Code 0 is no failure and matches nothing.
const json::Value* matching_exit(const json::Value& rule, const json::Value& pod) {
  const auto& wanted = json::at(rule, "onExitCodes");
  const auto name = json::string_at(wanted, "containerName");
  const bool in = json::string_at(wanted, "operator") == "In";
  const auto& values = json::array_at(wanted, "values");
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const auto& container : json::array_at(pod, "status", list)) {
      const auto& terminated = json::at(container, "state", "terminated");
      const auto code = json::int_at(terminated, "exitCode");
      if (!terminated.is_object() || code == 0 ||
          (!name.empty() && name != json::string_at(container, "name")))
        continue;
      const bool listed = std::any_of(values.begin(), values.end(), [&](const auto& value) {
        return json::as_int(value) == code;
      });
      if (listed == in) return &container;
    }
  }
  return nullptr;
}

/// The type of the condition that matches, or empty.
std::string matching_condition(const json::Value& rule, const json::Value& pod) {
  for (const auto& wanted : json::array_at(rule, "onPodConditions")) {
    const auto type = json::string_at(wanted, "type");
    const auto status = json::string_at(wanted, "status");
    for (const auto& condition : json::array_at(pod, "status", "conditions")) {
      if (json::string_at(condition, "type") == type &&
          json::string_at(condition, "status") == (status.empty() ? "True" : status))
        return std::string(type);
    }
  }
  return {};
}

}  // namespace

Ruling judge_failure(const json::Value& policy, const json::Value& pod) {
  const auto& rules = json::array_at(policy, "rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto action = json::text_at(rules[i], "action");
    const auto path = fmt::format("{}/{}", namespace_of(pod), name_of(pod));
    if (json::at(rules[i], "onExitCodes").is_object()) {
      if (const auto* container = matching_exit(rules[i], pod)) {
        return {consequence_of(action),
                fmt::format(
                    "Container {} for pod {} failed with exit code {} matching {} rule at index {}",
                    json::string_at(*container, "name"),
                    path,
                    json::int_at(*container, "state", "terminated", "exitCode"),
                    action,
                    i)};
      }
    } else if (const auto type = matching_condition(rules[i], pod); !type.empty()) {
      return {consequence_of(action),
              fmt::format(
                  "Pod {} has condition {} matching {} rule at index {}", path, type, action, i)};
    }
  }
  return {};
}

std::set<int> parse_indexes(std::string_view text) {
  std::set<int> result;
  std::int64_t room = kIndexesMax;
  for (const auto& part : split_nonempty(text, ',')) {
    const auto ends = split(part, '-');
    const auto first = parse_int(ends[0]), last = parse_int(ends.back());
    if (!first || !last || *last < *first || *last > std::numeric_limits<int>::max() ||
        *last - *first >= room)
      continue;
    room -= *last - *first + 1;
    for (auto i = *first; i <= *last; ++i) result.insert(static_cast<int>(i));
  }
  return result;
}

std::string format_indexes(const std::set<int>& indexes) {
  std::vector<std::string> parts;
  for (auto it = indexes.begin(); it != indexes.end();) {
    const int first = *it;
    int last = first;
    while (++it != indexes.end() && *it == last + 1) last = *it;
    if (first == last) {
      parts.push_back(std::to_string(first));
    } else {
      parts.push_back(last == first + 1 ? fmt::format("{},{}", first, last)
                                        : fmt::format("{}-{}", first, last));
    }
  }
  return join(parts, ",");
}

int matching_success_rule(const json::Value& policy, const std::set<int>& done) {
  const auto& rules = json::array_at(policy, "rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const auto& indexes = json::at(rules[i], "succeededIndexes");
    const auto& count = json::at(rules[i], "succeededCount");
    auto have = static_cast<std::int64_t>(done.size());
    auto need = json::as_int(count, have + 1);
    if (indexes.is_string()) {
      const auto wanted = parse_indexes(json::as_string(indexes));
      have = std::count_if(
          wanted.begin(), wanted.end(), [&](int index) { return done.contains(index); });
      if (!count.is_number()) need = static_cast<std::int64_t>(wanted.size());
    }
    if (have >= need) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace muster::controllers::batchjob
