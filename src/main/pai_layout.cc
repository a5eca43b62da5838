#include "main/pai_layout.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/files.h"
#include "pai/deploy/layout.h"
#include "pai/deploy/services.h"

namespace muster {
namespace {

constexpr const char* kRestAddress = "127.0.0.1:9186";

std::string deploy_folder(const ClusterOptions& options) { return options.data + "/pai-deploy"; }
std::string config_folder(const ClusterOptions& options) {
  return deploy_folder(options) + "/cluster-cfg";
}

}  // namespace

Result<void> use_layout(const std::string& folder, ClusterOptions& options) {
  pai::WorkerSize size;
  if (options.gpus) size.gpus = *options.gpus;
  const auto layout = pai::read_layout(folder, size);
  if (!layout) return fail(layout.error());
  const bool first = !std::filesystem::exists(options.data + "/muster.db");
  std::error_code failure;
  std::filesystem::create_directories(config_folder(options), failure);
  if (failure)
    return fail(Code::kInternal, fmt::format("{}: {}", config_folder(options), failure.message()));
  std::string nodes;
  for (const json::Value& node : pai::nodes_of(*layout)) nodes += json::to_yaml(node) + "---\n";
  const std::string cells = pai::cells_of(*layout);
  const std::string deploy = deploy_folder(options), config = config_folder(options);
  for (const auto& [path, text] :
       {std::pair{deploy + "/nodes.yaml", nodes},
        std::pair{deploy + "/hivedscheduler.yaml", cells},
        std::pair{deploy + "/admin-password", std::string(kKnownPassword) + "\n"}}) {
    const auto written = write_private(path, text);
    if (!written) return written;
  }
  // Later starts keep what people have made of it.
  for (const auto& [name, text] : {std::pair{pai::kLayoutFile, pai::layout_yaml(*layout)},
                                   std::pair{pai::kServicesFile, pai::configuration_with(cells)}}) {
    const std::string path = config + "/" + name;
    if (std::filesystem::exists(path)) continue;
    const auto written = write_private(path, text);
    if (!written) return written;
  }
  if (options.nodes.empty()) options.nodes = deploy + "/nodes.yaml";
  if (options.hived_config.empty() && first) options.hived_config = deploy + "/hivedscheduler.yaml";
  if (options.admin_password_file.empty()) options.admin_password_file = deploy + "/admin-password";
  if (options.pai_rest.empty()) options.pai_rest = kRestAddress;
  return {};
}

std::string layout_banner(const ClusterOptions& options, const std::string& kubeconfig) {
  return fmt::format(
      "Kubernetes cluster config :     {}\n"
      "OpenPAI cluster config    :     {}\n"
      "OpenPAI cluster ID        :     pai\n"
      "Default username          :     admin\n"
      "Default password          :     {}\n\n"
      "Everybody knows this password: change it before others can reach the cluster.\n\n",
      kubeconfig,
      config_folder(options),
      kKnownPassword);
}

}  // namespace muster
