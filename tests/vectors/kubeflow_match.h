/// Compares created objects and statuses with what a scenario shows.
#pragma once

#include <string>
#include <vector>

#include "json/json.h"

namespace muster::vectors {

/// Empty when `found` has all that `wanted` shows: a subset, but labels, annotations, owners, env,
/// data, rules and lists are exact. Else what was wanted where; last_got() is what stood there.
std::string match(const json::Value& found, const json::Value& wanted, const std::string& job_uid);
const std::string& last_got();

/// "type=status reason: message" for each. `merge_restarting`: Restarting and Running read alike;
/// `skip_created`: without Created.
std::vector<std::string> condition_lines(const json::Value& conditions,
                                         bool merge_restarting,
                                         bool skip_created);
/// The counters of replicaStatuses, zero ones left out; "" for none.
std::string counters(const json::Value& statuses);

}  // namespace muster::vectors
