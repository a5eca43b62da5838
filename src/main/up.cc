#include "main/up.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "agent/node/devices.h"
#include "apiserver/server.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "controllers/common/admission.h"
#include "main/components.h"
#include "main/data_dir.h"
#include "main/identity.h"
#include "main/nodes.h"
#include "net/http/client.h"
#include "net/http/front.h"
#include "net/http/query.h"
#include "net/http/server.h"
#include "store/store.h"

namespace muster {
namespace {

/// A thread for the sockets pays where a core is free beside the loop, the store and the clients of
/// the machine; on two it only costs.
bool sockets_apart() {
  if (const char* said = std::getenv("MUSTER_API_THREAD"); said != nullptr)
    return net::truthy(said);
  return std::thread::hardware_concurrency() > 2;
}

struct UpOptions {
  std::string data, listen, nodes, gpus, kubeconfig, hived_config, scheduler_config, images,
      node_grace, token_lifetime, pod_max_pids, pod_security;
  bool hollow = false, detach = false;
  std::string address;
  std::uint16_t port = 0;
  std::set<std::string> left_out;
};

Result<UpOptions> read_options(const command::Values& values) {
  UpOptions options;
  options.data = values.given("data") ? values.text("data") : default_data_dir();
  options.listen = values.text("listen");
  options.nodes = values.text("nodes");
  options.gpus = values.text("gpus");
  options.kubeconfig = values.text("kubeconfig");
  options.hived_config = values.text("hived-config");
  options.scheduler_config = values.text("scheduler-config");
  options.images = values.text("images");
  options.pod_max_pids = values.text("pod-max-pids");
  options.node_grace = values.text("node-monitor-grace-period");
  options.token_lifetime = values.text("service-account-max-token-expiration");
  options.pod_security = values.text("pod-security");
  options.hollow = values.yes("hollow");
  options.detach = values.yes("detach");
  if (const auto span = parse_duration(options.node_grace); !span || *span <= Duration::zero()) {
    return fail(Code::kBadRequest,
                fmt::format("--node-monitor-grace-period {}: wanted a span of time, e.g. 40s",
                            options.node_grace));
  }
  if (const auto span = parse_duration(options.token_lifetime);
      !options.token_lifetime.empty() && (!span || *span < std::chrono::seconds(1))) {
    return fail(
        Code::kBadRequest,
        fmt::format("--service-account-max-token-expiration {}: wanted a second or more, e.g. 1h",
                    options.token_lifetime));
  }
  if (const auto number = parse_int(options.pod_max_pids);
      !options.pod_max_pids.empty() && (!number || *number < 1)) {
    return fail(Code::kBadRequest,
                fmt::format("--pod-max-pids {}: wanted a number from 1 on, e.g. 4096",
                            options.pod_max_pids));
  }
  if (!kube::parse_security_level(options.pod_security)) {
    return fail(Code::kBadRequest,
                fmt::format("--pod-security {}: wanted privileged, baseline or restricted",
                            options.pod_security));
  }
  const auto colon = options.listen.rfind(':');
  const auto port = colon == std::string::npos
                        ? std::nullopt
                        : parse_int(std::string_view(options.listen).substr(colon + 1));
  if (!port || *port < 0 || *port > 65535) {
    return fail(
        Code::kBadRequest,
        fmt::format("--listen {}: wanted ADDRESS:PORT, e.g. 127.0.0.1:6443", options.listen));
  }
  options.port = static_cast<std::uint16_t>(*port);
  options.address = options.listen.substr(0, colon);
  if (options.address.empty()) options.address = "0.0.0.0";
  if (options.address.starts_with('[') && options.address.ends_with(']'))
    options.address = options.address.substr(1, options.address.size() - 2);
  if (!options.gpus.empty() && !parse_int(options.gpus))
    return fail(Code::kBadRequest, fmt::format("--gpus {}: wanted a number", options.gpus));
  for (const std::string& part : split_nonempty(values.text("without"), ',')) {
    if (part != "scheduler" && part != "controllers" && part != "agent") {
      return fail(Code::kBadRequest,
                  fmt::format("--without {}: wanted scheduler, controllers or agent", part));
    }
    options.left_out.insert(part);
  }
  options.data = std::filesystem::absolute(options.data).lexically_normal().string();
  return options;
}

/// The cluster in this process, from the store up to the components.
class Cluster {
 public:
  Cluster(net::Loop& loop, UpOptions options, const DataLock& lock)
      : loop_(loop), options_(std::move(options)), lock_(lock) {}

  Task<Result<void>> start() {
    auto nodes = planned_nodes();
    if (!nodes) co_return fail(nodes.error());
    auto identity = load_identity(options_.data, options_.address, loop_.now());
    if (!identity) co_return fail(identity.error());
    auto opened = store::open(loop_, options_.data + "/muster.db");
    if (!opened) co_return fail(opened.error());
    store_ = std::move(*opened);

    apiserver::ServerOptions server_options;
    server_options.ca_pem = identity->ca.certificate_pem;
    server_options.token_key_pem = identity->token_key;
    server_options.admin_token = identity->admin_token;
    // What a cluster with the operators installed has as validating webhooks.
    server_options.custom_rules = [](const json::Value& object,
                                     const json::Value* old_object,
                                     std::vector<std::string>* warnings) {
      auto verdict = controllers::admit(object, old_object);
      if (warnings != nullptr)
        warnings->insert(warnings->end(), verdict.warnings.begin(), verdict.warnings.end());
      return std::move(verdict.errors);
    };
    server_options.address = options_.address;
    server_options.pod_security = *kube::parse_security_level(options_.pod_security);
    if (const auto span = parse_duration(options_.token_lifetime); span)
      server_options.token_lifetime_s_max = span->count() / 1'000'000;
    server_ = std::make_unique<apiserver::Server>(loop_, *store_, std::move(server_options));
    const auto started = co_await server_->start();
    if (!started) co_return started;

    net::ServerOptions listen_options;
    listen_options.address = options_.address;
    listen_options.port = options_.port;
    listen_options.certificate_pem = identity->server.certificate_pem;
    listen_options.key_pem = identity->server.key_pem;
    listen_options.client_ca_pem = identity->ca.certificate_pem;
    auto listening = sockets_apart()
                         ? net::listen_apart(loop_, std::move(listen_options), handler())
                         : net::listen(loop_, std::move(listen_options), handler());
    if (!listening) co_return fail(explain_listen(listening.error()));
    socket_ = std::move(*listening);
    listen_beside();
    co_await server_->set_endpoint(options_.address, socket_->port());

    const auto applied = co_await make_nodes(std::move(*nodes));
    if (!applied) co_return applied;
    const auto parts = co_await start_components(*identity);
    if (!parts) co_return parts;
    co_return publish(*identity);
  }

  Task<void> stop() {
    for (auto it = components_.rbegin(); it != components_.rend(); ++it) co_await (*it)->stop();
    if (informers_) co_await informers_->stop_all();
    if (socket_) {
      // Watches end first, so that connections have nothing to wait for.
      if (server_) co_await server_->stop();
      co_await socket_->stop();
      if (beside_) co_await beside_->stop();
    } else if (server_) {
      co_await server_->stop();
    }
    components_.clear();
    if (store_) co_await store_->close();
  }

  [[nodiscard]] std::string address() const {
    return fmt::format("https://{}:{}",
                       options_.address == "0.0.0.0" ? "127.0.0.1" : options_.address,
                       socket_->port());
  }
  [[nodiscard]] std::size_t node_count() const { return node_count_; }

 private:
  /// Nothing named on a later start: the nodes stay as they are.
  Result<std::optional<std::vector<json::Value>>> planned_nodes() const {
    const bool first = !std::filesystem::exists(options_.data + "/muster.db");
    if (options_.nodes.empty() && !first) return std::optional<std::vector<json::Value>>();
    NodesRequest request;
    if (options_.gpus.empty()) {
      for (const agent::Gpu& gpu : agent::find_gpus()) request.real_gpus.push_back(gpu.model);
    } else {
      request.gpus = static_cast<int>(*parse_int(options_.gpus));
    }
    request.nodes = !options_.nodes.empty()     ? options_.nodes
                    : request.real_gpus.empty() ? "3"
                                                : "1";
    auto nodes = plan_nodes(request, loop_.now());
    if (!nodes) return fail(nodes.error());
    return std::optional<std::vector<json::Value>>(std::move(*nodes));
  }

  [[nodiscard]] std::string socket_path() const {
    return std::filesystem::absolute(options_.data).lexically_normal().string() + "/api.sock";
  }

  /// The API once more, where it costs no TLS; credentials are asked for all the same. Without it
  /// (its path may be too long) commands take the address.
  void listen_beside() {
    net::ServerOptions beside;
    beside.unix_path = socket_path();
    auto listening = net::listen(loop_, std::move(beside), handler());
    if (listening) {
      beside_ = std::move(*listening);
    } else {
      log::info("main", "no socket beside the address: {}", listening.error().message);
    }
  }

  Error explain_listen(Error error) const {
    error.message = fmt::format(
        "cannot listen on {}: {}; choose another with --listen, or --listen {}:0 for any free port",
        options_.listen,
        error.message,
        options_.address);
    return error;
  }

  std::unique_ptr<client::Client> make_client(const std::string& user) {
    client::ClientOptions options;
    options.user_agent = user.starts_with("system:") ? user.substr(7) : user;
    return client::make_client(
        loop_, net::make_local_client(loop_, server_->handler(), user, true), std::move(options));
  }

  Task<Result<void>> make_nodes(std::optional<std::vector<json::Value>> nodes) {
    const auto client = make_client("system:muster");
    if (nodes) {
      const auto applied = co_await apply_nodes(loop_, *client, std::move(*nodes));
      if (!applied) co_return applied;
    }
    const auto listed = co_await client->list(client::resources::kNodes, {});
    if (listed) node_count_ = listed->items.size();
    co_return Result<void>();
  }

  Task<Result<void>> start_components(const Identity& identity) {
    watching_ = make_client("system:muster");
    informers_ = std::make_unique<client::Informers>(loop_, *watching_);
    context_ = std::make_unique<ComponentContext>(ComponentContext{
        .loop = loop_,
        .server = *server_,
        .informers = *informers_,
        .directory = options_.data,
        .api_address = options_.address == "0.0.0.0" ? "127.0.0.1" : options_.address,
        .api_port = socket_->port(),
        .ca_pem = identity.ca.certificate_pem,
        .hollow = options_.hollow,
        .scheduler_config = options_.scheduler_config,
        .hived_config = options_.hived_config,
        .images = options_.images,
        .pod_pids_max = parse_int(options_.pod_max_pids).value_or(0),
        .node_grace = parse_duration(options_.node_grace).value(),
        .without = options_.left_out,
        .make_client = [this](const std::string& user) { return make_client(user); },
    });
    for (auto& component : make_components(*context_)) {
      const auto started = co_await component->start();
      if (!started) {
        Error error = started.error();
        error.message = fmt::format("{} did not start: {}", component->name(), error.message);
        co_return fail(std::move(error));
      }
      components_.push_back(std::move(component));
    }
    co_return Result<void>();
  }

  /// The API server's, and /debug/idle beside it: which parts of the process have something to do.
  /// As /healthz it asks nobody who they are.
  net::Handler handler() {
    return [this, inner = server_->handler()](net::Request request, net::ResponseWriter& writer) {
      return request.target.starts_with("/debug/idle") ? tell_idle(writer)
                                                       : inner(std::move(request), writer);
    };
  }

  Task<void> tell_idle(net::ResponseWriter& writer) {
    std::vector<std::string> busy;
    for (const auto& component : components_) {
      if (!component->idle()) busy.push_back(component->name());
    }
    net::Response response;
    response.status = busy.empty() ? 200 : 503;
    response.headers.set("Content-Type", "text/plain");
    response.body = busy.empty() ? "idle\n" : "busy: " + join(busy, ", ") + "\n";
    const auto sent = co_await writer.send(std::move(response));
    (void)sent;
  }

  Result<void> publish(const Identity& identity) {
    KubeconfigRequest request;
    request.path = options_.data + "/kubeconfig";
    request.address = options_.address;
    request.port = socket_->port();
    if (beside_) request.socket = socket_path();
    const auto written = write_kubeconfig(identity, request);
    if (!written) return written;
    if (!options_.kubeconfig.empty()) {
      request.path = options_.kubeconfig;
      const auto copied = write_kubeconfig(identity, request);
      if (!copied) return copied;
    }
    return lock_.publish(address());
  }

  net::Loop& loop_;
  UpOptions options_;
  const DataLock& lock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<apiserver::Server> server_;
  std::unique_ptr<net::Server> socket_, beside_;
  std::unique_ptr<client::Client> watching_;
  std::unique_ptr<client::Informers> informers_;
  std::unique_ptr<ComponentContext> context_;
  std::vector<std::unique_ptr<Component>> components_;
  std::size_t node_count_ = 0;
};

void say_ready(const Cluster& cluster, const UpOptions& options, double seconds) {
  std::printf("muster is ready at %s (%zu nodes, %.2f s)\n\n",
              cluster.address().c_str(),
              cluster.node_count(),
              seconds);
  std::printf("  export KUBECONFIG=%s\n  kubectl get nodes\n\n",
              options.kubeconfig.empty() ? (options.data + "/kubeconfig").c_str()
                                         : options.kubeconfig.c_str());
  std::fflush(stdout);
}

/// Runs until a signal says stop. `ready` is called once it works.
template <typename Ready>
int serve(const UpOptions& options, Ready ready) {
  auto lock = DataLock::take(options.data);
  if (!lock) {
    fmt::print(stderr, "muster up: {}\n", lock.error().message);
    return 1;
  }
  // One thread waits for the signals; no other thread sees them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);

  net::Loop loop;
  const Duration begun = loop.monotonic();
  Cluster cluster(loop, options, *lock);
  const auto stop = loop.make_signal();
  std::thread waiter([&] {
    int number = 0;
    while (sigwait(&signals, &number) == 0) {
      if (number == SIGUSR2) return;
      loop.post([&stop] { stop->notify(); });
    }
  });
  int code = 0;
  loop.run_until_done(
      [](Cluster& it, Signal& end, int& result, net::Loop& env, Duration start, Ready& tell)
          -> Task<void> {
        const auto started = co_await it.start();
        if (started) {
          const double seconds = std::chrono::duration<double>(env.monotonic() - start).count();
          tell(it, seconds);
          co_await end.wait(Duration::zero());
          log::info("main", "stopping");
        } else {
          fmt::print(stderr, "muster up: {}\n", started.error().message);
          result = 1;
        }
        co_await it.stop();
      }(cluster, *stop, code, loop, begun, ready));
  pthread_kill(waiter.native_handle(), SIGUSR2);
  waiter.join();
  return code;
}

/// The child becomes the daemon; the parent waits until it is ready or has failed.
int detach(const UpOptions& options) {
  const Running running = find_running(options.data);
  if (running.pid != 0) {
    fmt::print(
        stderr,
        "muster up: a muster already runs with the data folder \"{}\" (process {}); stop it with 'muster down', or choose another with --data\n",
        options.data,
        running.pid);
    return 1;
  }
  std::error_code failure;
  std::filesystem::create_directories(options.data, failure);
  const std::string log_path = options.data + "/muster.log";
  int pipe_ends[2];
  if (failure || ::pipe2(pipe_ends, O_CLOEXEC) != 0) {
    fmt::print(stderr,
               "muster up: cannot use the data folder \"{}\": {}\n",
               options.data,
               failure ? failure.message() : std::strerror(errno));
    return 1;
  }
  const pid_t child = ::fork();
  if (child < 0) {
    fmt::print(stderr, "muster up: cannot fork: {}\n", std::strerror(errno));
    return 1;
  }
  if (child > 0) {
    ::close(pipe_ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(pipe_ends[0], buffer, sizeof buffer)) > 0;)
      said.append(buffer, static_cast<std::size_t>(got));
    ::close(pipe_ends[0]);
    if (!said.empty()) {
      std::fputs(said.c_str(), stdout);
      return 0;
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    fmt::print(stderr, "muster up: it did not start; the end of {}:\n", log_path);
    const auto log_text = read_file(log_path);
    if (log_text)
      std::fputs(log_text->substr(log_text->size() > 2000 ? log_text->size() - 2000 : 0).c_str(),
                 stderr);
    return 1;
  }
  ::setsid();
  ::close(pipe_ends[0]);
  const int log_file = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (log_file < 0 || nothing < 0) ::_exit(1);
  ::dup2(nothing, 0);
  ::dup2(log_file, 1);
  ::dup2(log_file, 2);
  const int code = serve(options, [&](const Cluster& cluster, double seconds) {
    const std::string text = fmt::format(
        "muster is ready at {} ({} nodes, {:.2f} s), process {}\n\n  export KUBECONFIG={}\n  kubectl get nodes\n  muster down\n\nlog: {}\n",
        cluster.address(),
        cluster.node_count(),
        seconds,
        ::getpid(),
        options.kubeconfig.empty() ? options.data + "/kubeconfig" : options.kubeconfig,
        log_path);
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t wrote = ::write(pipe_ends[1], text.data() + done, text.size() - done);
      if (wrote <= 0) break;
      done += static_cast<std::size_t>(wrote);
    }
    ::close(pipe_ends[1]);
  });
  ::_exit(code);
}

int run_up(command::Call& call) {
  const auto options = read_options(call.values);
  if (!options) return call.misused(options.error().message);
  ::umask(077);  // what is written from here on is nobody else's; pods' files say so themselves
  if (options->detach) return detach(*options);
  return serve(*options, [&](const Cluster& cluster, double seconds) {
    say_ready(cluster, *options, seconds);
  });
}

std::vector<command::Flag> up_flags() {
  using command::Completes;
  using command::FlagType;
  return {
      {.name = "data",
       .help = "keep everything in this folder (default $MUSTER_HOME, else ~/.muster)",
       .completes = Completes::kFiles,
       .value_name = "FOLDER"},
      {.name = "listen",
       .value = "127.0.0.1:6443",
       .help = "serve the API at this address; port 0 picks a free one",
       .value_name = "ADDRESS:PORT"},
      {.name = "nodes",
       .help = "number of virtual nodes, or a file of Node objects (default 3 on the first start)",
       .completes = Completes::kFiles,
       .value_name = "N|FILE"},
      {.name = "gpus",
       .help = "simulated GPUs of each virtual node (default: this machine's own GPUs, else 4)",
       .value_name = "N"},
      {.name = "kubeconfig",
       .help = "also write the kubeconfig to this file",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "hollow",
       .type = FlagType::kBool,
       .value = "false",
       .help = "pretend to run pods: report them Running, start no process"},
      {.name = "hived-config",
       .help = "virtual clusters and cells, in HiveD's own format",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "scheduler-config",
       .help =
           "how to decide: a policy as for muster sim, or Volcano's scheduler configuration; read again when it changes (default: Muster's own policy)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "images",
       .help =
           "which folder is the root of which image (docs/agent.md); other images run on this machine's files",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "pod-max-pids",
       .help =
           "how many processes and threads a container may have (default: half of the machine's)",
       .value_name = "N"},
      {.name = "node-monitor-grace-period",
       .value = "40s",
       .help = "how long a node may be silent before its state is Unknown",
       .value_name = "DURATION"},
      {.name = "service-account-max-token-expiration",
       .help = "the longest lifetime of a pod's token, whatever it asks for",
       .value_name = "DURATION"},
      {.name = "pod-security",
       .value = "baseline",
       .help =
           "what pods of others than administrators may ask for in namespaces without a level of their own (docs/security.md)",
       .completes = Completes::kWords,
       .words = {"privileged", "baseline", "restricted"},
       .value_name = "LEVEL"},
      {.name = "without",
       .help = "leave out scheduler, controllers or agent (separated by commas)",
       .completes = Completes::kWords,
       .words = {"scheduler", "controllers", "agent"},
       .value_name = "LIST"},
      {.name = "detach",
       .type = FlagType::kBool,
       .value = "false",
       .help = "go to the background once it is ready; the log is muster.log in the data folder"},
  };
}

}  // namespace

command::Command up_command() {
  command::Command made;
  made.name = "up";
  made.summary = "Start a cluster on this machine";
  made.details =
      "API server, scheduler, job controllers and node agent run in one process. The kubeconfig is FOLDER/kubeconfig.";
  made.examples =
      "  # In the background, with four virtual nodes of eight GPUs\n"
      "  muster up --detach --nodes 4 --gpus 8\n"
      "  # A cluster to try the scheduler on: no process is started for a pod\n"
      "  muster up --data /tmp/hollow --listen 127.0.0.1:0 --nodes nodes.yaml --hollow\n";
  made.flags = up_flags();
  made.run = run_up;
  return made;
}

}  // namespace muster
