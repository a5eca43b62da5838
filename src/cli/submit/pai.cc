/// `submit pai FILE`: a job of OpenPAI's protocol, checked and made by the same code as OpenPAI's REST
/// API (pai/protocol).
#include <fmt/core.h>

#include "base/files.h"
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/submit/pai_facts.h"
#include "cli/submit/submit_run.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "pai/create.h"
#include "pai/protocol/submit.h"

namespace muster::cli {
namespace {

/// OpenPAI's users are letters, digits and `_.-`; those of a Kubernetes may be more.
std::string pai_user(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '.' || c == '-';
    if (!plain) c = '-';
  }
  return name;
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
    co_return session.failed(fmt::format("--wait={}: wanted finished or running", wait));
  const auto text = read_file(path);
  if (!text) co_return session.failed(fmt::format("{}: cannot be read", path));
  const pai::Facts facts = co_await pai_facts(session, *text);
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
