/// The running half of `submit`: asks the server, creates the objects, waits.
#pragma once

#include "cli/shell/session.h"

namespace muster::cli {

Task<int> run_submit(Invocation& invocation);
/// `submit pai FILE`: a job of OpenPAI's protocol.
Task<int> run_submit_pai(Invocation& invocation);

}  // namespace muster::cli
