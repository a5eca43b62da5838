/// `submit pai FILE`: a job of OpenPAI's protocol, checked and made by the same code as OpenPAI's REST
/// API (pai/protocol).
#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/submit/submit_run.h"
#include "hived/config_map.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "pai/protocol/submit.h"

namespace muster::cli {
namespace {

namespace r = client::resources;

/// OpenPAI's users are letters, digits and `_.-`; those of a Kubernetes may be more.
std::string pai_user(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (!plain) c = '-';
  }
  return name;
}

/// Cells, if the cluster has any and lets the caller see them; else its queues. What is not known is
/// not held against the job: the cluster decides when it comes to it.
Task<pai::Facts> read_facts(Session& session, std::string protocol) {
  pai::Facts facts;
  if (session.connected()) {
    const auto map = co_await session.cluster().get(
        r::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
    if (map) {
      const auto config = hived::parse_config(json::string_at(*map, "data", hived::kConfigMapKey));
      if (config) facts = pai::facts_of(*config);
    }
    const auto claims =
        co_await session.cluster().list(r::kPersistentVolumeClaims, {.ns = session.ns});
    if (claims) {
      for (const json::Value& claim : claims->items) {
        const std::string name(kube::name_of(claim));
        facts.storages[name] = {name, kube::label(claim, "share") != "false"};
      }
    }
    if (!facts.hived) {
      const auto queues = co_await session.cluster().list(r::kQueues, {});
      if (queues) {
        for (const json::Value& queue : queues->items)
          facts.virtual_clusters[std::string(kube::name_of(queue))] = {};
      }
    }
  }
  if (facts.virtual_clusters.empty()) {
    const auto parsed = json::parse_yaml_one(protocol);
    std::string named = parsed ? json::text_at(*parsed, "defaults", "virtualCluster") : "";
    facts.virtual_clusters[named.empty() ? "default" : named] = {};
  }
  facts.ns = session.ns;
  facts.now = session.now();
  co_return facts;
}

/// A class of the job's own orders the queue of a kube-scheduler, and is the job's priority where there
/// are no cells. Who may not make one loses nothing where there are: there the pods say it themselves.
void drop_priority_class(json::Value& framework) {
  for (json::Value& role : json::make(framework, {"spec", "taskRoles"}).as_array())
    json::remove(role, {"task", "pod", "spec", "priorityClassName"});
}

Task<Result<json::Value>> create_all(Session& session, pai::Submission made, bool hived) {
  client::Client& cluster = session.cluster();
  const auto priority = co_await cluster.create(r::kPriorityClasses, "", made.priority_class);
  if (!priority && priority.error().code == Code::kForbidden) {
    drop_priority_class(made.framework);
    if (!hived)
      session.console.warn(
          fmt::format("the job has no priority, since you may not make its PriorityClass: {}",
                      priority.error().message));
  } else if (!priority && priority.error().code != Code::kAlreadyExists) {
    co_return fail(priority.error());
  }
  auto framework =
      co_await cluster.create(kube::resources::kFrameworks, session.ns, made.framework);
  if (!framework) {
    if (framework.error().code == Code::kAlreadyExists)
      co_return fail(Code::kAlreadyExists,
                     fmt::format("Job {} already exists.", pai::job_id(made.user, made.job)));
    const auto removed = co_await cluster.remove(
        r::kPriorityClasses, "", std::string(kube::name_of(made.priority_class)), {});
    (void)removed;
    co_return fail(framework.error());
  }
  for (json::Value& object : made.owned) {
    const auto secret = co_await cluster.create(
        r::kSecrets, session.ns, pai::owned_by(std::move(object), *framework));
    if (secret || secret.error().code == Code::kAlreadyExists) continue;
    // Its pods would wait for it for ever.
    const auto removed =
        co_await cluster.remove(kube::resources::kFrameworks, session.ns, made.framework_name, {});
    (void)removed;
    co_return fail(secret.error());
  }
  co_return framework;
}

std::string dry_run(const pai::Submission& made) {
  std::string text = json::to_yaml(made.priority_class) + "---\n" + json::to_yaml(made.framework);
  for (const json::Value& object : made.owned) text += "---\n" + json::to_yaml(object);
  return text;
}

}  // namespace

Task<int> run_submit_pai(Invocation& call) {
  Session& session = call.session;
  const std::string path = call.values.args[0];
  const std::string wait = call.values.text("wait");
  if (!wait.empty() && wait != "finished" && wait != "running")
    co_return session.failed(fmt::format("--wait={}: want finished or running", wait));
  const auto text = read_file(path);
  if (!text) co_return session.failed(fmt::format("{}: cannot be read", path));
  const pai::Facts facts = co_await read_facts(session, *text);
  const std::string user = co_await session.user();
  auto made = pai::submit(*text, pai_user(user), facts);
  if (!made) co_return session.failed(fmt::format("{}: {}", path, made.error().message));
  if (call.values.yes("dry-run")) {
    session.console.out(dry_run(*made));
    co_return 0;
  }
  const std::string name = made->job;
  const auto created = co_await create_all(session, std::move(*made), facts.hived);
  if (!created) co_return session.failed(created.error());
  session.console.info(fmt::format("The Job {} has been submitted successfully", name));
  session.console.info(
      fmt::format("You can run `{} get {} --type paijob{}` to check the job status",
                  session.program,
                  name,
                  session.ns_given ? " -n " + session.ns : ""));
  if (wait.empty()) co_return 0;
  const int code = co_await wait_for_job(session,
                                         name,
                                         "paijob",
                                         kube::resources::kFrameworks,
                                         wait == "running",
                                         call.values.duration("timeout"));
  co_return code;
}

}  // namespace muster::cli
