/// What the routes of jobs work with.
#pragma once

#include <functional>
#include <optional>
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

/// What container `app` of a pod that is gone wrote, the last `bytes_max` of it; nothing if it was not
/// kept.
using FormerLog =
    std::function<Task<std::optional<std::string>>(std::string pod_uid, std::size_t bytes_max)>;

struct Jobs {
  Env& env;
  client::Client& client;
  People& people;
  Cells& cells;
  JobIndex& index;
  Attempts& attempts;
  RateLimit lists, submits;
  std::string scheduler, runtime_image;  // see RestOptions
  FormerLog former_log;                  // empty: none is kept
  /// Frameworks that are being made: a second submission of the name meanwhile is one too many.
  std::set<std::string> making;
};

/// "user~job" of the path; 404 NoJobError for one that is not there.
Answer<const ListedJob*> find_job(const JobIndex& index, const std::string& id);
/// The owner or an administrator; 403 for others.
Answer<void> check_owner(const Call& call, const ListedJob& job);

/// A JSON answer made of a Framework. Of one with many tasks it is made beside the loop, which nothing
/// may hold for long; `make` must look at nothing else that changes.
Task<Reply> made_of(Env& env,
                    client::ObjectPtr framework,
                    std::function<json::Value(const json::Value& framework)> make);

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
