/// What would become of a job that is submitted now, asked of the group of answers
/// (docs/answers.md) and turned into what the page shows.
#pragma once

#include <string>

#include "json/json.h"
#include "portal/api/api.h"

namespace muster::portal {

struct DecisionAsk {
  std::string ns;
  json::Value object;  ///< As a dry run gave it.
  /// Asked by the portal itself: the job becomes the cluster's through OpenPAI's API, which has said
  /// yes already. Otherwise in the user's own name.
  bool as_portal = false;
  /// Also when it would start, and what would start now; takes longer.
  bool whole = false;
};
/// Fails with the reason where the cluster gives no such answer, or not now.
Task<Result<json::Value>> decide_beforehand(World& world, User user, DecisionAsk ask);

/// The decision on what was refused.
json::Value refused_decision(const World& world, const std::string& message);

/// Whether this cluster decides beforehand.
Task<bool> decides_beforehand(client::Client& client);

}  // namespace muster::portal
