/// What is written down of which request: Kubernetes' audit policy (audit.k8s.io/v1 Policy). Pure.
///
/// The first rule that matches a request decides its level and the stages left out; a request that
/// no rule matches is not written down.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::apiserver::audit {

enum class Level : std::uint8_t { kNone, kMetadata, kRequest, kRequestResponse };
enum class Stage : std::uint8_t { kRequestReceived, kResponseStarted, kResponseComplete, kPanic };

std::string_view name_of(Level level);
std::string_view name_of(Stage stage);

/// What rules look at.
struct Request {
  std::string_view user;  // empty: nobody was recognised
  const std::vector<std::string>* groups = nullptr;
  std::string_view verb;
  /// Of a request for a resource; otherwise `resource` is empty and `path` is set.
  std::string_view group, resource, subresource, name, ns;
  std::string_view path;
};

/// Resources of one API group.
struct Resources {
  std::string group;
  std::vector<std::string> resources, names;
};

struct Rule {
  Level level = Level::kNone;
  std::vector<std::string> users, groups, verbs, namespaces, paths;
  std::vector<Resources> resources;
  std::uint8_t omitted = 0;  // stages, one bit each
  bool omit_managed_fields = false;
  [[nodiscard]] bool matches(const Request& request) const;
};

struct Verdict {
  Level level = Level::kNone;
  std::uint8_t omitted = 0;
  bool omit_managed_fields = false;
  [[nodiscard]] bool writes(Stage stage) const {
    return level != Level::kNone && (omitted >> static_cast<int>(stage) & 1) == 0;
  }
};

struct Policy {
  std::vector<Rule> rules;
  [[nodiscard]] Verdict judge(const Request& request) const;
};

/// The policy of a YAML or JSON file; the error says which field is wrong and what was wanted.
Result<Policy> parse_policy(std::string_view text);

/// Without a file: Metadata for every request but questions after the server's health, and what
/// Muster's own components read and report in their routine.
Policy default_policy();

}  // namespace muster::apiserver::audit
