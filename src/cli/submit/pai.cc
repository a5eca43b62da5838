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
#include "pai/create.h"
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
  const auto created = co_await pai::create(session.cluster(), session.ns, std::move(*made));
  if (!created) co_return session.failed(created.error());
  if (created->no_priority && !facts.hived)
    session.console.warn(
        fmt::format("the job has no priority, since you may not make its PriorityClass: {}",
                    created->no_priority->message));
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
