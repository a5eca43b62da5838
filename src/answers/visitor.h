/// Who asks, and what they may do.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::answers {

/// What other teams' jobs, users and namespaces are called.
inline constexpr std::string_view kOthers = "(others)";
inline constexpr std::string_view kAnothersJob = "another team's job";

struct Visitor {
  std::string user;
  std::vector<std::string> groups;
  /// Whether they may do this to a resource of the group; `ns` empty: in the whole cluster.
  std::function<bool(std::string_view verb, std::string_view resource, std::string_view ns)> may;
  /// Whether jobs of theirs in the namespace may use the queue; null: not known, so no.
  std::function<bool(std::string_view queue, std::string_view ns)> uses;

  [[nodiscard]] bool sees(std::string_view ns) const { return may("get", "records", ns); }
  /// Whether they may ask for what changes the cluster.
  [[nodiscard]] bool administers() const { return may("*", "whatifs", ""); }
};

}  // namespace muster::answers
