/// data, whoami, and the commands of arena that Muster does not offer.
#include <fmt/core.h>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/md5.h"
#include "cli/session.h"
#include "cli/tabwriter.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

constexpr const char* kVersion = MUSTER_VERSION;
constexpr const char* kKubernetesVersion = "v1.37.0";  // the one that `muster up` serves
#if defined(__aarch64__)
constexpr const char* kPlatform = "linux/arm64";
#else
constexpr const char* kPlatform = "linux/amd64";
#endif

}  // namespace

Task<int> run_data_list(Invocation& call) {
  Session& session = call.session;
  const bool all = call.values.yes("all-namespaces");
  client::ListOptions options;
  options.ns = all ? "" : session.ns;
  const auto claims = co_await session.cluster().list(client::resources::kPersistentVolumeClaims, options);
  if (!claims) co_return session.failed(claims.error());
  Rows rows;
  std::vector<std::string> head{"NAME", "ACCESSMODE", "DESCRIPTION", "OWNER", "AGE"};
  if (all) head.insert(head.begin() + 1, "NAMESPACE");
  rows.add(std::move(head));
  for (const json::Value& claim : claims->items) {
    if (json::as_string(json::at(claim, "status", "phase")) != "Bound") continue;
    std::vector<std::string> modes;
    for (const json::Value& mode : json::as_array(json::at(claim, "spec", "accessModes"))) modes.push_back(json::text(mode));
    std::vector<std::string> row{std::string(kube::name_of(claim)), join(modes, ","), std::string(kube::annotation(claim, "description")),
                                 std::string(kube::annotation(claim, "owner")), short_human_duration(session.now() - kube::creation_time(claim))};
    if (all) row.insert(row.begin() + 1, std::string(kube::namespace_of(claim)));
    rows.add(std::move(row));
  }
  if (rows.cells.size() == 1) {
    session.console.out("No data volume is found\n");
    co_return 0;
  }
  session.console.out(rows.text());
  co_return 0;
}

Task<int> run_whoami(Invocation& call) {
  Session& session = call.session;
  const std::string user = co_await session.user();
  const std::string arena_ns = call.values.text("arena-namespace");
  const auto config = co_await session.cluster().get(client::resources::kConfigMaps, arena_ns, "arena-config");
  bool admin = false;
  if (config) {
    for (const std::string& each : split_nonempty(replace_all(json::as_string(json::at(*config, "data", "adminUsers")), "\n", ","), ',')) {
      admin = admin || trim(each) == user;
    }
  }
  session.console.out(json::dump(json::Object{{"Name", user}, {"Id", md5_hex(user)}, {"IsAdminUser", admin}}) + "\n");
  co_return 0;
}

Task<int> run_version(Invocation& call) {
  Session& session = call.session;
  session.console.out(fmt::format("{}: v{}\n", session.program, kVersion));
  if (call.values.yes("short")) co_return 0;
  session.console.out(fmt::format("  Kubernetes: {}\n  Compiler: {}\n  Platform: {}\n", kKubernetesVersion, __VERSION__, kPlatform));
  co_return 0;
}

Task<int> run_not_offered(Invocation& call) {
  const std::string& name = call.command.name;
  const std::string& program = call.session.program;
  if (name == "logviewer") co_return call.session.failed(fmt::format("no LOGVIEWER installed; `{} logs JOB` prints the log", program));
  const std::string why = name == "serve" || name == "evaluate" || name == "model" ? "serving and model registries"
                          : name == "cron"                                         ? "scheduled jobs"
                          : name.starts_with("scale")                              ? "elastic jobs, whose operator is not here"
                                                                                   : "this";
  co_return call.session.failed(fmt::format("'{}' is a command of arena that this program does not offer: it runs training jobs, not {}", name, why));
}

}  // namespace muster::cli
