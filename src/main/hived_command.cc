#include "main/hived_command.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/client.h"
#include "engine/cells/allocator.h"
#include "hived/annotations.h"
#include "hived/config.h"
#include "hived/tree.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "main/flags.h"
#include "main/hived_live.h"
#include "main/identity.h"
#include "net/loop/loop.h"

namespace muster {
namespace {

constexpr const char* kHelp =
    "The cells of HiveD's virtual clusters.\n\n"
    "Usage:\n"
    "  muster hived tree [-o json] [flags]   who sits where, in the physical and in the virtual clusters\n"
    "  muster hived check NEW [flags]        what a new configuration file would do to running gangs; exits 1 when it is wrong.\n"
    "                                        Without a cluster, or one without cells, the file alone is looked at\n\n"
    "Flags:\n"
    "  --hived-config FILE  the configuration of now (default: ConfigMap kube-system/muster-hived)\n"
    "  --devices            tree: also the cells below a node\n"
    "  --kubeconfig FILE    which cluster (default $KUBECONFIG, then $MUSTER_HOME/kubeconfig)\n"
    "  --context NAME       of the kubeconfig\n";

struct HivedOptions {
  std::string config, output, kubeconfig, context, new_file;
  bool devices = false, help = false;
};

struct Seen {
  hived::Config config;
  std::vector<hived::RunningPod> pods;  // oldest first
  std::vector<std::pair<std::string, bool>> nodes;
};

Result<hived::Config> parse_named(const std::string& name, const std::string& text) {
  auto config = hived::parse_config(text);
  if (config) return config;
  Error error = config.error();
  error.message = fmt::format("{}: {}", name, error.message);
  return fail(std::move(error));
}

Result<hived::Config> config_of_file(const std::string& path) {
  const auto text = read_file(path);
  if (!text) return fail(text.error());
  return parse_named(path, *text);
}

/// The configuration of a file, refused if its cells are.
Result<hived::Config> right_file(const std::string& path) {
  auto config = config_of_file(path);
  if (!config) return config;
  const auto cells = engine::cells::CellAllocator::create(config->cells, {});
  if (cells) return config;
  Error error = cells.error();
  error.message = fmt::format("{}: {}", path, error.message);
  return fail(std::move(error));
}

/// What can be said of a new file without the cells of now. The exit code.
int check_alone(const std::string& path, const std::string& why) {
  const auto config = right_file(path);
  if (!config) {
    fmt::print(stderr, "muster hived: {}\n", config.error().message);
    return 1;
  }
  for (const std::string& warning : config->warnings) fmt::print("warning: {}\n", warning);
  fmt::print("{} is right: {}\nnot compared with running gangs: {}\n",
             path,
             hived::describe(*config),
             why);
  return 0;
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

Task<Result<Seen>> look(client::Client& client, const HivedOptions& options) {
  Seen seen;
  if (!options.config.empty()) {
    auto config = config_of_file(options.config);
    if (!config) co_return fail(config.error());
    seen.config = std::move(*config);
  } else {
    const auto text = co_await read_hived_config_map(client);
    if (!text) co_return fail(text.error());
    if (!*text) {
      co_return fail(
          Code::kNotFound,
          fmt::format(
              "this cluster has no ConfigMap {}/{} with HiveD's configuration; start it with 'muster up --hived-config FILE', or name the file with --hived-config",
              kHivedNamespace,
              kHivedConfigMap));
    }
    auto config =
        parse_named(fmt::format("ConfigMap {}/{}", kHivedNamespace, kHivedConfigMap), **text);
    if (!config) co_return fail(config.error());
    seen.config = std::move(*config);
  }
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

Result<std::string> tree(const Seen& seen, const HivedOptions& options, Time now) {
  auto allocator = engine::cells::CellAllocator::create(seen.config.cells, {});
  if (!allocator) return fail(allocator.error());
  for (const auto& [name, is_healthy] : seen.nodes) allocator->set_node(name, is_healthy);
  for (const hived::RunningPod& pod : seen.pods) {
    const auto added = allocator->add_allocated(pod.pod, pod.spec, pod.bind, now);
    if (!added)
      fmt::print(stderr,
                 "muster hived tree: pod {} is not on these cells: {}\n",
                 pod.pod.name,
                 added.error().message);
  }
  if (options.output == "json") return json::dump_pretty(hived::tree_json(*allocator)) + "\n";
  hived::TreeOptions how;
  how.colours = ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  how.devices = options.devices;
  return hived::tree_text(*allocator, how);
}

Task<Result<std::string>> answer(client::Client& client, const HivedOptions& options, Time now) {
  const auto seen = co_await look(client, options);
  if (!seen) co_return fail(seen.error());
  if (options.new_file.empty()) co_return tree(*seen, options, now);
  const auto fresh = right_file(options.new_file);
  if (!fresh) co_return fail(fresh.error());
  const auto report = hived::check(seen->config, *fresh, seen->pods);
  if (!report) co_return fail(report.error());
  co_return hived::to_string(*report);
}

Task<void> print_answer(client::Client& client, const HivedOptions& options, Time now, int& code) {
  const auto text = co_await answer(client, options, now);
  if (text) {
    fmt::print("{}", *text);
    co_return;
  }
  if (!options.new_file.empty() && text.error().code == Code::kNotFound) {
    code = check_alone(options.new_file, text.error().message);
    co_return;
  }
  fmt::print(stderr, "muster hived: {}\n", text.error().message);
  code = 1;
}

}  // namespace

int run_hived(int argc, char** argv) {
  HivedOptions options;
  const std::string word = argc > 2 ? argv[2] : "";
  if (word == "--help" || word == "-h" || word.empty()) {
    fmt::print("{}", kHelp);
    return word.empty() ? 2 : 0;
  }
  int first = 3;
  if (word == "check" && argc > 3 && argv[3][0] != '-') {
    options.new_file = argv[3];
    first = 4;
  }
  std::string output_flag = "--output";
  for (int i = first; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-o") argv[i] = output_flag.data();
  }
  const auto parsed = parse_flags(argc,
                                  argv,
                                  first,
                                  {{"hived-config", &options.config},
                                   {"output", &options.output},
                                   {"kubeconfig", &options.kubeconfig},
                                   {"context", &options.context},
                                   {"devices", nullptr, &options.devices},
                                   {"help", nullptr, &options.help}});
  std::string wrong;
  if (!parsed)
    wrong = parsed.error().message;
  else if (word != "tree" && word != "check")
    wrong = fmt::format("\"{}\": wanted tree or check", word);
  else if (word == "check" && options.new_file.empty() && !options.help)
    wrong = "check: wanted the new file, e.g. muster hived check new.yaml";
  else if (!options.output.empty() && options.output != "json")
    wrong = fmt::format("-o {}: wanted json, or nothing for text", options.output);
  if (!wrong.empty()) {
    fmt::print(stderr, "muster hived: {}\n", wrong);
    return 2;
  }
  if (options.help) {
    fmt::print("{}", kHelp);
    return 0;
  }
  net::Loop loop;
  client::KubeconfigOptions where;
  where.path = options.kubeconfig;
  where.context = options.context;
  auto client = client::connect(loop, std::move(where));
  if (!client) {
    if (!options.new_file.empty()) return check_alone(options.new_file, client.error().message);
    fmt::print(stderr, "muster hived: {}\n", client.error().message);
    return 1;
  }
  int code = 0;
  loop.run_until_done(print_answer(**client, options, loop.now(), code));
  return code;
}

}  // namespace muster
