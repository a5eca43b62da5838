/// A Job's own rules: what a failed pod means (spec.podFailurePolicy) and when enough indexes have
/// succeeded (spec.successPolicy).
#pragma once

#include <set>
#include <string>

#include "json/json.h"

namespace muster::controllers::batchjob {

enum class Consequence { kCount, kIgnore, kFailIndex, kFailJob };

struct Ruling {
  Consequence consequence = Consequence::kCount;
  std::string message;  // of the Job's condition, for kFailJob
};

/// The first rule that the failed pod matches; it is counted when none does.
Ruling judge_failure(const json::Value& policy, const json::Value& pod);

/// "0,2-4" and back. Runs of at least three are shortened, pairs stay apart, as Kubernetes writes
/// them. What goes beyond a million indexes, repeated ones counted, is left out.
std::set<int> parse_indexes(std::string_view text);
std::string format_indexes(const std::set<int>& indexes);

/// The position of the first rule that holds with these indexes done, or -1.
int matching_success_rule(const json::Value& policy, const std::set<int>& done);

}  // namespace muster::controllers::batchjob
