/// The nodes of an embedded cluster: a number of virtual ones, or those of a file.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "base/time.h"
#include "client/client.h"
#include "json/json.h"

namespace muster::agent {

struct NodesRequest {
  std::string nodes;  // a number, or the path of a file with Node objects
  int gpus = 4;
  /// Models of this machine's GPUs: node-0 has them all. Empty: simulated ones.
  std::vector<std::string> real_gpus;
};

/// Errors name the file and what was wrong in it.
Result<std::vector<json::Value>> plan_nodes(const NodesRequest& request, Time now);

/// Makes the cluster's nodes these: creates and refreshes them, removes virtual ones that are no
/// longer wanted.
Task<Result<void>> apply_nodes(Env& env, client::Client& client, std::vector<json::Value> nodes);

}  // namespace muster::agent
