/// One line of the audit log: an Event of audit.k8s.io/v1, gathered on the loop, made into text on
/// a worker.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/audit/policy.h"
#include "apiserver/core.h"

namespace muster::apiserver::audit {

/// A body of a request or answer: text of some type, or an object of this process.
struct Content {
  std::string type, text;
  kube::ObjectPtr object;
};

struct Event {
  Level level = Level::kMetadata;
  Stage stage = Stage::kResponseComplete;
  std::string id, uri, verb, source, forwarded, agent;
  User user;
  std::optional<User> acting;  // whom the user acts as
  // What it is about; `resource` is empty for other paths.
  std::string group, version, resource, subresource, ns, name;
  int code = 0;     // of the answer; 0: none yet
  Content failure;  // the answer, if it is an error
  Content request, response;
  bool omit_managed_fields = false;
  /// The kind holds secrets: no text of a body is repeated.
  bool secret = false;
  Time received, at;
  std::vector<std::pair<std::string_view, std::string>> annotations;

  /// What it weighs in the queue, about.
  [[nodiscard]] std::size_t bytes() const;
};

/// The line, without its end. Runs on a worker.
std::string line_of(const Event& event);

/// Whether bodies of the resource are never written down, whatever the policy says: Secrets, and
/// what tokens are asked for and answered with.
[[nodiscard]] bool holds_secrets(std::string_view group,
                                 std::string_view resource,
                                 std::string_view subresource);

}  // namespace muster::apiserver::audit
