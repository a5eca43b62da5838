/// The story of one job, for its page.
#pragma once

#include <string>

#include "portal/topics/topics.h"

namespace muster::portal {

/// Timeline of web/src/shapes/job.ts; NotFound where this user may not see the job.
Task<Result<json::Value>> timeline_of(World& world, User user, std::string id);

}  // namespace muster::portal
