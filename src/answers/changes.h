/// What somebody wants to try, read from JSON into what the engine is told:
///
///   [{"drain": {"nodes": ["node-1"]}, "at": "2h"}, {"addNodes": {"count": 4, "gpus": 8}}]
///
/// Pure. Errors say which change is wrong, what was wanted and what was found.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "answers/draft.h"
#include "answers/shapes.h"
#include "engine/engine.h"
#include "json/json.h"

namespace muster::answers {

struct ChangeSources {
  const engine::Engine& engine;
  /// Gangs of the jobs that changes name, as they name them ("ns/name" or "ns/kind/name").
  std::map<std::string, std::vector<std::string>> gangs;
  /// What the submit changes became, in their order.
  std::vector<Draft> drafts;
  std::map<std::string, std::int32_t> priorities;  ///< Values of PriorityClasses.
  std::function<Result<engine::Config>(std::string_view text)> parse_policy;
};

Result<std::vector<Change>> read_changes(const json::Value& list, const ChangeSources& from);

/// Jobs that changes are about, each once.
std::vector<std::string> jobs_named(const json::Value& list);
/// The configurations of cells that changes bring.
std::vector<std::string> cells_of(const json::Value& list);
/// The manifests to submit, in order, each as often as it says.
struct ToSubmit {
  json::Value manifest;
  std::int64_t count = 1;
};
Result<std::vector<ToSubmit>> manifests_of(const json::Value& list);

/// A PodUpsert and GroupUpsert of each under other names, so that one manifest can be submitted more
/// than once. `number` 0: as they are.
std::vector<engine::Event> events_of(const Draft& draft, std::int64_t number);

}  // namespace muster::answers
