/// What another configuration of HiveD's cells would do to gangs that run: what `muster hived check`
/// says of it, for questions of the kind "what if".
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "client/client.h"
#include "client/informer.h"

namespace muster {

/// A sentence for each gang that is not as before, then what is odd. Fails when the text is refused.
Task<Result<std::vector<std::string>>> preview_cells(client::Client& client,
                                                     client::Informers& informers,
                                                     std::string text);

}  // namespace muster
