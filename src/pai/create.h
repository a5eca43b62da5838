/// A submission becomes objects of the cluster: for the REST server and `muster submit pai` alike.
#pragma once

#include <optional>
#include <string>

#include "client/client.h"
#include "pai/protocol/submit.h"

namespace muster::pai {

struct Created {
  json::Value framework;
  /// The caller may not make PriorityClasses, so that the job has none.
  std::optional<Error> no_priority;
};

/// All of it or nothing: what was made before something failed is taken away again. kAlreadyExists,
/// in OpenPAI's words, if there is such a job.
Task<Result<Created>> create(client::Client& client, std::string ns, Submission made);

}  // namespace muster::pai
