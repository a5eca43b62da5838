/// A new job: what the cluster has to say to it, and then its objects.
#include "pai/protocol/submit.h"

#include <fmt/core.h>

#include <algorithm>

#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "pai/create.h"
#include "pai/people/records.h"
#include "pai/rest/jobs.h"
#include "pai/rest/routes.h"

namespace muster::pai::rest {
namespace {

/// The keys in the user's profile.
std::vector<std::string> ssh_keys(const UserRecord& user) {
  std::vector<std::string> keys;
  for (const json::Value& key : json::array_at(json::Value(user.extension), "sshKeys"))
    if (const std::string value = json::text_at(key, "value"); !value.empty())
      keys.push_back(value);
  return keys;
}

Task<Answer<Facts>> facts_for(Jobs& jobs, std::string user) {
  const auto storages = co_await storages_of(jobs.people, jobs.client, user);
  if (!storages) co_return refuse(storages.error());
  Facts facts = jobs.cells.facts();
  for (const json::Value& claim : storages->claims) {
    const std::string name(kube::name_of(claim));
    if (contains(storages->allowed, name))
      facts.storages[name] = {name, kube::label(claim, "share") != "false"};
  }
  for (const std::string& name : storages->defaults)
    if (facts.storages.contains(name)) facts.default_storages.push_back(name);
  if (const UserRecord* record = jobs.people.directory().find_user(user))
    facts.ssh_keys = ssh_keys(*record);
  facts.job_exists = [&jobs](const std::string& framework) {
    return jobs.index.find(framework) != nullptr || jobs.making.contains(framework);
  };
  facts.may_use = [&jobs, user](const std::string& vc) { return jobs.people.may_use(user, vc); };
  const auto& nodes = jobs.cells.nodes();
  const auto any = [&nodes](std::string_view label) {
    return std::any_of(nodes.begin(), nodes.end(), [label](const auto& node) {
      return kube::label(*node.second, label) == "true";
    });
  };
  facts.worker_label = any("pai-worker");
  facts.host_network = !nodes.empty() && !any(kube::names::kVirtual);
  facts.ns = kJobsNamespace;
  facts.scheduler = jobs.scheduler;
  if (!jobs.runtime_image.empty()) facts.runtime_image = jobs.runtime_image;
  facts.now = jobs.env.now();
  co_return facts;
}

Task<Answer<void>> create_objects(Jobs& jobs, Submission made) {
  const std::string name = made.framework_name;
  jobs.making.insert(name);
  const auto created = co_await create(jobs.client, kJobsNamespace, std::move(made));
  jobs.making.erase(name);
  if (!created && created.error().code == Code::kAlreadyExists)
    co_return refuse(409, "ConflictJobError", created.error().message);
  if (!created) co_return refuse(created.error());
  jobs.index.wrote(created->framework);
  co_return Answer<void>();
}

Task<Answer<Reply>> submit_job(Jobs& jobs, Call& call) {
  const std::string user = call.caller.user;
  // Ours, not OpenPAI's: what would be made, and nothing is.
  const bool dry_run = call.target.get("dryRun") == "All";
  const Duration wait = dry_run ? Duration::zero() : jobs.submits.ask(user, jobs.env.monotonic());
  if (wait > Duration::zero()) co_return refuse(too_often(wait));
  const auto facts = co_await facts_for(jobs, user);
  if (!facts) co_return refuse(facts.error());
  auto made = submit(call.request.body, user, *facts);
  if (!made) co_return refuse(made.error());
  const std::string job = made->job;
  if (dry_run)
    co_return Reply{.status = 200,
                    .body = json::Object{{"name", job}, {"framework", made->framework}}};
  const auto created = co_await create_objects(jobs, std::move(*made));
  if (!created) co_return refuse(created.error());
  co_return Reply{
      .status = 202,
      .body = json::Object{
          {"status", 202},
          {"message", fmt::format("Update job {} for user {} successfully.", job, user)}}};
}

}  // namespace

std::vector<Route> submit_routes(Jobs& jobs) {
  return {{"POST", "jobs", Who::kPrograms, [&jobs](Call& call) { return submit_job(jobs, call); }}};
}

}  // namespace muster::pai::rest
