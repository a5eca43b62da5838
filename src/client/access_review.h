/// What somebody may do in the cluster, as its API server says (SubjectAccessReview).
#pragma once

#include "base/result.h"
#include "base/task.h"
#include "client/client.h"
#include "json/json.h"

namespace muster::client {

/// `spec`: user, groups, resourceAttributes and so on. An error: it could not be asked.
Task<Result<bool>> review_access(Client& client, json::Object spec);

}  // namespace muster::client
