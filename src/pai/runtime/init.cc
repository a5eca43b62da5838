#include "pai/runtime/init.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/strings.h"
#include "client/client.h"
#include "kube/framework.h"
#include "net/loop/loop.h"
#include "net/loop/ports.h"
#include "pai/runtime/script.h"
#include "pai/runtime/spec.h"

namespace muster::pai {
namespace {

namespace names = kube::names::framework;

constexpr auto kBarrierMost = std::chrono::minutes(10);
/// Each watch ends after so long, and the Framework is read again: an event that was lost costs no
/// more.
constexpr auto kWatchMost = std::chrono::seconds(10);
constexpr auto kRest = std::chrono::milliseconds(500);
constexpr int kGangTimeout = kube::completion::kGangAllocationTimeout;
constexpr int kPortConflict = kube::completion::kContainerPortConflict;
constexpr int kUnknown = kube::completion::kRuntimeUnknown;

std::string variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? "" : value;
}

struct Where {
  std::string ns, name;
  std::int64_t attempt = 0;
};

/// Until something about the Framework changes, or for a while.
Task<void> await_change(net::Loop& loop,
                        client::Client& cluster,
                        const Where& where,
                        std::string from) {
  client::WatchOptions options;
  options.list.ns = where.ns;
  options.list.field_selector = "metadata.name=" + where.name;
  options.list.resource_version = std::move(from);
  options.list.stop = std::make_shared<client::StopSource>();
  const auto timer = loop.after(kWatchMost, [stop = options.list.stop] { stop->stop(); });
  const auto ended = co_await cluster.watch(
      kube::resources::kFrameworks, options, [](const client::WatchEvent&) { return false; });
  if (!ended) co_await loop.sleep(kRest);
}

/// The Framework once the barrier is open: for a gang when every task has an address. Null: it did
/// not open in time.
Task<Result<json::Value>> await_tasks(net::Loop& loop, client::Client& cluster, Where where) {
  const Duration deadline = loop.monotonic() + kBarrierMost;
  for (;;) {
    auto framework = co_await cluster.get(kube::resources::kFrameworks, where.ns, where.name);
    if (!framework && framework.error().code != Code::kUnavailable &&
        framework.error().code != Code::kTimeout &&
        framework.error().code != Code::kTooManyRequests)
      co_return fail(framework.error());
    if (framework) {
      const auto spec =
          json::parse(json::string_at(*framework, "metadata", "annotations", kRuntimeAnnotation));
      bool all = false;
      placed_tasks(*framework, where.attempt, all);
      if (all || (spec && !json::bool_at(*spec, "gang"))) co_return std::move(*framework);
    }
    if (loop.monotonic() > deadline) co_return json::Value();
    const std::string from =
        framework ? json::text_at(*framework, "metadata", "resourceVersion") : "";
    co_await await_change(loop, cluster, where, from);
  }
}

Result<void> write_files(const std::map<std::string, std::string>& files) {
  namespace fs = std::filesystem;
  for (const auto& [name, text] : files) {
    const fs::path path = fs::path(kRuntimeFolder) / name;
    std::error_code error;
    fs::create_directories(path.parent_path(), error);
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << text;
    file.close();
    if (!file) return fail(Code::kInternal, fmt::format("{} cannot be written", path.string()));
    // The image may run as anybody; the key is copied before it is used.
    fs::permissions(path, fs::perms::owner_all | fs::perms::group_read | fs::perms::others_read);
  }
  return {};
}

std::string text_of(std::string_view folder, std::string_view name) {
  return read_file(fmt::format("{}/{}", folder, name)).value_or("");
}

/// One of the task's ports that somebody listens at already, as may be on a network that pods share;
/// 0 if all are free.
int taken_port(const Inputs& inputs) {
  for (const int port : own_ports(inputs))
    if (!net::port_is_free(port)) return port;
  return 0;
}

Task<int> run_init(net::Loop& loop, client::Client& cluster, command::Console& console) {
  const Where where{variable(names::kFrameworkNamespace),
                    variable(names::kFrameworkName),
                    parse_int(variable(names::kFrameworkAttemptId)).value_or(0)};
  const auto framework = co_await await_tasks(loop, cluster, where);
  if (!framework) {
    console.error(framework.error().message);
    co_return kUnknown;
  }
  if (framework->is_null()) {
    console.error("not every task of the job had an address within 10 minutes");
    co_return kGangTimeout;
  }
  auto spec =
      json::parse(json::string_at(*framework, "metadata", "annotations", kRuntimeAnnotation));
  if (!spec) {
    console.error(fmt::format("Framework {} carries no {}", where.name, kRuntimeAnnotation));
    co_return kUnknown;
  }
  Inputs inputs;
  inputs.spec = std::move(*spec);
  bool all = false;
  inputs.tasks = placed_tasks(*framework, where.attempt, all);
  inputs.self = {variable(names::kTaskRoleName),
                 parse_int(variable(names::kTaskIndex)).value_or(0),
                 variable("PAI_CURRENT_CONTAINER_IP"),
                 variable(names::kPodUid)};
  if (const int taken = taken_port(inputs); taken != 0) {
    console.error(fmt::format("port {} of this task is in use on its node", taken));
    co_return kPortConflict;
  }
  const auto secrets = json::parse(text_of(kSecretsFolder, kSecretsFile));
  if (secrets) inputs.secrets = *secrets;
  inputs.private_key = text_of(kSshFolder, "ssh-privatekey");
  inputs.public_key = std::string(trim(text_of(kSshFolder, "ssh-publickey")));
  const auto written = write_files(make_files(inputs));
  if (written) co_return 0;
  console.error(written.error().message);
  co_return kUnknown;
}

int run(command::Call& call) {
  net::Loop loop;
  auto cluster = client::connect(loop, {.user_agent = "muster-pai-runtime"});
  if (!cluster) return call.failed(cluster.error().message);
  int code = 0;
  const auto work = [](Task<int> inner, int& out) -> Task<void> {
    out = co_await std::move(inner);
  };
  loop.run_until_done(work(run_init(loop, **cluster, call.console), code));
  return code;
}

}  // namespace

command::Command runtime_command() {
  command::Command init;
  init.name = "init";
  init.summary = "Wait for the tasks of the job and write what this one runs";
  init.run = run;
  command::Command made;
  made.name = "pai-runtime";
  made.summary = "Inside a pod of an OpenPAI job: prepare its task";
  made.children = {std::move(init)};
  made.hidden = true;
  return made;
}

}  // namespace muster::pai
