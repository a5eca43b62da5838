/// `hived tree`, `hived check` and `hived apply`: the cells of HiveD's virtual clusters, for people.
#include <fmt/core.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "base/files.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/shell/commands.h"
#include "cli/shell/session.h"
#include "hived/annotations.h"
#include "hived/config.h"
#include "hived/config_map.h"
#include "hived/explain.h"
#include "hived/tree.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "pai/deploy/services.h"

namespace muster::cli {
namespace {

struct Seen {
  hived::Config config;
  std::vector<hived::RunningPod> pods;  // oldest first
  std::vector<std::pair<std::string, bool>> nodes;
};

Error named(const std::string& name, Error error) {
  error.message = fmt::format("{}: {}", name, error.message);
  return error;
}

Result<hived::Config> config_of_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  auto config = hived::parse_config(*text);
  if (!config) return fail(named(path, config.error()));
  return config;
}

/// The configuration of a file, refused if its cells are.
Result<hived::Config> right_file(const std::string& path) {
  auto config = config_of_file(path);
  if (!config) return config;
  const auto checked = hived::check_cells(*config);
  if (!checked) return fail(named(path, checked.error()));
  return config;
}

bool healthy(const json::Value& node) {
  if (json::bool_at(node, "spec", "unschedulable")) return false;
  const json::Array conditions = json::array_at(node, "status", "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [](const json::Value& condition) {
    return json::string_at(condition, "type") == "Ready" &&
           json::string_at(condition, "status") == "True";
  });
}

/// Only a bound pod that carries its cells; others hold none.
std::optional<hived::RunningPod> running(const json::Value& pod) {
  if (kube::pod_finished(pod) || json::string_at(pod, "spec", "nodeName").empty())
    return std::nullopt;
  const std::string ns(kube::namespace_of(pod)), name(kube::name_of(pod));
  const auto spec =
      hived::parse_scheduling_spec(kube::annotation(pod, hived::kSchedulingSpec), ns, name);
  const auto bind = hived::parse_bind_info(kube::annotation(pod, hived::kBindInfo));
  if (!spec || !bind) return std::nullopt;
  return hived::RunningPod{{std::string(kube::uid_of(pod)), ns + "/" + name}, *spec, *bind};
}

/// What the cluster remembers.
Task<Result<hived::Config>> config_of_cluster(client::Client& client) {
  const std::string where =
      fmt::format("ConfigMap {}/{}", hived::kConfigMapNamespace, hived::kConfigMapName);
  const auto map = co_await client.get(
      client::resources::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
  if (!map && map.error().code != Code::kNotFound) co_return fail(map.error());
  if (!map || !json::at(*map, "data", hived::kConfigMapKey).is_string())
    co_return fail(
        Code::kNotFound,
        fmt::format(
            "this cluster has no {} with HiveD's configuration; start it with 'muster up --hived-config FILE', or name the file with --hived-config",
            where));
  auto config = hived::parse_config(json::string_at(*map, "data", hived::kConfigMapKey));
  if (!config) co_return fail(named(where, config.error()));
  co_return config;
}

Task<Result<Seen>> look(client::Client& client, const std::string& config_file) {
  Seen seen;
  Result<hived::Config> config = hived::Config();
  if (config_file.empty())
    config = co_await config_of_cluster(client);
  else
    config = config_of_file(config_file);
  if (!config) co_return fail(config.error());
  seen.config = std::move(*config);
  const auto nodes = co_await client.list(client::resources::kNodes, {});
  if (!nodes) co_return fail(nodes.error());
  for (const json::Value& node : nodes->items)
    seen.nodes.emplace_back(kube::name_of(node), healthy(node));
  auto pods = co_await client.list(client::resources::kPods, {});
  if (!pods) co_return fail(pods.error());
  std::stable_sort(
      pods->items.begin(), pods->items.end(), [](const json::Value& a, const json::Value& b) {
        return kube::creation_time(a) < kube::creation_time(b);
      });
  for (const json::Value& pod : pods->items) {
    auto found = running(pod);
    if (found) seen.pods.push_back(std::move(*found));
  }
  co_return seen;
}

Task<int> run_tree(Invocation& call) {
  Session& session = call.session;
  const std::string output = call.values.text("output");
  if (!output.empty() && output != "json")
    co_return session.failed(fmt::format("-o {}: wanted json, or nothing for text", output));
  const auto seen = co_await look(session.cluster(), call.values.text("hived-config"));
  if (!seen) co_return session.failed(seen.error());
  const auto occupied = hived::occupy(seen->config, seen->nodes, seen->pods, session.now());
  if (!occupied) co_return session.failed(occupied.error());
  for (const std::string& pod : occupied->misplaced) session.console.warn(pod);
  if (output == "json") {
    session.console.out(json::dump_pretty(hived::tree_json(occupied->cells)) + "\n");
    co_return 0;
  }
  hived::TreeOptions how;
  how.colours = session.console.colours();
  how.devices = call.values.yes("devices");
  session.console.out(hived::tree_text(occupied->cells, how));
  co_return 0;
}

/// What can be said of a new file without the cells of now.
int check_alone(Session& session, const std::string& path, const std::string& why) {
  const auto config = right_file(path);
  if (!config) return session.failed(config.error().message);
  for (const std::string& warning : config->warnings)
    session.console.out(fmt::format("warning: {}\n", warning));
  session.console.out(fmt::format("{} is right: {}\nnot compared with running gangs: {}\n",
                                  path,
                                  hived::describe(*config),
                                  why));
  return 0;
}

Task<int> run_check(Invocation& call) {
  Session& session = call.session;
  const std::string& path = call.values.args[0];
  if (!session.connected()) co_return check_alone(session, path, session.unconnected_because);
  const auto seen = co_await look(session.cluster(), call.values.text("hived-config"));
  if (!seen && seen.error().code == Code::kNotFound)
    co_return check_alone(session, path, seen.error().message);
  if (!seen) co_return session.failed(seen.error());
  const auto fresh = right_file(path);
  if (!fresh) co_return session.failed(fresh.error().message);
  const auto report = hived::check(seen->config, *fresh, seen->pods);
  if (!report) co_return session.failed(report.error().message);
  session.console.out(hived::to_string(*report));
  co_return 0;
}

/// Whether a gang loses what it was promised.
bool takes_away(const hived::CheckReport& report) {
  using Effect = hived::GroupChange::Effect;
  return std::any_of(report.changes.begin(), report.changes.end(), [](const auto& change) {
    return change.effect == Effect::kDowngraded || change.effect == Effect::kCellsLost;
  });
}

bool agreed(Session& session) {
  session.console.out("These gangs lose their guarantee. Apply anyway? [y/N] ");
  session.console.flush();
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

Task<int> run_apply(Invocation& call) {
  Session& session = call.session;
  const std::string& path = call.values.args[0];
  const auto fresh = right_file(path);
  if (!fresh) co_return session.failed(fresh.error().message);
  const auto text = read_file(path);
  if (!text) co_return session.failed(text.error().message);
  const auto seen = co_await look(session.cluster(), "");
  if (!seen && seen.error().code != Code::kNotFound) co_return session.failed(seen.error());
  if (seen) {
    const auto report = hived::check(seen->config, *fresh, seen->pods);
    if (!report) co_return session.failed(report.error().message);
    session.console.out(hived::to_string(*report));
    if (takes_away(*report) && !call.values.yes("yes") && !agreed(session))
      co_return session.failed("nothing is changed; --yes applies without asking");
  }
  const auto applied = co_await pai::apply_cells(session.cluster(), *text);
  if (!applied) co_return session.failed(applied.error());
  session.console.out(fmt::format("applied {}: {}\n", path, hived::describe(*fresh)));
  co_return 0;
}

}  // namespace

Task<int> explain_virtual_cluster(Session& session, std::string name) {
  const auto seen = co_await look(session.cluster(), "");
  if (!seen) co_return session.failed(seen.error());
  const auto occupied = hived::occupy(seen->config, seen->nodes, seen->pods, session.now());
  if (!occupied) co_return session.failed(occupied.error());
  const std::string text = hived::explain_virtual_cluster(occupied->cells, name);
  if (text.empty()) {
    std::vector<std::string> known;
    for (const auto& vc : occupied->cells.cells().vcs) known.push_back(vc.name);
    co_return session.failed(
        fmt::format("there is no virtual cluster {}: there are {}", name, join(known, ", ")));
  }
  session.console.out(text);
  co_return 0;
}

Command hived_command() {
  const std::vector<Flag> shared{
      {.name = "hived-config",
       .help = "the present configuration (default: ConfigMap kube-system/muster-hived)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "kubeconfig",
       .help = "the cluster (default: as for every command, see muster get --help)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "context", .help = "a context of the kubeconfig", .value_name = "NAME"}};
  Command tree;
  tree.name = "tree";
  tree.summary = "Show who runs where, in the physical and the virtual clusters";
  tree.examples = "  muster hived tree --devices\n  muster hived tree -o json\n";
  tree.flags = shared;
  tree.flags.push_back({.name = "output",
                        .shorthand = 'o',
                        .help = "output format: json",
                        .completes = Completes::kWords,
                        .words = {"json"}});
  tree.flags.push_back({.name = "devices",
                        .type = FlagType::kBool,
                        .value = "false",
                        .help = "also show the cells below a node"});
  tree.run = InSession{&run_tree};
  Command check;
  check.name = "check";
  check.arguments = "FILE";
  check.summary = "Show what a new configuration would do to running gangs";
  check.details =
      "Exits with 1 when the file is wrong. Without a cluster, or with one that has no cells, only the file itself is checked.";
  check.examples = "  muster hived check new.yaml\n";
  check.flags = shared;
  check.completes = Completes::kFiles;
  check.run = InSession{&run_check, Needs::kClusterIfThere};
  Command apply;
  apply.name = "apply";
  apply.arguments = "FILE";
  apply.summary = "Show whom a new configuration affects, and apply it";
  apply.details =
      "No running gang is evicted. If one would lose its guarantee or its cells, the command asks first.";
  apply.examples = "  muster hived apply new.yaml\n  muster hived apply --yes new.yaml\n";
  apply.flags = {shared[1], shared[2]};
  apply.flags.push_back({.name = "yes",
                         .shorthand = 'y',
                         .type = FlagType::kBool,
                         .value = "false",
                         .help = "do not ask"});
  apply.completes = Completes::kFiles;
  apply.run = InSession{&run_apply};
  Command made;
  made.name = "hived";
  made.summary = "Show the cells of HiveD's virtual clusters, check or apply a new configuration";
  made.children = {std::move(tree), std::move(check), std::move(apply)};
  return made;
}

}  // namespace muster::cli
