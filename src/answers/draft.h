/// A job that is not submitted: what the engine would be told of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/visitor.h"
#include "base/result.h"
#include "base/task.h"
#include "engine/model/event.h"
#include "json/json.h"

namespace muster::answers {

struct Draft {
  std::string ns, kind, name;         ///< The kind as in ids: "pytorchjob".
  std::vector<engine::Event> groups;  ///< Said first: they have to be admitted.
  std::vector<engine::Event> pods;
  /// Who refuses it, in their words: admission, quota, permissions. Empty: nobody.
  std::string refused;
  std::string refused_reason;  ///< As Kubernetes spells it: "Forbidden", "Invalid" …
  /// Why nothing of it would start even so: it is suspended, or makes no pods. Empty: it would.
  std::string idle;

  [[nodiscard]] std::string job() const { return ns + "/" + kind + "/" + name; }
};

/// Made by whoever knows server, controllers and scheduler; fails on what is no job. Nothing is
/// stored.
using Drafting =
    std::function<Task<Result<Draft>>(Visitor visitor, std::string ns, json::Value job)>;

}  // namespace muster::answers
