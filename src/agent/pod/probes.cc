#include "agent/pod/probes.h"

#include <fmt/core.h>

#include "agent/pod/grpc_check.h"
#include "agent/pod/pod_containers.h"
#include "base/strings.h"
#include "net/http/client.h"
#include "net/loop/descriptor.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;
using std::chrono::seconds;

/// A port by number or by the container's name for it.
int port_of(const json::Value& value, const json::Value& container_spec) {
  if (value.is_int64() || value.is_uint64()) return static_cast<int>(json::as_int(value));
  const auto name = json::as_string(value);
  for (const auto& port : json::array_at(container_spec, "ports")) {
    if (json::string_at(port, "name") == name)
      return static_cast<int>(json::int_at(port, "containerPort"));
  }
  return static_cast<int>(parse_int(name).value_or(0));
}

Task<CheckResult> check_exec(Context& context, const json::Value& action, ProbeTarget target) {
  ExecConfig config;
  for (const auto& word : json::array_at(action, "command")) config.command.push_back(text(word));
  config.stderr_open = false;
  auto session = co_await context.runtime.exec(target.sandbox_id, target.container_id, config);
  if (!session) co_return CheckResult{false, session.error().message};
  bool late = false;
  auto* running = session->get();
  const auto timer = context.loop.after(target.timeout, [&late, running] {
    late = true;
    running->abandon();
  });
  CheckResult result;
  for (;;) {
    const auto bytes = co_await running->stdout_stream()->read();
    if (!bytes || bytes->empty()) break;
    if (result.output.size() < 10240) result.output += *bytes;
  }
  const auto code = co_await running->wait();
  result.ok = !late && code && *code == 0;
  if (late)
    result.output = fmt::format("command timed out: \"{}\" timed out after {}s",
                                join(config.command, " "),
                                target.timeout / seconds(1));
  co_return result;
}

Task<CheckResult> check_http(Context& context,
                             const json::Value& action,
                             const json::Value& spec,
                             ProbeTarget target) {
  const auto host = at(action, "host").is_null() ? target.address : text(at(action, "host"));
  net::ClientOptions options;
  options.url = fmt::format("{}://{}:{}",
                            json::string_at(action, "scheme") == "HTTPS" ? "https" : "http",
                            host,
                            port_of(at(action, "port"), spec));
  options.insecure = true;
  options.connect_timeout = target.timeout;
  options.request_timeout = target.timeout;
  auto client = net::make_client(*context.sockets, options);
  if (!client) co_return CheckResult{false, client.error().message};
  net::Request request;
  request.method = "GET";
  request.target = text(at(action, "path"));
  if (!request.target.starts_with("/")) request.target = "/" + request.target;
  request.headers.set("User-Agent", "kube-probe/1.34");
  request.headers.set("Accept", "*/*");
  request.headers.set("Connection", "close");
  for (const auto& header : json::array_at(action, "httpHeaders"))
    request.headers.set(text(at(header, "name")), text(at(header, "value")));
  const auto url = options.url + request.target;
  const auto answer = co_await (*client)->request(std::move(request));
  if (!answer)
    co_return CheckResult{false, fmt::format("Get \"{}\": {}", url, answer.error().message)};
  const bool ok = answer->status >= 200 && answer->status < 400;
  co_return CheckResult{
      ok, ok ? "" : fmt::format("HTTP probe failed with statuscode: {}", answer->status)};
}

Task<CheckResult> check_tcp(Context& context,
                            const json::Value& action,
                            const json::Value& spec,
                            ProbeTarget target) {
  const auto host = at(action, "host").is_null() ? target.address : text(at(action, "host"));
  const int port = port_of(at(action, "port"), spec);
  const auto connected = co_await net::connect_tcp(*context.sockets, host, port, target.timeout);
  co_return CheckResult{
      connected.has_value(),
      connected ? "" : fmt::format("dial tcp {}:{}: {}", host, port, connected.error().message)};
}

}  // namespace

Task<CheckResult> run_check(Context& context,
                            const json::Value& action,
                            const json::Value& container_spec,
                            ProbeTarget target) {
  if (const auto& exec = at(action, "exec"); !exec.is_null()) {
    auto result = co_await check_exec(context, exec, std::move(target));
    co_return result;
  }
  if (context.sockets == nullptr) co_return CheckResult{false, "there are no sockets here"};
  if (const auto& http = at(action, "httpGet"); !http.is_null()) {
    auto result = co_await check_http(context, http, container_spec, std::move(target));
    co_return result;
  }
  if (const auto& tcp = at(action, "tcpSocket"); !tcp.is_null()) {
    auto result = co_await check_tcp(context, tcp, container_spec, std::move(target));
    co_return result;
  }
  if (const auto& grpc = at(action, "grpc"); !grpc.is_null()) {
    auto result = co_await grpc_health_check(*context.sockets,
                                             target.address,
                                             static_cast<int>(json::int_at(grpc, "port")),
                                             text(at(grpc, "service")),
                                             target.timeout);
    co_return CheckResult{result.has_value(), result ? "" : result.error().message};
  }
  co_return CheckResult{false, "the probe has no handler"};
}

/// Friend of PodWorker: a probe reads the record and sets `started`, `ready`, or stops the
/// container.
class Prober {
 public:
  enum class Kind { kStartup, kLiveness, kReadiness };

  static Task<void> run(std::shared_ptr<void> keep,
                        PodContainers& containers,
                        std::string name,
                        std::string container_id,
                        Kind kind) {
    auto& life = containers.life();
    auto& context = life.context;
    const auto current = [&]() -> ContainerRecord* {
      auto* record = life.detached || life.gone ? nullptr : life.find(name);
      return record != nullptr && record->running() && record->current->id == container_id
                 ? record
                 : nullptr;
    };
    const auto* first = current();
    if (first == nullptr) co_return;
    const json::Value probe = at(life.spec_of(*first), field(kind));
    const json::Value spec = life.spec_of(*first);
    const auto period =
        seconds(std::max<std::int64_t>(1, json::as_int(at(probe, "periodSeconds"), 10)));
    const auto failures_max =
        std::max<std::int64_t>(1, json::as_int(at(probe, "failureThreshold"), 3));
    const auto successes_min =
        std::max<std::int64_t>(1, json::as_int(at(probe, "successThreshold"), 1));
    std::int64_t successes = 0, failures = 0;
    if (const auto delay = json::int_at(probe, "initialDelaySeconds"); delay > 0)
      co_await context.loop.sleep(seconds(delay));
    for (;;) {
      auto* record = current();
      if (record == nullptr) co_return;
      if (kind != Kind::kStartup && !record->started) {  // held back until startup has passed
        co_await context.loop.sleep(std::chrono::milliseconds(100));
        continue;
      }
      ProbeTarget target;
      target.sandbox_id = life.uid;
      target.container_id = container_id;
      target.address = life.state.pod_ip;
      target.timeout =
          seconds(std::max<std::int64_t>(1, json::as_int(at(probe, "timeoutSeconds"), 1)));
      const auto result = co_await run_check(context, probe, spec, std::move(target));
      record = current();
      if (record == nullptr) co_return;
      successes = result.ok ? successes + 1 : 0;
      failures = result.ok ? 0 : failures + 1;
      if (!result.ok)
        life.event(record,
                   "Warning",
                   "Unhealthy",
                   fmt::format("{} probe failed: {}", label(kind), result.output));
      if (successes >= successes_min && passed(life, *record, kind)) co_return;
      if (failures >= failures_max && failed(containers, *record, kind)) co_return;
      co_await context.loop.sleep(period);
    }
  }

  static void start(PodContainers& containers, const std::string& name) {
    auto& life = containers.life();
    const auto* record = life.find(name);
    if (record == nullptr || !record->running()) return;
    const auto& spec = life.spec_of(*record);
    for (const auto kind : {Kind::kStartup, Kind::kLiveness, Kind::kReadiness}) {
      if (!at(spec, field(kind)).is_null())
        life.context.loop.spawn(run(life.keep(), containers, name, record->current->id, kind));
    }
  }

 private:
  static const char* field(Kind kind) {
    return kind == Kind::kStartup    ? "startupProbe"
           : kind == Kind::kLiveness ? "livenessProbe"
                                     : "readinessProbe";
  }
  static const char* label(Kind kind) {
    return kind == Kind::kStartup ? "Startup" : kind == Kind::kLiveness ? "Liveness" : "Readiness";
  }

  /// True when the probe has nothing more to do.
  static bool passed(PodLife& life, ContainerRecord& record, Kind kind) {
    if (kind == Kind::kStartup) {
      record.started = true;
      if (at(life.spec_of(record), "readinessProbe").is_null()) record.ready = true;
      life.wake();
      return true;
    }
    if (kind == Kind::kReadiness && !record.ready) {
      record.ready = true;
      life.wake();
    }
    return false;
  }

  static bool failed(PodContainers& containers, ContainerRecord& record, Kind kind) {
    auto& life = containers.life();
    if (kind == Kind::kReadiness) {
      if (record.ready) {
        record.ready = false;
        life.wake();
      }
      return false;
    }
    if (containers.stopping(record.name)) return true;
    const auto& spec = life.spec_of(record);
    const auto pod_grace = json::as_int(at(*life.pod, "spec", "terminationGracePeriodSeconds"), 30);
    const auto grace =
        seconds(json::as_int(at(spec, field(kind), "terminationGracePeriodSeconds"), pod_grace));
    const auto message = fmt::format("Container {} failed {} probe, will be restarted",
                                     record.name,
                                     kind == Kind::kStartup ? "startup" : "liveness");
    containers.stop_soon(record.name, grace, message);
    return true;
  }
};

void start_probes(PodContainers& containers, const std::string& container) {
  Prober::start(containers, container);
}

}  // namespace muster::agent
