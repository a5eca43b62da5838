/// What a job of OpenPAI is checked against when a person submits it without OpenPAI's REST server.
#pragma once

#include <string>

#include "cli/shell/session.h"
#include "pai/protocol/facts.h"

namespace muster::cli {

/// Cells, if the cluster has any and lets the caller see them; else its queues. What is not known is
/// not held against the job: the cluster decides when it comes to it.
Task<pai::Facts> pai_facts(Session& session, std::string protocol);

}  // namespace muster::cli
