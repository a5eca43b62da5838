#include "main/cluster.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "agent/node/devices.h"
#include "agent/node/virtual_nodes.h"
#include "apiserver/encryption/sealed_store.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "controllers/common/admission.h"
#include "main/pai_layout.h"
#include "main/portal_flags.h"
#include "main/scheduler_config.h"
#include "net/http/front.h"
#include "net/http/query.h"
#include "pai/people/password.h"
#include "scheduler/metrics.h"

namespace muster {
namespace {

/// A thread for the sockets pays where a core is free beside the loop, the store and the clients of
/// the machine; on two it only costs.
bool sockets_apart() {
  if (const char* said = std::getenv("MUSTER_API_THREAD"); said != nullptr)
    return net::truthy(said);
  return std::thread::hardware_concurrency() > 2;
}

/// What a cluster with the operators installed has as validating webhooks.
std::vector<Cause> judge(const json::Value& object,
                         const json::Value* old_object,
                         std::vector<std::string>* warnings) {
  auto verdict = controllers::admit(object, old_object);
  if (warnings != nullptr)
    warnings->insert(warnings->end(), verdict.warnings.begin(), verdict.warnings.end());
  return std::move(verdict.errors);
}

Error not_started(std::string_view part, Error error) {
  error.message = fmt::format("{} did not start: {}", part, error.message);
  return error;
}

}  // namespace

Cluster::Cluster(net::Loop& loop, ClusterOptions options, const DataLock& lock)
    : loop_(loop), options_(std::move(options)), lock_(lock) {}

Cluster::~Cluster() = default;

Task<Result<void>> Cluster::start() {
  auto nodes = planned_nodes();
  if (!nodes) co_return fail(nodes.error());
  auto identity = apiserver::load_identity(options_.data, options_.address, loop_.now());
  if (!identity) co_return fail(identity.error());
  apiserver::encryption::Keys keys;
  if (!options_.encryption_key_file.empty()) {
    auto read = apiserver::encryption::read_keys(options_.encryption_key_file);
    if (!read)
      co_return fail(
          read.error().code,
          fmt::format(
              "--encryption-key-file {}: {}", options_.encryption_key_file, read.error().message));
    keys = std::move(*read);
  }
  auto opened = apiserver::encryption::open(loop_, options_.data + "/muster.db", std::move(keys));
  if (!opened) co_return fail(opened.error());
  store_ = std::move(*opened);
  const auto served = co_await start_server(*identity);
  if (!served) co_return served;
  const auto made = co_await make_nodes(std::move(*nodes));
  if (!made) co_return made;
  watching_ = make_client("system:muster");
  informers_ = std::make_unique<client::Informers>(loop_, *watching_);
  answers_client_ = make_client("system:muster-answers");
  options_.answers.queues_closed = options_.queues_closed;
  answers_ =
      std::make_unique<Answers>(loop_, *answers_client_, *informers_, options_.answers, [this] {
        return scheduler_ ? scheduler_->scheduler() : nullptr;
      });
  if (has("scheduler")) {
    const auto started = co_await start_scheduler();
    if (!started) scheduler_.reset();
    if (!started) co_return fail(not_started("scheduler", started.error()));
  }
  if (has("controllers")) co_await start_controllers();
  if (has("agent")) {
    const auto started = co_await start_agent();
    if (!started) agent_.reset();
    if (!started) co_return fail(not_started("agent", started.error()));
  }
  answers_->draft_with([this] { return controllers_.get(); });
  answers_->start();
  if (!options_.pai_rest.empty()) {
    const auto started = co_await start_pai();
    if (!started) co_return fail(not_started("OpenPAI's API", started.error()));
  }
  if (options_.portal) {
    const auto kept = make_first_password();
    if (!kept) co_return kept;
    const auto started = start_portal(*identity);
    if (!started) co_return started;
  }
  co_return publish(*identity);
}

Task<void> Cluster::stop() {
  if (portal_) co_await portal_->stop();
  if (pai_) co_await pai_->stop();
  if (agent_) {
    server_->set_node_agent(std::nullopt);
    co_await agent_->stop(/*remove_pods=*/true);
  }
  if (controllers_) co_await controllers_->stop();
  if (scheduler_) co_await scheduler_->stop();
  if (answers_) co_await answers_->stop();
  if (informers_) co_await informers_->stop_all();
  // Watches end first, so that connections have nothing to wait for.
  if (server_) co_await server_->stop();
  if (socket_) co_await socket_->stop();
  if (beside_) co_await beside_->stop();
  portal_.reset();
  pai_.reset();
  agent_.reset();
  controllers_.reset();
  scheduler_.reset();
  answers_.reset();
  if (store_) co_await store_->close();
}

std::string Cluster::reachable() const {
  return options_.address == "0.0.0.0" ? "127.0.0.1" : options_.address;
}

std::string Cluster::address() const {
  return fmt::format("https://{}:{}", reachable(), socket_->port());
}

std::unique_ptr<client::Client> Cluster::make_client(const std::string& user) {
  return server_->make_client(user);
}

/// Nothing named on a later start: the nodes stay as they are.
Result<std::optional<std::vector<json::Value>>> Cluster::planned_nodes() {
  const bool first = !std::filesystem::exists(options_.data + "/muster.db");
  if (options_.nodes.empty() && !first) return std::optional<std::vector<json::Value>>();
  agent::NodesRequest request;
  if (options_.gpus) {
    request.gpus = *options_.gpus;
  } else {
    for (const agent::Gpu& gpu : agent::find_gpus(options_.cdi_folders))
      request.real_gpus.push_back(gpu.model);
  }
  request.nodes = !options_.nodes.empty() ? options_.nodes : request.real_gpus.empty() ? "3" : "1";
  auto nodes = agent::plan_nodes(request, loop_.now());
  if (!nodes) return fail(nodes.error());
  return std::optional<std::vector<json::Value>>(std::move(*nodes));
}

Task<Result<void>> Cluster::start_server(const apiserver::Identity& identity) {
  apiserver::ServerOptions options;
  options.ca_pem = identity.ca.certificate_pem;
  options.token_key_pem = identity.token_key;
  options.admin_token = identity.admin_token;
  options.custom_rules = judge;
  options.address = options_.address;
  options.token_lifetime_s_max = options_.token_lifetime_max / std::chrono::seconds(1);
  options.pod_security = options_.pod_security;
  options.audit = options_.audit;
  options.dial = [this](net::ClientOptions wanted) {
    return net::make_client(loop_, std::move(wanted));
  };
  options.queues_closed = options_.queues_closed;
  options.find_token_owner = [this](const std::string& token) { return token_owner(token); };
  options.answers = [this](apiserver::AnswersCall call) { return answer(std::move(call)); };
  options.add_metrics = [this](prometheus::Page& page) {
    page.one("muster_leader", "gauge", "1 while this replica does the work.", 1);
    if (scheduler_ && scheduler_->scheduler() != nullptr)
      scheduler::add_metrics(page, *scheduler_->scheduler());
    if (answers_) answers_->add_metrics(page);
  };
  server_ = std::make_unique<apiserver::Server>(loop_, *store_, std::move(options));
  const auto started = co_await server_->start();
  if (!started) co_return started;
  const auto listening = listen(identity);
  if (!listening) co_return listening;
  listen_beside();
  co_await server_->set_endpoint(options_.address, socket_->port());
  co_return Result<void>();
}

Result<void> Cluster::listen(const apiserver::Identity& identity) {
  net::ServerOptions options;
  options.address = options_.address;
  options.port = options_.port;
  options.certificate_pem = identity.server.certificate_pem;
  options.key_pem = identity.server.key_pem;
  options.client_ca_pem = identity.ca.certificate_pem;
  auto listening = sockets_apart() ? net::listen_apart(loop_, std::move(options), handler())
                                   : net::listen(loop_, std::move(options), handler());
  if (!listening) {
    Error error = listening.error();
    error.message = fmt::format(
        "cannot listen on {}:{}: {}; choose another with --listen, or --listen {}:0 for any free port",
        options_.address,
        options_.port,
        error.message,
        options_.address);
    return fail(std::move(error));
  }
  socket_ = std::move(*listening);
  return {};
}

/// The API once more, where it costs no TLS; credentials are asked for all the same. Without it (its
/// path may be too long) commands take the address.
void Cluster::listen_beside() {
  net::ServerOptions beside;
  beside.unix_path = socket_path();
  auto listening = net::listen(loop_, std::move(beside), handler());
  if (listening) {
    beside_ = std::move(*listening);
  } else {
    log::info("main", "there is no Unix socket beside the address: {}", listening.error().message);
  }
}

/// The API server's, and /debug/idle beside it: which parts of the process have something to do. As
/// /healthz it asks nobody who they are.
net::Handler Cluster::handler() {
  return [this, inner = server_->handler()](net::Request request, net::ResponseWriter& writer) {
    return request.target.starts_with("/debug/idle") ? tell_idle(writer)
                                                     : inner(std::move(request), writer);
  };
}

Task<net::Response> Cluster::answer(apiserver::AnswersCall call) {
  net::Response response;
  if (answers_) {
    response = co_await answers_->answer(std::move(call));
  } else {
    response.status = 503;
    response.body = "the cluster is still starting\n";
  }
  co_return response;
}

Task<void> Cluster::tell_idle(net::ResponseWriter& writer) {
  std::vector<std::string> busy;
  if (scheduler_ && !scheduler_->idle()) busy.emplace_back("scheduler");
  if (controllers_ && !controllers_->idle()) busy.emplace_back("controllers");
  if (answers_ && !answers_->idle()) busy.emplace_back("records");
  net::Response response;
  response.status = busy.empty() ? 200 : 503;
  response.headers.set("Content-Type", "text/plain");
  response.body = busy.empty() ? "idle\n" : "busy: " + join(busy, ", ") + "\n";
  const auto sent = co_await writer.send(std::move(response));
  (void)sent;
}

Task<Result<void>> Cluster::make_nodes(std::optional<std::vector<json::Value>> nodes) {
  const auto client = make_client("system:muster");
  if (nodes) {
    const auto applied = co_await agent::apply_nodes(loop_, *client, std::move(*nodes));
    // On a full disk those that are there will do; people want to read and delete.
    if (!applied && store_->trouble().empty()) co_return applied;
    if (!applied) log::warn("main", "nodes stay as they are: {}", applied.error().message);
  }
  const auto listed = co_await client->list(client::resources::kNodes, {});
  if (listed) node_count_ = listed->items.size();
  co_return Result<void>();
}

/// Without --scheduler-config it is one that administrators may write, by hand or in the portal.
std::string Cluster::policy_file() const {
  return options_.scheduler_config.empty() ? options_.data + "/scheduler.yaml"
                                           : options_.scheduler_config;
}

Task<Result<void>> Cluster::start_scheduler() {
  scheduler::ServiceOptions options;
  options.scheduling.name = "default-scheduler";
  options.config_file = policy_file();
  options.config_optional = options_.scheduler_config.empty();
  options.parse_config = parse_scheduler_config;
  options.cells_file = options_.hived_config;
  options.keep_cells = true;
  answers_->listen_to(options.scheduling);
  const auto read = scheduler::read_files(options);
  if (!read) co_return read;
  scheduler_client_ = make_client("system:muster-scheduler");
  scheduler_ = std::make_unique<scheduler::Service>(
      loop_, *scheduler_client_, *informers_, std::move(options));
  auto started = co_await scheduler_->start();
  co_return started;
}

Task<void> Cluster::start_controllers() {
  controllers::Options options;
  // Pods of a gang wait until its PodGroup is admitted, and only a scheduler admits it.
  controllers::set_gang_scheduler(options.settings, has("scheduler") ? "volcano" : "none");
  options.settings.pytorch_init_lookup = "getent hosts";
  options.settings.exec_over_websocket = true;
  options.settings.force_delete_after = std::chrono::minutes(1);
  options.node_grace = options_.node_grace;
  controllers_client_ = make_client("system:muster-controllers");
  controllers_ = std::make_unique<controllers::Controllers>(
      loop_, *controllers_client_, *informers_, std::move(options));
  co_await controllers_->start();
}

Task<Result<void>> Cluster::start_agent() {
  agent::AgentOptions options;
  options.directory = options_.data + "/agent";
  options.hidden = options_.data;
  options.api_address = reachable();
  options.api_port = socket_->port();
  options.hollow = options_.hollow;
  options.images_file = options_.images;
  options.image_source = options_.image_source;
  options.runtime = options_.runtime;
  options.image_directory = options_.data + "/containerd";
  options.archives = options_.data + "/images";
  options.parallel_pulls_max = options_.image_pulls_max;
  options.pids_max = options_.pod_pids_max;
  options.cdi_folders = options_.cdi_folders;
  options.map_users = options_.map_pod_users;
  agent_client_ = make_client("system:muster-agent");
  agent_ = agent::make_agent(loop_, *agent_client_, std::move(options));
  const auto started = co_await agent_->start();
  if (!started) co_return started;
  apiserver::NodeAgent answers;
  answers.stream = [this](std::string subresource,
                          json::Value pod,
                          net::Target target,
                          net::Request request,
                          net::ResponseWriter& writer) {
    return agent_->streams().serve(
        std::move(subresource), std::move(pod), std::move(target), std::move(request), writer);
  };
  answers.node_metrics = [this] { return agent_->metrics().node_metrics(); };
  answers.pod_metrics = [this](std::string ns) {
    return agent_->metrics().pod_metrics(std::move(ns));
  };
  answers.filters_traffic = agent_->filters_traffic();
  server_->set_node_agent(std::move(answers));
  co_return Result<void>();
}

Task<Result<void>> Cluster::start_pai() {
  pai::ServiceOptions options;
  options.listen = options_.pai_rest;
  options.admin_password_file = options_.admin_password_file;
  options.keep_password_in = options_.data + "/admin-password";
  if (agent_)
    options.rest.former_log = [this](std::string pod_uid, std::size_t bytes_max) {
      return agent_->former_log(std::move(pod_uid), "app", bytes_max);
    };
  pai_client_ = make_client("system:muster-pai");
  pai_ = std::make_unique<pai::Service>(loop_, *pai_client_, *informers_, std::move(options));
  auto started = co_await pai_->start();
  co_return started;
}

/// A person's token is theirs for the Kubernetes API, too; a program's is for jobs in OpenPAI's API
/// alone.
std::optional<apiserver::TokenOwner> Cluster::token_owner(const std::string& token) const {
  if (!pai_) return std::nullopt;
  const auto caller = pai_->people().caller_of_token(token);
  if (!caller || caller->application) return std::nullopt;
  const pai::UserRecord* user = pai_->people().directory().find_user(caller->user);
  if (user == nullptr) return std::nullopt;
  return apiserver::TokenOwner{user->name, pai_->people().kubernetes_groups(*user)};
}

/// People are made when somebody visits the portal; the first password is known before.
Result<void> Cluster::make_first_password() {
  const std::string path = options_.data + "/admin-password";
  if (!options_.admin_password_file.empty() || std::filesystem::exists(path)) return {};
  first_password_ = pai::readable_password(net::random_bytes(20));
  return write_private(path, first_password_ + "\n");
}

Task<Result<pai::Service*>> Cluster::pai_for_portal() {
  if (!pai_) {
    const auto started = co_await start_pai();
    if (!started) {
      pai_.reset();
      co_return fail(started.error());
    }
  }
  co_return pai_.get();
}

Result<void> Cluster::start_portal(const apiserver::Identity& identity) {
  portal::Options options;
  options.listening = *options_.portal;
  options.cluster = "muster";
  options.samples_file = options_.data + "/portal-samples.jsonl";
  options.trail_file = options_.data + "/portal-audit.jsonl";
  if (options_.audit && options_.audit->file.path != "-")
    options.audit_file = options_.audit->file.path;
  const std::string& where = options.listening.address;
  if (!where.starts_with("127.") && where != "::1" && !options.listening.plain_http) {
    net::CertificateRequest request;
    request.common_name = "muster-portal";
    request.server = true;
    request.dns_names = {"localhost"};
    request.addresses = {"127.0.0.1", "::1"};
    for (const std::string& name : options.listening.hosts) request.dns_names.push_back(name);
    apiserver::add_names_of(request, where);
    auto made = net::make_certificate(identity.ca, request, loop_.now());
    if (!made) return fail(made.error());
    options.certificate_pem = made->certificate_pem;
    options.key_pem = made->key_pem;
    options.certificate_names = request.dns_names;
    for (const std::string& address : request.addresses)
      options.certificate_names.push_back(address);
  }
  ask_scheduler(options, [this] { return scheduler_ ? scheduler_->scheduler() : nullptr; });
  if (has("scheduler") && answers_) ask_answers(options, *answers_);
  if (has("scheduler")) edit_policy(options, policy_file(), options_.scheduler_config.empty());
  options.simulator = "/proc/self/exe";
  options.simulations_folder = options_.data + "/portal-simulations";
  portal_people_ = std::make_unique<PortalPeople>(loop_, [this] { return pai_for_portal(); });
  if (options_.pai_layout) portal_people_->warn_of(kKnownPassword);
  portal_people_->fill(options);
  portal_client_ = make_client("system:muster-portal");
  portal_ =
      std::make_unique<portal::Portal>(loop_, *portal_client_, *informers_, std::move(options));
  portal_people_->tell(*portal_);
  const auto started = portal_->start();
  if (!started) portal_.reset();
  return started;
}

Result<void> Cluster::publish(const apiserver::Identity& identity) {
  apiserver::KubeconfigRequest request;
  request.path = options_.data + "/kubeconfig";
  request.address = options_.address;
  request.port = socket_->port();
  if (beside_) request.socket = socket_path();
  const auto written = apiserver::write_kubeconfig(identity, request);
  if (!written) return written;
  if (!options_.kubeconfig.empty()) {
    request.path = options_.kubeconfig;
    const auto copied = apiserver::write_kubeconfig(identity, request);
    if (!copied) return copied;
  }
  return lock_.publish(address());
}

}  // namespace muster
