/// What an object would become if it were submitted: its pods and their groups, made by the very
/// plans that would make them, and written nowhere. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "controllers/common/kind.h"

namespace muster::controllers {

struct DraftRules {
  const std::vector<Kind>& kinds;
  const Settings& settings;
  /// The value of a PriorityClass.
  std::function<std::optional<std::int64_t>(std::string_view)> priority_of;
  Time now;
};

struct Drafted {
  std::vector<json::Value> groups;  ///< PodGroups of whatever kind.
  std::vector<json::Value> pods;
  std::string said;  ///< The last that its plan had to say; for one that makes no pods.
};

/// `job` as the server would store it. Groups count as admitted at once. A pod is its own draft.
Drafted draft(const json::Value& job, const DraftRules& rules);

/// Where objects of this apiVersion and kind live, of those that become pods; null: none do.
const client::Resource* find_resource(const std::vector<Kind>& kinds,
                                      std::string_view api_version,
                                      std::string_view kind);

}  // namespace muster::controllers
