/// Pods and jobs for those who may see that they are there, and not what is in their environments.
///
/// Whoever may not `get` or `list` pods (or jobs) but their subresource `summary` is given the
/// objects without the values of environment variables and without what kubectl applied, which
/// repeats them; Frameworks without any annotation, since theirs say what their environment is.
/// There is no watch of summaries.
#pragma once

#include "apiserver/rest/rest.h"

namespace muster::apiserver {

enum class Sight : std::uint8_t { kWhole, kSummary };

/// True if the call could be answered with a summary.
[[nodiscard]] bool has_summary(const Call& call);
/// The call's JSON answer without what is not to be seen, be it a list, a Table or an object; a
/// large one is changed on a worker.
Task<Result<Reply>> summarized(Core& core, const Call& call, net::Response response);

}  // namespace muster::apiserver
