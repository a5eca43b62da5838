/// Long lists, of which a command reads little: everything else is cut out of the answer before it is parsed.
///
/// Skipping runs at the speed of memchr, parsing builds a tree; with a thousand jobs and their pods that is most
/// of the time that `list` takes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/session.h"

namespace muster::cli {

/// Members to keep: no children, the whole value. "*" stands for every name; arrays are looked through.
struct Keep {
  std::string name;
  std::vector<Keep> children = {};
};

/// The text with only these members. The text must be JSON; where it is not, the result is not either.
std::string prune_json(std::string_view text, const std::vector<Keep>& keep);

/// What the tables about jobs read of a job's object and of a pod.
const std::vector<Keep>& job_members();
const std::vector<Keep>& pod_members();

/// As client::Client::list, but the items have only `members`.
Task<Result<std::vector<json::Value>>> lean_list(Session& session, const client::Resource& resource, std::string ns, const std::vector<Keep>& members);

}  // namespace muster::cli
