/// The story of one job, for its page.
#pragma once

#include <string>
#include <vector>

#include "portal/topics/topics.h"

namespace muster::portal {

/// An attempt that is over and has been followed by another.
struct Former {
  Millis created = 0, launched = 0, completed = 0;
  std::string end;  // code and phrase
  std::string nodes;
};
/// OpenPAI keeps them; the oldest first. None of jobs of other kinds.
Task<std::vector<Former>> former_attempts(World& world, User user, std::string id);

/// Timeline of web/src/shapes/job.ts; NotFound where this user may not see the job.
Task<Result<json::Value>> timeline_of(World& world, User user, std::string id);

}  // namespace muster::portal
