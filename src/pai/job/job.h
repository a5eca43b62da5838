/// What OpenPAI's users see of a Framework: the state of the job and its tasks, retries, exit codes.
/// Pure; the REST server, `muster get` and `muster list` show the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"
#include "json/json.h"

namespace muster::pai {

/// WAITING, RUNNING, STOPPING, SUCCEEDED, FAILED, STOPPED or UNKNOWN, from the state of a Framework
/// or task ("subState"), its completion code (null while it has none) and whether it will be tried
/// again.
std::string_view shown_state(std::string_view sub_state, const json::Value& code, bool retries);

/// Milliseconds since 1970 as OpenPAI writes times, or null. Whole seconds, since Kubernetes has no
/// more: a job must not seem to have begun before it was submitted.
json::Value millis(const json::Value& time);

/// An entry of the job list (JobSummary).
json::Value job_summary(const json::Value& framework);

/// The whole job (JobDetail); ports are computed from the pods' uids.
json::Value job_detail(const json::Value& framework);

/// The attempts of a task of the Framework's present attempt, the newest first; each has the shape of a
/// task of JobDetail. Empty if there is no such task.
json::Array task_attempts(const json::Value& framework, std::string_view role, std::int64_t index);

/// The exit specification of a code: {code, phrase, issuer, causer, type, stage, behavior, reaction,
/// reason, repro, solution}; of 256 with the code for a positive one that is not listed, of -8000 for
/// a negative one.
json::Value exit_spec(std::int64_t code);

/// The job's configuration as it was submitted, secrets masked; empty if the Framework carries none.
std::string job_config(const json::Value& framework);

}  // namespace muster::pai
