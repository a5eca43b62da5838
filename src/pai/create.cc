#include "pai/create.h"

#include <fmt/core.h>

#include "kube/framework.h"
#include "kube/meta.h"

namespace muster::pai {
namespace {

namespace r = client::resources;

/// A class of the job's own orders the queue of a kube-scheduler, and is the job's priority where there
/// are no cells. Who may not make one loses nothing where there are: there the pods say it themselves.
void drop_priority_class(json::Value& framework) {
  for (json::Value& role : json::make(framework, {"spec", "taskRoles"}).as_array())
    json::remove(role, {"task", "pod", "spec", "priorityClassName"});
}

/// The names of what is made before the Framework, which is the job.
struct Made {
  std::string priority_class;
  std::vector<std::string> secrets;
};

Task<void> take_back(client::Client& client, std::string ns, Made made) {
  if (!made.priority_class.empty()) {
    const auto removed = co_await client.remove(r::kPriorityClasses, "", made.priority_class, {});
    (void)removed;
  }
  for (const std::string& name : made.secrets) {
    const auto removed = co_await client.remove(r::kSecrets, ns, name, {});
    (void)removed;
  }
}

/// One of the same name is of a submission that never came to its Framework.
Task<Result<void>> put_secret(client::Client& client, std::string ns, json::Value secret) {
  const auto created = co_await client.create(r::kSecrets, ns, secret, client::Answer::kNone);
  if (created) co_return Result<void>();
  if (created.error().code != Code::kAlreadyExists) co_return fail(created.error());
  const auto updated = co_await client.update(r::kSecrets, std::move(secret));
  if (!updated) co_return fail(updated.error());
  co_return Result<void>();
}

Error exists(const Submission& made) {
  return {Code::kAlreadyExists, fmt::format("Job {} already exists.", job_id(made.user, made.job))};
}

}  // namespace

Task<Result<void>> adopt(client::Client& client,
                         std::string ns,
                         std::string secret,
                         const json::Value& framework) {
  json::Value owned = owned_by(json::Object{}, framework);
  const auto patched = co_await client.patch(r::kSecrets,
                                             std::move(ns),
                                             std::move(secret),
                                             "",
                                             client::PatchType::kMerge,
                                             std::move(owned),
                                             client::Answer::kNone);
  if (!patched) co_return fail(patched.error());
  co_return Result<void>();
}

Task<Result<Created>> create(client::Client& client, std::string ns, Submission made) {
  Created created;
  const auto there = co_await client.get(kube::resources::kFrameworks, ns, made.framework_name);
  if (there) co_return fail(exists(made));
  if (there.error().code != Code::kNotFound) co_return fail(there.error());
  Made so_far;
  const auto priority =
      co_await client.create(r::kPriorityClasses, "", made.priority_class, client::Answer::kNone);
  if (!priority && priority.error().code == Code::kForbidden) {
    drop_priority_class(made.framework);
    created.no_priority = priority.error();
  } else if (!priority && priority.error().code != Code::kAlreadyExists) {
    co_return fail(priority.error());
  } else {
    so_far.priority_class = std::string(kube::name_of(made.priority_class));
  }
  for (json::Value& secret : made.owned) {
    so_far.secrets.emplace_back(kube::name_of(secret));
    const auto put = co_await put_secret(client, ns, std::move(secret));
    if (put) continue;
    co_await take_back(client, ns, std::move(so_far));
    co_return fail(put.error());
  }
  auto framework = co_await client.create(kube::resources::kFrameworks, ns, made.framework);
  if (!framework) {
    if (framework.error().code == Code::kAlreadyExists) co_return fail(exists(made));
    co_await take_back(client, ns, std::move(so_far));
    co_return fail(framework.error());
  }
  // Where this fails the job runs nevertheless, and Leftovers does it later.
  for (const std::string& name : so_far.secrets) {
    const auto adopted = co_await adopt(client, ns, name, *framework);
    (void)adopted;
  }
  created.framework = std::move(*framework);
  co_return created;
}

}  // namespace muster::pai
