/// `pai import DIR`: takes an OpenPAI over that somebody left (pai/deploy/exported.h), and says of each
/// thing what became of it.
#include <fmt/core.h>

#include <set>

#include "base/strings.h"
#include "cli/cli.h"
#include "cli/shell/commands.h"
#include "cli/shell/session.h"
#include "cli/submit/pai_facts.h"
#include "hived/config_map.h"
#include "kube/framework.h"
#include "pai/create.h"
#include "pai/deploy/exported.h"
#include "pai/deploy/services.h"

namespace muster::cli {
namespace {

namespace r = client::resources;

/// What was done, line by line, and how often.
class Report {
 public:
  explicit Report(Session& session) : session_(session) {}
  void added(std::string_view what, std::string_view how) { tell(what, how, added_); }
  void known(std::string_view what, std::string_view how = "is here already") {
    tell(what, how, known_);
  }
  void failed(std::string_view what, std::string_view why) { tell(what, why, failed_); }
  void note(std::string_view text) { session_.console.out(fmt::format("  {}\n", text)); }

  int close(bool dry) {
    session_.console.out(fmt::format("{}{} added, {} here already, {} not taken over\n",
                                     dry ? "dry run, nothing is changed: " : "",
                                     added_,
                                     known_,
                                     failed_));
    return failed_ == 0 ? 0 : 1;
  }

 private:
  void tell(std::string_view what, std::string_view how, int& count) {
    ++count;
    session_.console.out(fmt::format("{}: {}\n", what, how));
  }

  Session& session_;
  int added_ = 0, known_ = 0, failed_ = 0;
};

struct Import {
  Session& session;
  pai::Exported exported;
  Report report;
  bool dry = false, start = false;
};

Task<Result<std::string>> live_cells(client::Client& client) {
  const auto map =
      co_await client.get(r::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
  if (!map && map.error().code == Code::kNotFound) co_return std::string();
  if (!map) co_return fail(map.error());
  co_return json::text_at(*map, "data", hived::kConfigMapKey);
}

/// A cluster that has cells of its own keeps them: people decide that, with a preview.
Task<void> import_services(Import& all) {
  if (all.exported.configuration.empty()) co_return;
  client::Client& client = all.session.cluster();
  const auto cells = pai::cells_of(all.exported.configuration);
  const auto rest_server = pai::rest_server_of(all.exported.configuration);
  if (!cells || !rest_server) {
    all.report.failed(pai::kServicesFile, (cells ? rest_server.error() : cells.error()).message);
    co_return;
  }
  auto services = co_await pai::load_services(client);
  const auto live = co_await live_cells(client);
  if (!services || !live) {
    all.report.failed(pai::kServicesFile, (services ? live.error() : services.error()).message);
    co_return;
  }
  if (services->configuration == all.exported.configuration) {
    all.report.known(pai::kServicesFile, "is pushed already");
    co_return;
  }
  services->configuration = all.exported.configuration;
  if (!all.exported.layout.empty()) services->layout = all.exported.layout;
  Result<void> done;
  if (!all.dry) done = co_await pai::save_services(client, *services);
  const bool fresh = live->empty() && !cells->empty();
  if (done && fresh && !all.dry) done = co_await pai::apply_cells(client, *cells);
  if (!done) {
    all.report.failed(pai::kServicesFile, done.error().message);
    co_return;
  }
  all.report.added(pai::kServicesFile,
                   fresh            ? "pushed, and its cells are the cluster's"
                   : cells->empty() ? "pushed; it has no cells"
                                    : "pushed");
  if (!fresh && !cells->empty() && *live != *cells)
    all.report.note(
        "The cluster has cells already and keeps them. See what the pushed ones do with 'muster "
        "hived check', take them over with 'paictl service start'.");
}

/// A record's Secret, as it was; one that is there stays.
Task<void> put_secret(Import& all, std::string what, json::Value secret, std::string how) {
  client::Client& client = all.session.cluster();
  const std::string ns(json::string_at(secret, "metadata", "namespace"));
  const std::string name(json::string_at(secret, "metadata", "name"));
  if (all.dry) {
    const auto there = co_await client.get(r::kSecrets, ns, name);
    if (there)
      all.report.known(what);
    else
      all.report.added(what, how);
    co_return;
  }
  const auto created = co_await client.create(r::kSecrets, ns, std::move(secret));
  if (created)
    all.report.added(what, how);
  else if (created.error().code == Code::kAlreadyExists)
    all.report.known(what);
  else
    all.report.failed(what, created.error().message);
}

Task<void> import_people(Import& all) {
  for (const pai::GroupRecord& group : all.exported.groups) {
    json::Value secret;
    pai::write_group(group, secret);
    co_await put_secret(all, "group " + group.name, std::move(secret), "added");
  }
  for (const pai::UserRecord& user : all.exported.users) {
    json::Value secret;
    pai::write_user(user, secret);
    const bool usable = !user.password.empty();
    co_await put_secret(all,
                        "user " + user.name,
                        std::move(secret),
                        usable ? "added, with their password"
                               : "added without a password: an administrator sets one");
  }
  if (!all.exported.users.empty())
    all.report.note(
        "Tokens are not taken over: people log in again, and make new ones for programs.");
}

Task<void> import_job(Import& all, const pai::ExportedJob& job, std::set<std::string>& masked) {
  const std::string id = pai::job_id(job.user, job.name);
  const auto [protocol, had_secrets] = pai::without_masked_secrets(job.protocol);
  const pai::Facts facts = co_await pai_facts(all.session, protocol);
  auto made = pai::submit(protocol, job.user, facts);
  if (!made) {
    all.report.failed("job " + id, made.error().message);
    co_return;
  }
  if (made->job != job.name) {
    all.report.failed("job " + id,
                      fmt::format("the file has this name, but the job in it is {}", made->job));
    co_return;
  }
  if (!all.start) json::make(made->framework, {"spec", "executionType"}) = "Stop";
  Result<void> done;
  if (all.dry) {
    const auto there = co_await all.session.cluster().get(
        kube::resources::kFrameworks, facts.ns, made->framework_name);
    if (there) done = fail(Code::kAlreadyExists, "");
  } else {
    const auto created = co_await pai::create(all.session.cluster(), facts.ns, std::move(*made));
    if (!created) done = fail(created.error());
  }
  if (!done && done.error().code == Code::kAlreadyExists) {
    all.report.known("job " + id);
  } else if (!done) {
    all.report.failed("job " + id, done.error().message);
  } else {
    all.report.added("job " + id, all.start ? "submitted" : "kept, stopped");
    if (had_secrets) masked.insert(id);
  }
}

Task<int> run_import(Invocation& call) {
  Session& session = call.session;
  auto exported = pai::read_exported(call.values.args[0]);
  if (!exported) co_return session.failed(exported.error());
  Import all{session,
             std::move(*exported),
             Report(session),
             call.values.yes("dry-run"),
             call.values.yes("start-jobs")};
  for (const std::string& problem : all.exported.problems) {
    const std::size_t colon = problem.find(": ");
    all.report.failed(problem.substr(0, colon), problem.substr(colon + 2));
  }
  co_await import_services(all);
  co_await import_people(all);
  std::set<std::string> masked;
  for (const pai::ExportedJob& job : all.exported.jobs) co_await import_job(all, job, masked);
  if (!masked.empty())
    all.report.note(fmt::format(
        "OpenPAI masks secrets, so these jobs have none; give them when you submit them again: {}",
        join(std::vector<std::string>(masked.begin(), masked.end()), ", ")));
  if (!all.start && !all.exported.jobs.empty())
    all.report.note(
        "Jobs are kept with their configuration and do not run: clone them in the portal, or import "
        "with --start-jobs.");
  co_return all.report.close(all.dry);
}

}  // namespace

Command pai_command() {
  Command import;
  import.name = "import";
  import.arguments = "DIR";
  import.summary =
      "Import users, groups, service configuration and jobs of an OpenPAI from a folder";
  import.details =
      "DIR contains any of: services-configuration.yaml and layout.yaml (paictl config pull), users.yaml and groups.yaml (kubectl get secrets -n pai-user-v2 -o yaml, -n pai-group), jobs/USER~JOB.yaml (GET /api/v2/jobs/USER~JOB/config). What exists already is left unchanged, so the command can be repeated. Exits with 1 if something could not be imported.";
  import.examples = "  muster pai import --dry-run ~/openpai\n  muster pai import ~/openpai\n";
  import.flags = {{.name = "dry-run",
                   .type = FlagType::kBool,
                   .value = "false",
                   .help = "say what would be done, change nothing"},
                  {.name = "start-jobs",
                   .type = FlagType::kBool,
                   .value = "false",
                   .help = "submit the jobs again instead of keeping them as stopped jobs"},
                  {.name = "kubeconfig",
                   .help = "the cluster (default: as for every command, see muster get --help)",
                   .completes = Completes::kFiles,
                   .value_name = "FILE"},
                  {.name = "context", .help = "a context of the kubeconfig", .value_name = "NAME"}};
  import.completes = Completes::kFiles;
  import.run = InSession{&run_import};
  Command made;
  made.name = "pai";
  made.summary = "Take over an OpenPAI";
  made.children = {std::move(import)};
  return made;
}

}  // namespace muster::cli
