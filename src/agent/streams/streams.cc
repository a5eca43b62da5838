#include "agent/streams/streams.h"

#include <fmt/core.h>

#include "agent/pod/pod_worker.h"
#include "agent/streams/log_server.h"
#include "agent/streams/port_forward.h"
#include "agent/streams/remote_command.h"
#include "base/strings.h"
#include "net/http/query.h"

namespace muster::agent {
namespace {

using json::at;

bool has_token(const net::Headers& headers, std::string_view name, std::string_view wanted) {
  for (const auto value : headers.all(name)) {
    for (const auto& part : split(value, ',')) {
      if (to_lower(trim(part)) == to_lower(wanted)) return true;
    }
  }
  return false;
}

class StreamServer final : public PodStreamServer {
 public:
  StreamServer(Context& context, std::function<std::shared_ptr<PodWorker>(const std::string&)> find)
      : context_(context), find_(std::move(find)) {}

  Task<void> serve(std::string subresource,
                   json::Value pod,
                   net::Target target,
                   net::Request request,
                   net::ResponseWriter& writer) override {
    const auto worker = find_(std::string(kube::uid_of(pod)));
    if (subresource == "log") {
      co_await serve_log(context_, worker, std::move(pod), std::move(target), writer);
      co_return;
    }
    UpgradeKind upgrade = UpgradeKind::kNone;
    if (has_token(request.headers, "Upgrade", "websocket")) upgrade = UpgradeKind::kWebSocket;
    if (has_token(request.headers, "Upgrade", "SPDY/3.1")) upgrade = UpgradeKind::kSpdy;
    if (upgrade == UpgradeKind::kNone) {
      Error error;
      error.code = Code::kBadRequest;
      error.message = "Upgrade request required";
      co_await send_error(writer, std::move(error));
      co_return;
    }
    if (!worker || !worker->state().sandbox_ready) {
      Error error;
      error.code = Code::kBadRequest;
      error.message = fmt::format("pod \"{}\" does not run on this machine (phase {})",
                                  kube::name_of(pod),
                                  json::as_string(at(pod, "status", "phase"), "unknown"));
      co_await send_error(writer, std::move(error));
      co_return;
    }
    if (subresource == "portforward") {
      co_await serve_port_forward(
          context_, worker, std::move(target), std::move(request), upgrade, writer);
      co_return;
    }
    auto call = command_call(subresource == "attach", *worker, target);
    if (!call) {
      co_await send_error(writer, call.error());
      co_return;
    }
    co_await serve_command(context_, std::move(*call), std::move(request), upgrade, writer);
  }

 private:
  /// The container must run; exec needs a command.
  static Result<CommandCall> command_call(bool attach,
                                          const PodWorker& worker,
                                          const net::Target& target) {
    CommandCall call;
    call.attach = attach;
    call.sandbox_id = worker.uid();
    auto name = std::string(target.get("container"));
    if (name.empty() && !worker.state().containers.empty())
      name = worker.state().containers.front().name;
    const auto* record = worker.find_container(name);
    if (record == nullptr)
      return fail(
          Code::kBadRequest,
          fmt::format("container {} is not valid for pod {}", name, kube::name_of(*worker.pod())));
    if (!record->running())
      return fail(Code::kInternal, fmt::format("container not found (\"{}\")", name));
    call.container_id = record->current->id;
    call.config.command = target.all("command");
    call.config.stdin_open = net::on(target, "stdin");
    call.config.stdout_open = net::on(target, "stdout");
    call.config.stderr_open = net::on(target, "stderr") && !net::on(target, "tty");
    call.config.tty = net::on(target, "tty");
    if (!call.attach && call.config.command.empty())
      return fail(Code::kBadRequest, "you must specify at least 1 command for the container");
    return call;
  }

  Context& context_;
  std::function<std::shared_ptr<PodWorker>(const std::string&)> find_;
};

}  // namespace

Task<void> send_error(net::ResponseWriter& writer, Error error) {
  net::Response response;
  response.status = http_status_of(error.code);
  response.headers.set("Content-Type", "application/json");
  const json::Value status = json::Object{{"kind", "Status"},
                                          {"apiVersion", "v1"},
                                          {"metadata", json::Object{}},
                                          {"status", "Failure"},
                                          {"message", error.message},
                                          {"reason", reason_of(error.code)},
                                          {"code", response.status}};
  response.body = json::dump(status) + "\n";
  (void)co_await writer.send(std::move(response));
}

std::unique_ptr<PodStreamServer> make_stream_server(
    Context& context, std::function<std::shared_ptr<PodWorker>(const std::string&)> find) {
  return std::make_unique<StreamServer>(context, std::move(find));
}

}  // namespace muster::agent
