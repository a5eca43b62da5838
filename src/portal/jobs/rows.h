/// A job's row from what its object, its PodGroup and its pods say, and rows as JSON. Pure.
#pragma once

#include <map>
#include <string>

#include "answers/jobs/facts.h"
#include "json/json.h"
#include "portal/cluster/forecasts.h"
#include "portal/jobs/table.h"

namespace muster::portal {

struct RowParts {
  Keys keys;
  Texts texts;
};
/// `object` and `group` may be null; `class_number` is what its PriorityClass says, 0 if there is none.
struct RowOf {
  const JobFacts& facts;
  const json::Value* object = nullptr;
  const json::Value* group = nullptr;
  const std::map<std::string, TaskFacts>& tasks;
  std::int32_t class_number = 0;
};
RowParts make_row(const RowOf& of, Words& words);

/// Appends the JSON text of web/src/shapes/job.ts, JobRow.
void append_row(std::string& out, const Table& table, Slot slot, const Told& told);
/// Appends a TaskRow.
void append_task(std::string& out, const TaskFacts& task);
/// "role-index", or the pod's name where there is no role.
std::string task_id(const TaskFacts& task);
/// {"WAITING":3,…}, only those that are not 0.
template <typename Counts>
std::string counts_json(const Counts& counts) {
  std::string out = "{";
  for (std::size_t i = 0; i < kStates; ++i) {
    if (counts[i] == 0) continue;
    if (out.size() > 1) out += ',';
    out.append("\"").append(state_name(static_cast<State>(i))).append("\":");
    out += std::to_string(counts[i]);
  }
  return out + "}";
}
/// "null" for 0.
void append_millis(std::string& out, Millis time);

}  // namespace muster::portal
