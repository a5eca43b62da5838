/// What the tables read of an object. Lists ask for these members only: with a thousand jobs and their pods, sending
/// and parsing the rest would be most of the time a command takes.
#pragma once

#include "cli/session.h"
#include "client/client.h"
#include "json/pick.h"

namespace muster::cli {

/// How much of jobs and pods a command shows: a line of a table, or everything that is known of each instance.
enum class Detail { kRow, kWhole };

const json::Picks& job_members(Detail detail);
const json::Picks& pod_members(Detail detail);
/// Pods as the GPU tables of nodes see them.
const json::Picks& node_pod_members();
const json::Picks& node_members();

/// As client::Client::list, but the items have only `members`. Muster's server leaves out the rest; of another server's
/// answer it is cut off before the answer is parsed.
Task<Result<std::vector<json::Value>>> list_members(Session& session,
                                                    const client::Resource& resource,
                                                    client::ListOptions options,
                                                    const json::Picks& members);

}  // namespace muster::cli
