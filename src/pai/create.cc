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

}  // namespace

Task<Result<Created>> create(client::Client& client, std::string ns, Submission made) {
  Created created;
  const auto priority =
      co_await client.create(r::kPriorityClasses, "", made.priority_class, client::Answer::kNone);
  if (!priority && priority.error().code == Code::kForbidden) {
    drop_priority_class(made.framework);
    created.no_priority = priority.error();
  } else if (!priority && priority.error().code != Code::kAlreadyExists) {
    co_return fail(priority.error());
  }
  auto framework = co_await client.create(kube::resources::kFrameworks, ns, made.framework);
  if (!framework) {
    if (framework.error().code == Code::kAlreadyExists)
      co_return fail(Code::kAlreadyExists,
                     fmt::format("Job {} already exists.", job_id(made.user, made.job)));
    const auto removed = co_await client.remove(
        r::kPriorityClasses, "", std::string(kube::name_of(made.priority_class)), {});
    (void)removed;
    co_return fail(framework.error());
  }
  for (json::Value& object : made.owned) {
    const auto secret =
        co_await client.create(r::kSecrets, ns, owned_by(std::move(object), *framework));
    if (secret || secret.error().code == Code::kAlreadyExists) continue;
    // Its pods would wait for it for ever.
    const auto removed =
        co_await client.remove(kube::resources::kFrameworks, ns, made.framework_name, {});
    (void)removed;
    co_return fail(secret.error());
  }
  created.framework = std::move(*framework);
  co_return created;
}

}  // namespace muster::pai
