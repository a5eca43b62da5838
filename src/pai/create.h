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

/// All of it or nothing: the Framework is the job and comes last, when all that its pods wait for is
/// there, and what was made before something failed is taken away again. What a crash leaves is not a
/// job, and is swept up (leftovers.h). kAlreadyExists, in OpenPAI's words, if there is such a job.
Task<Result<Created>> create(client::Client& client, std::string ns, Submission made);

/// Makes a Framework the owner of one of its Secrets, which goes when it goes.
Task<Result<void>> adopt(client::Client& client,
                         std::string ns,
                         std::string secret,
                         const json::Value& framework);

}  // namespace muster::pai
