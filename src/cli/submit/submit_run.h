/// The running half of `submit`: asks the server, creates the objects, waits.
#pragma once

#include "cli/shell/session.h"

namespace muster::cli {

Task<int> run_submit(Invocation& invocation);
/// `submit pai FILE`: a job of OpenPAI's protocol.
Task<int> run_submit_pai(Invocation& invocation);

/// Says what becomes of the job until it has ended, or runs; the exit code.
Task<int> wait_for_job(Session& session,
                       std::string name,
                       std::string type,
                       const client::Resource& resource,
                       bool until_running,
                       Duration timeout);

}  // namespace muster::cli
