#include "kubeflow_fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace muster::vectors {
namespace {

using json::Value;
using Names = std::set<std::string_view>;

const Names kFile{"id",
                  "title",
                  "kind",
                  "apiVersion",
                  "reference",
                  "provenance",
                  "gangScheduler",
                  "sources",
                  "namespace",
                  "job",
                  "steps",
                  "notes",
                  "covers",       // for the tables of docs/compatibility/fields.md
                  "deviations"};  // what of the recording is a defect that ours does not share
const Names kStep{"name", "actions", "expect", "notes"};
const Names kExpect{"job",
                    "objects",
                    "terminating",
                    "changed",
                    "changedAnyOf",
                    "deleted",
                    "recreated",
                    "events",
                    "observedConditionLists",
                    "rejectedWith",
                    "notes"};
const Names kJob{"conditions",
                 "conditionsAnyOf",
                 "replicaStatuses",
                 "replicaStatusesAnyOf",
                 "selectors",
                 "startTime",
                 "completionTime",
                 "lastReconcileTime",
                 "launcherStatus",
                 "workerReplicas"};
const Names kCondition{"type", "status", "reason", "message"};
const Names kEvents{"typical", "sometimes"};
const Names kEvent{"type", "reason", "message"};

/// The object of createObject and the seconds of elapse are found by what they are: their names are
/// not given.
const std::map<std::string_view, Names> kActions{{"createJob", {"expectRejected"}},
                                                 {"patchJob", {"patch", "expectRejected"}},
                                                 {"deleteJob", {}},
                                                 {"podStatus", {"pod", "pods", "status"}},
                                                 {"podTerminate", {"pod", "pods"}},
                                                 {"podRemove", {"pod", "pods"}},
                                                 {"createLauncherPod", {"pod"}},
                                                 {"launcherJobStatus", {"status"}},
                                                 {"statefulSetStatus", {"name", "status"}},
                                                 {"podGroupPhase", {"phase"}},
                                                 {"settle", {}}};

bool is_prose(const Value& value) {
  if (value.is_string()) return true;
  const auto& list = json::as_array(value);
  return value.is_array() &&
         std::all_of(list.begin(), list.end(), [](const Value& item) { return item.is_string(); });
}

class Reader {
 public:
  std::vector<std::string> problems;

  void check(const Value& object,
             const Names& known,
             const std::string& where,
             bool prose = false) {
    for (const auto& [key, value] : json::as_object(object)) {
      const std::string_view name(key.data(), key.size());
      if (known.contains(name) || (prose && is_prose(value))) continue;
      problems.push_back(fmt::format("\"{}\" in {} is not known", name, where));
    }
  }

  void check_action(const Value& action, const std::string& where) {
    const auto found = kActions.find(json::string_at(action, "op"));
    if (found == kActions.end())
      return;  // createObject and elapse; any other is refused where it is played
    auto known = found->second;
    known.insert("op");
    check(action, known, where, true);
  }

  void check_conditions(const Value& list, const std::string& where) {
    for (const auto& condition : json::as_array(list)) check(condition, kCondition, where);
  }

  void check_expect(const Value& expect, const std::string& where) {
    check(expect, kExpect, where);
    const auto& job = json::at(expect, "job");
    check(job, kJob, where + " job");
    check_conditions(json::at(job, "conditions"), where + " conditions");
    for (const auto& list : json::array_at(job, "conditionsAnyOf"))
      check_conditions(list, where + " conditionsAnyOf");
    check(json::at(expect, "events"), kEvents, where + " events");
    for (const auto kind : kEvents) {
      for (const auto& event : json::array_at(expect, "events", kind))
        check(event, kEvent, where + " events");
    }
  }
};

}  // namespace

std::vector<std::string> unknown_fields(const Value& file) {
  Reader reader;
  reader.check(file, kFile, "the file", true);
  for (const auto& step : json::array_at(file, "steps")) {
    const auto where = fmt::format("step \"{}\"", json::string_at(step, "name"));
    reader.check(step, kStep, where, true);
    for (const auto& action : json::array_at(step, "actions"))
      reader.check_action(action, where + " action");
    reader.check_expect(json::at(step, "expect"), where);
  }
  return reader.problems;
}

std::vector<std::string> field_paths(const std::string& text) {
  std::vector<std::string> paths;
  std::string word;
  const auto of_path = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '[' || c == ']';
  };
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && of_path(text[i])) {
      word += text[i];
      continue;
    }
    while (!word.empty() && word.back() == '.') word.pop_back();
    if (word.starts_with("spec.") || word.starts_with("metadata.")) paths.push_back(word);
    word.clear();
  }
  return paths;
}

}  // namespace muster::vectors
