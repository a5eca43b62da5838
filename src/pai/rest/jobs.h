/// What the routes of jobs work with.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/client.h"
#include "pai/cells/cells.h"
#include "pai/index/job_index.h"
#include "pai/people/people.h"
#include "pai/rest/api.h"
#include "pai/rest/attempts.h"
#include "pai/rest/limits.h"

namespace muster::pai::rest {

/// Where OpenPAI's jobs and their storages live.
inline constexpr const char* kJobsNamespace = "default";

struct Jobs {
  Env& env;
  client::Client& client;
  People& people;
  Cells& cells;
  JobIndex& index;
  Attempts& attempts;
  RateLimit lists, submits;
  std::string scheduler, runtime_image;  // see RestOptions
  /// Frameworks that are being made: a second submission of the name meanwhile is one too many.
  std::set<std::string> making;
};

/// "user~job" of the path; 404 NoJobError for one that is not there.
Answer<const Job*> find_job(const JobIndex& index, const std::string& id);
/// The owner or an administrator; 403 for others.
Answer<void> check_owner(const Call& call, const Job& job);

/// The claims that the caller's groups name.
struct Storages {
  std::vector<json::Value> claims;
  std::vector<std::string> allowed, defaults;
};
Task<Answer<Storages>> storages_of(People& people, client::Client& client, std::string user);

/// `jobs` outlives the routes.
std::vector<Route> job_routes(Jobs& jobs);
std::vector<Route> submit_routes(Jobs& jobs);
std::vector<Route> task_routes(Jobs& jobs);

}  // namespace muster::pai::rest
