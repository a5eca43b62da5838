#include "main/hived_serve.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/files.h"
#include "base/log.h"
#include "client/informer.h"
#include "hived/config.h"
#include "hived/extender.h"
#include "kube/meta.h"
#include "main/serve.h"
#include "net/http/client.h"
#include "net/http/listen_address.h"
#include "net/http/server.h"

namespace muster {
namespace {

/// How often the configuration is looked at.
constexpr Duration kLookEvery = std::chrono::seconds(1);

struct ServeOptions {
  std::string config_file, listen, kubeconfig, context;
};

bool is_healthy(const json::Value& node) {
  if (json::bool_at(node, "spec", "unschedulable")) return false;
  const json::Array& conditions = json::array_at(node, "status", "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [](const json::Value& condition) {
    return json::string_at(condition, "type") == "Ready" &&
           json::string_at(condition, "status") == "True";
  });
}

/// The extender of one configuration, kept in step with the cluster's nodes and pods. A new
/// configuration gets a new one: what runs is read back from the pods themselves.
class HivedService {
 public:
  HivedService(net::Loop& loop, ServeOptions options) : loop_(loop), options_(std::move(options)) {}

  Task<Result<void>> start() {
    auto text = read_file(options_.config_file);
    if (!text) co_return fail(text.error());
    const auto config = take(*text);
    if (!config) co_return fail(config.error());
    auto connected = connect(*config);
    if (!connected) co_return fail(connected.error());
    client_ = std::move(*connected);
    informers_ = std::make_unique<client::Informers>(loop_, *client_);
    nodes_ = &informers_->get(client::resources::kNodes);
    pods_ = &informers_->get(client::resources::kPods);
    informers_->start_all();
    co_await informers_->wait_synced();
    // Nodes first: pods that run are found on healthy ones.
    nodes_->add_handlers(
        {.on_change = [this](const auto& old, const auto& now) { node_changed(old, now); }});
    pods_->add_handlers(
        {.on_change = [this](const auto& old, const auto& now) { pod_changed(old, now); }});
    log_warnings();
    const std::string& address =
        options_.listen.empty() ? config->web_server_address : options_.listen;
    auto listen = net::parse_listen("--listen", address);
    if (!listen) co_return fail(listen.error());
    auto served = net::listen(
        loop_, std::move(*listen), [this](net::Request request, net::ResponseWriter& writer) {
          return answer(std::move(request), writer);
        });
    if (!served) co_return fail(served.error());
    server_ = std::move(*served);
    look_later();
    co_return Result<void>();
  }

  Task<void> stop() {
    timer_.reset();
    if (server_) co_await server_->stop();
    if (informers_) co_await informers_->stop_all();
  }

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

 private:
  /// Flags go before what the file says. A file that names only the server's address means it
  /// without a certificate, as HiveD does.
  Result<std::unique_ptr<client::Client>> connect(const hived::Config& config) {
    client::KubeconfigOptions where;
    where.path = !options_.kubeconfig.empty() ? options_.kubeconfig : config.kube_config_file;
    where.context = options_.context;
    if (!where.path.empty() || config.kube_apiserver_address.empty())
      return client::connect(loop_, std::move(where));
    auto http = net::make_client(
        loop_, {.url = config.kube_apiserver_address, .insecure = true, .http2 = true});
    if (!http) return fail(http.error());
    return client::make_client(loop_, std::move(*http), {});
  }

  /// From now on this configuration holds.
  Result<hived::Config> take(const std::string& text) {
    const auto named = [this](const Error& error) {
      return fail(error.code, fmt::format("{}: {}", options_.config_file, error.message));
    };
    seen_ = text;
    auto config = hived::parse_config(text);
    if (!config) return named(config.error());
    auto made = hived::Extender::create(*config);
    if (!made) return named(made.error());
    for (const std::string& warning : config->warnings) log::warn("hived", "{}", warning);
    extender_.emplace(std::move(*made));
    return config;
  }

  void look_later() {
    timer_ = loop_.after(kLookEvery, [this] { look(); });
  }

  void look() {
    look_later();
    const auto text = read_file(options_.config_file);
    if (!text || *text == seen_) return;
    if (const auto taken = take(*text); !taken) {
      log::error("hived", "the new configuration is refused: {}", taken.error().message);
      return;
    }
    for (const auto& [key, node] : nodes_->objects()) node_changed(nullptr, node);
    for (const auto& [key, pod] : pods_->objects()) pod_changed(nullptr, pod);
    log_warnings();
    log::info("hived", "the new configuration is in force; running pods were taken over");
  }

  void node_changed(const client::ObjectPtr& old, const client::ObjectPtr& now) {
    if (now == nullptr)
      extender_->node_deleted(std::string(kube::name_of(*old)));
    else
      extender_->node_added(std::string(kube::name_of(*now)), is_healthy(*now));
  }

  void pod_changed(const client::ObjectPtr& old, const client::ObjectPtr& now) {
    if (now == nullptr)
      extender_->pod_deleted(*old);
    else
      extender_->pod_updated(*now, loop_.now());
    log_warnings();
  }

  void log_warnings() {
    for (const std::string& warning : extender_->take_warnings()) log::warn("hived", "{}", warning);
  }

  Task<int> post(const json::Value& binding) {
    const auto done = co_await client_->post_subresource(client::resources::kPods,
                                                         std::string(kube::namespace_of(binding)),
                                                         std::string(kube::name_of(binding)),
                                                         "binding",
                                                         binding);
    if (done) co_return 201;
    log::warn("hived",
              "binding {}/{}: {}",
              kube::namespace_of(binding),
              kube::name_of(binding),
              done.error().message);
    co_return http_status_of(done.error().code);
  }

  Task<void> answer(net::Request request, net::ResponseWriter& writer) {
    hived::HttpAnswer answer =
        extender_->handle(request.method, request.target, request.body, loop_.now());
    log_warnings();
    if (answer.waits_for_binding) {
      const json::Value binding = std::move(answer.binding);
      const int status = co_await post(binding);
      answer = hived::Extender::bound(binding, status);
    } else if (!answer.binding.is_null()) {
      loop_.spawn([](HivedService& self, json::Value binding) -> Task<void> {
        (void)co_await self.post(binding);
      }(*this, std::move(answer.binding)));
    }
    if (answer.hold > Duration::zero()) co_await loop_.sleep(answer.hold);
    net::Response response;
    response.status = answer.status;
    response.headers.set("Content-Type", answer.content_type);
    if (!answer.location.empty()) response.headers.set("Location", answer.location);
    response.body = std::move(answer.body);
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  }

  net::Loop& loop_;
  ServeOptions options_;
  std::string seen_;  // the configuration as last looked at
  std::optional<hived::Extender> extender_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<client::Informers> informers_;
  client::Informer* nodes_ = nullptr;
  client::Informer* pods_ = nullptr;
  std::unique_ptr<net::Server> server_;
  std::unique_ptr<Timer> timer_;
};

Task<int> serve(net::Loop& loop, ServeOptions options, Signal& stop) {
  HivedService service(loop, std::move(options));
  const auto started = co_await service.start();
  if (!started) {
    fmt::print(stderr, "muster hived serve: {}\n", started.error().message);
    co_return 1;
  }
  fmt::print("HiveD's extender and inspect API are served at port {}\n", service.port());
  std::fflush(stdout);
  co_await stop.wait(Duration::zero());
  co_await service.stop();
  co_return 0;
}

/// As HiveD's own program finds it.
std::string default_config() {
  const char* named = std::getenv("CONFIG");
  return named != nullptr && *named != '\0' ? named : "./hivedscheduler.yaml";
}

int run_serve(command::Call& call) {
  ServeOptions options;
  options.config_file = call.values.args.empty() ? default_config() : call.values.args[0];
  options.listen = call.values.text("listen");
  options.kubeconfig = call.values.text("kubeconfig");
  options.context = call.values.text("context");
  return serve_until_signal(
      [&](net::Loop& loop, Signal& stop) { return serve(loop, options, stop); });
}

}  // namespace

command::Command hived_serve_command() {
  using command::Completes;
  command::Command serve;
  serve.name = "serve";
  serve.arguments = "[FILE]";
  serve.summary = "Serve HiveD's extender API, for a cluster that keeps kube-scheduler";
  serve.details =
      "Serves the extender verbs filter, preempt and bind and the inspect API over plain HTTP at the configuration's webServerAddress "
      "(:9096 unless it says otherwise). FILE is HiveD's own configuration (default $CONFIG, then ./hivedscheduler.yaml). It is read again when it changes, and running pods stay where they are. kube-scheduler's configuration names it as an extender with urlPrefix "
      "http://HOST:9096/v1/extender, the three verbs, nodeCacheCapable: true and the managed resource "
      "hivedscheduler.microsoft.com/pod-scheduling-enable with ignoredByScheduler: true.";
  serve.examples =
      "  muster hived serve hivedscheduler.yaml\n"
      "  muster hived serve hivedscheduler.yaml --listen 127.0.0.1:30096 --kubeconfig ~/.kube/config\n";
  serve.flags = {
      {.name = "listen",
       .help = "where to answer (default: webServerAddress of the configuration)",
       .value_name = "ADDRESS:PORT"},
      {.name = "kubeconfig",
       .help =
           "the cluster (default kubeConfigFilePath of the configuration, then as for muster run)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "context", .help = "a context of the kubeconfig", .value_name = "NAME"}};
  serve.completes = Completes::kFiles;
  serve.run = &run_serve;
  return serve;
}

}  // namespace muster
