/// OpenPAI's paictl, for those who have the habit: `config get-id|pull|push` and `service
/// start|stop|refresh|delete`, through a link to this program named `paictl` or `paictl.py`.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/shell/session.h"
#include "hived/config_map.h"
#include "kube/meta.h"
#include "pai/deploy/services.h"

namespace muster::cli {
namespace {

using pai::Services;

/// What people type after a question; empty at the end of the input.
std::string ask(Session& session, std::string_view question) {
  session.console.out(question);
  session.console.flush();
  std::string answer;
  std::getline(std::cin, answer);
  return std::string(trim(answer));
}

/// Nobody changes the wrong cluster by habit.
Result<Services> confirmed(Session& session, Result<Services> services) {
  if (!services) return services;
  const std::string id = ask(session, "Please input the cluster-id which you wanna operate: ");
  if (id != services->cluster_id)
    return fail(Code::kForbidden,
                fmt::format("the cluster-id is {}, not {}; nothing is changed",
                            muster::quoted(services->cluster_id),
                            muster::quoted(id)));
  return services;
}

Task<int> run_get_id(Invocation& call) {
  const auto services = co_await pai::load_services(call.session.cluster());
  if (!services) co_return call.session.failed(services.error());
  call.session.console.info("Cluster-id is: " + services->cluster_id);
  co_return 0;
}

Task<Result<std::string>> cells_of_cluster(client::Client& client) {
  const auto map = co_await client.get(
      client::resources::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
  if (!map && map.error().code == Code::kNotFound) co_return std::string();
  if (!map) co_return fail(map.error());
  co_return json::text_at(*map, "data", hived::kConfigMapKey);
}

/// The nodes of the cluster as layout.yaml lists machines.
Task<Result<std::string>> layout_of_cluster(client::Client& client) {
  const auto nodes = co_await client.list(client::resources::kNodes, {});
  if (!nodes) co_return fail(nodes.error());
  json::Array machines;
  for (const json::Value& node : nodes->items) {
    const bool master = kube::label(node, "pai-master") == "true";
    std::string address;
    for (const json::Value& each : json::array_at(node, "status", "addresses"))
      if (json::string_at(each, "type") == "InternalIP") address = json::text_at(each, "address");
    machines.push_back(json::Object{{"hostname", kube::name_of(node)},
                                    {"hostip", address},
                                    {master ? "pai-master" : "pai-worker", "true"}});
  }
  co_return json::to_yaml(json::Object{{"machine-list", std::move(machines)}});
}

Result<void> write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  file.close();
  if (!file) return fail(Code::kInternal, fmt::format("{} cannot be written", path.string()));
  return {};
}

Task<int> run_pull(Invocation& call) {
  Session& session = call.session;
  const std::string folder = call.values.text("config-output-path");
  if (folder.empty()) co_return session.failed("config pull: name the folder with -o DIR");
  auto services = co_await pai::load_services(session.cluster());
  if (!services) co_return session.failed(services.error());
  if (services->configuration.empty()) {
    const auto cells = co_await cells_of_cluster(session.cluster());
    if (!cells) co_return session.failed(cells.error());
    services->configuration = pai::configuration_with(*cells);
  }
  if (services->layout.empty()) {
    const auto layout = co_await layout_of_cluster(session.cluster());
    if (!layout) co_return session.failed(layout.error());
    services->layout = *layout;
  }
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  for (const auto& [name, text] : {std::pair{pai::kLayoutFile, services->layout},
                                   std::pair{pai::kServicesFile, services->configuration}}) {
    const auto written = write_text(std::filesystem::path(folder) / name, text);
    if (!written) co_return session.failed(written.error());
  }
  session.console.info(fmt::format(
      "Configuration is pulled to {}: {}, {}", folder, pai::kLayoutFile, pai::kServicesFile));
  co_return 0;
}

Task<int> run_push(Invocation& call) {
  Session& session = call.session;
  const std::filesystem::path folder = call.values.text("cluster-conf-path");
  const std::string mode = call.values.text("push-mode");
  if (folder.empty()) co_return session.failed("config push: name the folder with -p DIR");
  if (mode != "service" && mode != "all")
    co_return session.failed(fmt::format("config push -m {}: wanted service or all", mode));
  std::filesystem::path file = folder / pai::kServicesFile;
  if (!std::filesystem::exists(file)) file = folder / pai::kServicesFileToo;
  const auto text = read_file(file.string());
  if (!text)
    co_return session.failed(fmt::format("{} has no {}", folder.string(), pai::kServicesFile));
  const auto cells = pai::cells_of(*text);
  if (!cells) co_return session.failed(file.string() + ": " + cells.error().message);
  const auto rest_server = pai::rest_server_of(*text);
  if (!rest_server) co_return session.failed(file.string() + ": " + rest_server.error().message);
  auto services = confirmed(session, co_await pai::load_services(session.cluster()));
  if (!services) co_return session.failed(services.error());
  services->configuration = *text;
  if (const auto layout = read_file((folder / pai::kLayoutFile).string()))
    services->layout = *layout;
  const auto saved = co_await pai::save_services(session.cluster(), *services);
  if (!saved) co_return session.failed(saved.error());
  session.console.info(
      "Cluster configuration is pushed. It takes effect when the services are started.");
  co_return 0;
}

/// -n takes several names.
Result<std::vector<std::string>> names_of(const Values& values) {
  const std::vector<std::string> known{pai::kRestServer, pai::kHivedScheduler};
  std::vector<std::string> names = values.args;
  if (const std::string first = values.text("service-name"); !first.empty())
    names.insert(names.begin(), first);
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      return fail(Code::kNotFound,
                  fmt::format("there is no service {}: this cluster has {}",
                              muster::quoted(name),
                              join(known, " and ")));
  }
  return names.empty() ? known : names;
}

/// The scheduler places pods of virtual clusters while hivedscheduler is started.
Task<Result<void>> hold_cells(client::Client& client, const Services& services) {
  auto held = co_await pai::stop_cells(client, services.stopped.contains(pai::kHivedScheduler));
  co_return held;
}

Task<int> run_stop(Invocation& call) {
  Session& session = call.session;
  const auto names = names_of(call.values);
  if (!names) co_return session.failed(names.error());
  auto services = confirmed(session, co_await pai::load_services(session.cluster()));
  if (!services) co_return session.failed(services.error());
  services->stopped.insert(names->begin(), names->end());
  const auto saved = co_await pai::save_services(session.cluster(), *services);
  if (!saved) co_return session.failed(saved.error());
  const auto held = co_await hold_cells(session.cluster(), *services);
  if (!held) co_return session.failed(held.error());
  for (const std::string& name : *names)
    session.console.info(fmt::format("{} is stopped; pods that run go on", name));
  co_return 0;
}

/// The scheduler takes the pushed cells over; rest-server needs it, so it comes first whatever the
/// order on the command line.
Task<int> run_start(Invocation& call) {
  Session& session = call.session;
  const auto names = names_of(call.values);
  if (!names) co_return session.failed(names.error());
  auto services = confirmed(session, co_await pai::load_services(session.cluster()));
  if (!services) co_return session.failed(services.error());
  const bool scheduler =
      std::find(names->begin(), names->end(), pai::kHivedScheduler) != names->end() ||
      services->stopped.contains(pai::kHivedScheduler);
  if (scheduler && !services->configuration.empty()) {
    const auto cells = pai::cells_of(services->configuration);
    if (!cells) co_return session.failed(cells.error());
    if (!cells->empty()) {
      const auto applied = co_await pai::apply_cells(session.cluster(), *cells);
      if (!applied) co_return session.failed(applied.error());
    }
  }
  if (scheduler) services->stopped.erase(pai::kHivedScheduler);
  for (const std::string& name : *names) services->stopped.erase(name);
  if (!services->configuration.empty() && !services->stopped.contains(pai::kRestServer)) {
    const auto rest_server = pai::rest_server_of(services->configuration);
    if (!rest_server) co_return session.failed(rest_server.error());
    services->rest_server = *rest_server;
  }
  const auto held = co_await hold_cells(session.cluster(), *services);
  if (!held) co_return session.failed(held.error());
  const auto saved = co_await pai::save_services(session.cluster(), *services);
  if (!saved) co_return session.failed(saved.error());
  for (const std::string& name : *names) session.console.info(fmt::format("{} is started", name));
  co_return 0;
}

Task<int> run_delete_services(Invocation& call) {
  Session& session = call.session;
  const auto names = names_of(call.values);
  if (!names) co_return session.failed(names.error());
  for (int i = 0; i < 3; ++i) {
    const std::string answer = to_lower(
        ask(session,
            fmt::format("Stop {} and forget the pushed configuration? Users and jobs stay. (Y/N) ",
                        join(*names, " and "))));
    if (answer == "n" || answer == "no") co_return 0;
    if (answer != "y" && answer != "yes") continue;
    auto services = co_await pai::load_services(session.cluster());
    if (!services) co_return session.failed(services.error());
    services->stopped.insert(names->begin(), names->end());
    services->configuration.clear();
    const auto saved = co_await pai::save_services(session.cluster(), *services);
    if (!saved) co_return session.failed(saved.error());
    const auto held = co_await hold_cells(session.cluster(), *services);
    if (!held) co_return session.failed(held.error());
    session.console.info("The services are deleted.");
    co_return 0;
  }
  co_return session.failed("three answers were neither Y nor N; nothing is deleted");
}

std::vector<Flag> shared_flags() {
  return {{.name = "kubeconfig",
           .shorthand = 'c',
           .help = "the cluster (default: as for every command, see muster get --help)",
           .completes = Completes::kFiles,
           .value_name = "FILE"},
          {.name = "context", .help = "a context of the kubeconfig", .value_name = "NAME"}};
}

Command make(std::string name,
             std::string summary,
             Task<int> (*work)(Invocation&),
             std::vector<Flag> own) {
  Command made;
  made.name = std::move(name);
  made.summary = std::move(summary);
  made.flags = shared_flags();
  made.flags.insert(made.flags.end(), own.begin(), own.end());
  made.run = InSession{work};
  return made;
}

Command config_command() {
  Command made;
  made.name = "config";
  made.summary = "The cluster's configuration: which it is, fetch it, store a new one";
  made.children = {
      make("get-id", "Say which cluster this is", &run_get_id, {}),
      make("pull",
           "Write the configuration to a folder",
           &run_pull,
           {{.name = "config-output-path",
             .shorthand = 'o',
             .help = "the folder",
             .completes = Completes::kFiles,
             .value_name = "DIR"}}),
      make("push",
           "Store the configuration of a folder; it takes effect when services are started",
           &run_push,
           {{.name = "cluster-conf-path",
             .shorthand = 'p',
             .help = "the folder with services-configuration.yaml",
             .completes = Completes::kFiles,
             .value_name = "DIR"},
            {.name = "push-mode",
             .shorthand = 'm',
             .value = "all",
             .help = "service or all",
             .completes = Completes::kWords,
             .words = {"service", "all"},
             .value_name = "MODE"}})};
  made.children.back().examples = "  paictl.py config push -p /cluster-configuration -m service\n";
  return made;
}

Command service_command() {
  const std::vector<Flag> named{{.name = "service-name",
                                 .shorthand = 'n',
                                 .help = "rest-server, hivedscheduler or both (default: both)",
                                 .completes = Completes::kWords,
                                 .words = {pai::kRestServer, pai::kHivedScheduler},
                                 .value_name = "NAME…"}};
  Command made;
  made.name = "service";
  made.summary = "Start, stop and refresh OpenPAI's services";
  made.children = {make("start", "Start services with the pushed configuration", &run_start, named),
                   make("stop", "Stop services; pods that run go on", &run_stop, named),
                   make("refresh", "Take the pushed configuration over", &run_start, named),
                   make("delete",
                        "Stop services and forget the pushed configuration",
                        &run_delete_services,
                        named)};
  for (Command& child : made.children) child.arguments = "[NAME…]";
  made.children[0].examples = "  paictl.py service start -n rest-server hivedscheduler\n";
  return made;
}

}  // namespace

command::Program paictl_program(std::string name) {
  return {std::move(name),
          "manages OpenPAI's services on a cluster of Muster",
          {{.title = "Commands",
            .manual_title = "COMMANDS",
            .commands = {config_command(), service_command()},
            .strict = true}}};
}

}  // namespace muster::cli
