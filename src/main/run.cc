#include "main/run.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "base/log.h"
#include "base/prometheus.h"
#include "base/strings.h"
#include "client/informer.h"
#include "client/kubeconfig.h"
#include "client/leader.h"
#include "controllers/controllers.h"
#include "controllers/webhook.h"
#include "main/aggregated.h"
#include "main/answers.h"
#include "main/portal_flags.h"
#include "main/scheduler_config.h"
#include "main/serve.h"
#include "net/http/listen_address.h"
#include "net/http/server.h"
#include "pai/service.h"
#include "portal/portal.h"
#include "scheduler/metrics.h"
#include "scheduler/service.h"

namespace muster {
namespace {

struct RunOptions {
  std::string kubeconfig, context, scheduler_config, hived_config, ns, metrics, gang_scheduler;
  controllers::WebhookOptions webhook;
  std::optional<portal::Listening> portal;
  AnswersOptions answers;
  AggregatedOptions aggregated;
  std::string pai_rest, admin_password_file, runtime_image;
  bool leader_elect = false;
  std::int64_t gpus_per_node = 8;
  std::vector<std::string> scheduler_names, left_out;
};

std::vector<std::string> words_of(std::string_view list) {
  std::vector<std::string> words;
  for (const std::string& word : split_nonempty(list, ',')) {
    if (const auto bare = trim(word); !bare.empty()) words.emplace_back(bare);
  }
  return words;
}

std::string default_namespace() {
  const char* pod_namespace = std::getenv("POD_NAMESPACE");
  return pod_namespace != nullptr ? pod_namespace : "muster-system";
}

/// A slip in a list would place pods of others, or make a second operator of jobs that have one.
Result<RunOptions> read_options(const command::Values& values) {
  RunOptions options;
  options.kubeconfig = values.text("kubeconfig");
  options.context = values.text("context");
  options.scheduler_config = values.text("scheduler-config");
  options.hived_config = values.text("hived-config");
  options.ns = values.given("namespace") ? values.text("namespace") : default_namespace();
  options.metrics = values.text("metrics");
  options.gang_scheduler = values.text("gang-scheduler");
  options.webhook.listen = values.text("webhook-listen");
  options.webhook.certificate_file = values.text("webhook-certificate");
  options.webhook.key_file = values.text("webhook-key");
  const std::string access = values.text("queue-access");
  if (access != "open" && access != "closed")
    return fail(Code::kBadRequest, fmt::format("--queue-access {}: wanted open or closed", access));
  options.webhook.queues_closed = access == "closed";
  options.leader_elect = values.yes("leader-elect");
  options.pai_rest = values.text("pai-rest");
  options.admin_password_file = values.text("admin-password-file");
  options.runtime_image = values.text("pai-runtime-image");
  const auto per_node = parse_int(values.text("gpus-per-node"));
  if (!per_node || *per_node < 1)
    return fail(
        Code::kBadRequest,
        fmt::format("--gpus-per-node {}: wanted a number from 1 on", values.text("gpus-per-node")));
  options.gpus_per_node = *per_node;
  options.scheduler_names = words_of(values.text("scheduler-name"));
  if (options.scheduler_names.empty())
    return fail(
        Code::kBadRequest,
        "--scheduler-name needs at least one name: without one every pod of the cluster would be ours");
  auto answering = answers_options(values);
  if (!answering) return fail(answering.error());
  options.answers = std::move(*answering);
  options.answers.queues_closed = options.webhook.queues_closed;
  options.aggregated = aggregated_options(values);
  options.aggregated.ns = options.ns;
  auto listening = portal_listening(values);
  if (!listening) return fail(listening.error());
  options.portal = std::move(*listening);
  options.left_out = words_of(values.text("without"));
  for (const std::string& part : options.left_out) {
    if (part != "scheduler" && part != "controllers")
      return fail(Code::kBadRequest,
                  fmt::format("--without {}: wanted scheduler or controllers", part));
  }
  return options;
}

/// Well below the 30 s that a pod has to end.
constexpr Duration kFinishMax = std::chrono::seconds(10);

/// The parts that work while this process leads.
class Operator {
 public:
  Operator(net::Loop& loop, const RunOptions& options) : loop_(loop), options_(options) {}

  Result<void> prepare() {
    client::KubeconfigOptions where = cluster();
    if (const auto found = client::resolve_connection(where); found) connection_ = *found;
    auto connected = client::connect(loop_, std::move(where));
    if (!connected) return fail(connected.error());
    client_ = std::move(*connected);
    scheduler::Options& scheduling = service_.scheduling;
    scheduling.name = options_.scheduler_names.front();
    scheduling.scheduler_names.insert(options_.scheduler_names.begin(),
                                      options_.scheduler_names.end());
    scheduling.engine.scheduler_name = scheduling.name;
    scheduling.volumes = true;
    // Enough that etcd writes many in one go: with half as many the server itself pays a fifth more
    // a pod. More bring nothing, and a server's own fairness lets a hundred or so of one client
    // through at once.
    scheduling.in_flight_max = 128;
    service_.config_file = options_.scheduler_config;
    service_.parse_config = parse_scheduler_config;
    service_.cells_file = options_.hived_config;
    return scheduler::read_files(service_);
  }

  Task<Result<void>> begin() {
    informers_ = std::make_unique<client::Informers>(loop_, *client_);
    answers_ = std::make_unique<Answers>(loop_, *client_, *informers_, options_.answers, [this] {
      return scheduler_ ? scheduler_->scheduler() : nullptr;
    });
    answers_->listen_to(service_.scheduling);
    if (!without("scheduler")) {
      scheduler_ = std::make_unique<scheduler::Service>(loop_, *client_, *informers_, service_);
      const auto started = co_await scheduler_->start();
      if (!started) co_return started;
    }
    if (!without("controllers")) {
      controllers::Options options;
      const std::string fallback = without("scheduler") ? "volcano" : "muster";
      controllers::set_gang_scheduler(
          options.settings, options_.gang_scheduler.empty() ? fallback : options_.gang_scheduler);
      if (options_.gang_scheduler.empty() && !without("scheduler"))
        options.settings.gang_scheduler = service_.scheduling.name;
      options.settings.gpus_per_node = options_.gpus_per_node;
      // The cluster's own controller manager keeps Jobs, StatefulSets and the like.
      options.workloads = false;
      controllers_ = std::make_unique<controllers::Controllers>(
          loop_, *client_, *informers_, std::move(options));
      loop_.spawn(controllers_->start());
    }
    answers_->draft_with([this] { return controllers_.get(); }, signs());
    answers_->start();
    if (aggregated_) aggregated_->lead();
    if (options_.portal) {
      const auto started = start_portal();
      if (!started) co_return started;
    }
    if (!options_.pai_rest.empty()) {
      const auto started = co_await start_pai();
      if (!started) co_return started;
    }
    log::info("main", "working");
    co_return Result<void>();
  }

  /// The replica that leads serves it: what it answers from memory is what it has just written.
  Task<Result<void>> start_pai() {
    pai::ServiceOptions options;
    options.listen = options_.pai_rest;
    options.admin_password_file = options_.admin_password_file;
    options.rest.scheduler = service_.scheduling.name;
    options.rest.runtime_image = options_.runtime_image;
    pai_ = std::make_unique<pai::Service>(loop_, *client_, *informers_, std::move(options));
    auto started = co_await pai_->start();
    if (started) fmt::print("OpenPAI's API: port {}\n", pai_->port());
    co_return started;
  }

  /// The credential of this process, as its client has it, for requests in others' names.
  [[nodiscard]] std::function<void(net::Request&)> signs() const {
    return [client = connection_.client](net::Request& request) {
      std::string token = client.token;
      if (!client.token_file.empty()) {
        if (const auto text = read_file(client.token_file); text) token = std::string(trim(*text));
      }
      if (!token.empty()) request.headers.set("Authorization", "Bearer " + token);
    };
  }

  Result<void> start_portal() {
    portal::Options options;
    options.listening = *options_.portal;
    options.cluster = connection_.context;
    options.sign = signs();
    ask_scheduler(options, [this] { return scheduler_ ? scheduler_->scheduler() : nullptr; });
    if (!without("scheduler")) ask_answers(options, *answers_);
    if (!without("scheduler") && !options_.scheduler_config.empty())
      edit_policy(options, options_.scheduler_config, false);
    portal_ = std::make_unique<portal::Portal>(loop_, *client_, *informers_, std::move(options));
    const auto started = portal_->start();
    if (started) fmt::print("portal: {}\n", portal_->address());
    return started;
  }

  /// Every replica listens for what people ask; the one that leads answers.
  Result<void> serve_answers() {
    if (options_.aggregated.listen.empty()) return {};
    aggregated_ = std::make_unique<Aggregated>(
        loop_, *client_, options_.aggregated, [this] { return answers_.get(); });
    return aggregated_->start();
  }

  /// `in_order`: we still lead, and what was begun is finished.
  Task<void> end(bool in_order) {
    if (aggregated_) co_await aggregated_->stop();
    if (portal_) co_await portal_->stop();
    if (pai_) co_await pai_->stop();
    if (controllers_) co_await controllers_->stop();
    if (scheduler_ && in_order) co_await scheduler_->finish(kFinishMax);
    if (scheduler_) co_await scheduler_->stop();
    if (answers_) co_await answers_->stop();
    if (informers_) co_await informers_->stop_all();
  }

  [[nodiscard]] client::Client& client() { return *client_; }
  [[nodiscard]] bool working() const { return informers_ != nullptr; }

  [[nodiscard]] bool idle() const {
    return (!scheduler_ || scheduler_->idle()) && (!controllers_ || controllers_->idle()) &&
           (!answers_ || answers_->idle());
  }
  /// Leading with the whole picture, or standing by within reach of the API server: either way this
  /// replica is as it should be.
  [[nodiscard]] bool ready() const {
    if (!working()) return !elector_ || elector_->out_of_touch() == Duration::zero();
    return !scheduler_ || scheduler_->ready();
  }
  void stands_by_with(const client::LeaderElector& elector) { elector_ = &elector; }
  /// From when on nothing more is decided here, by the clock and not only by what was heard: a
  /// process that was stopped for a while hears of it too late.
  void leads_while(std::function<bool()> leads) { service_.scheduling.leads = std::move(leads); }
  /// Whether the files say another authority or certificate than the one in use: a fresh start reads
  /// them. A program that makes credentials is not run for this.
  [[nodiscard]] bool credentials_renewed() const {
    if (!connection_.client.token_command.argv.empty()) return false;
    const auto now = client::resolve_connection(cluster());
    return now && (now->http.ca_pem != connection_.http.ca_pem ||
                   now->http.certificate_pem != connection_.http.certificate_pem ||
                   now->http.key_pem != connection_.http.key_pem);
  }

  /// What it waits for if it is not.
  [[nodiscard]] std::string not_ready_because() const {
    if (!working())
      return fmt::format(
          "the API server has not answered for {} s\n",
          std::chrono::duration_cast<std::chrono::seconds>(elector_->out_of_touch()).count());
    return fmt::format("kinds that are not known yet: {}\n", join(scheduler_->unknown(), ", "));
  }

  [[nodiscard]] std::string metrics() const {
    prometheus::Page page;
    page.one("muster_leader", "gauge", "1 while this replica does the work.", working() ? 1 : 0);
    if (scheduler_ && scheduler_->scheduler() != nullptr)
      scheduler::add_metrics(page, *scheduler_->scheduler());
    if (answers_) answers_->add_metrics(page);
    prometheus::add_process(page);
    return page.take();
  }

 private:
  [[nodiscard]] client::KubeconfigOptions cluster() const {
    client::KubeconfigOptions where;
    where.path = options_.kubeconfig;
    where.context = options_.context;
    return where;
  }
  [[nodiscard]] bool without(std::string_view part) const {
    return std::find(options_.left_out.begin(), options_.left_out.end(), part) !=
           options_.left_out.end();
  }

  net::Loop& loop_;
  const RunOptions& options_;
  scheduler::ServiceOptions service_;
  std::unique_ptr<client::Client> client_;
  std::unique_ptr<client::Informers> informers_;
  std::unique_ptr<Answers> answers_;
  std::unique_ptr<scheduler::Service> scheduler_;
  std::unique_ptr<controllers::Controllers> controllers_;
  const client::LeaderElector* elector_ = nullptr;
  client::Connection connection_;
  std::unique_ptr<portal::Portal> portal_;
  std::unique_ptr<pai::Service> pai_;
  std::unique_ptr<Aggregated> aggregated_;
};

/// A standby that cannot reach the API server ends when its kubeconfig or certificates have been
/// renewed, and after so long in any case: started anew it reads all of them afresh.
constexpr Duration kOutOfTouchMost = std::chrono::minutes(2);
constexpr Duration kTouchLook = std::chrono::seconds(10);

Result<std::unique_ptr<net::Server>> serve_metrics(net::Loop& loop,
                                                   const RunOptions& options,
                                                   Operator& worker) {
  auto where = net::parse_listen("--metrics", options.metrics);
  if (!where) return fail(where.error());
  return net::listen(loop,
                     std::move(*where),
                     [&worker](net::Request request, net::ResponseWriter& writer) -> Task<void> {
                       net::Response response;
                       response.headers.set("Content-Type", "text/plain; version=0.0.4");
                       const std::string path = request.target.substr(0, request.target.find('?'));
                       const bool healthy = path == "/livez" || path == "/healthz" ||
                                            (path == "/readyz" && worker.ready());
                       if (path == "/metrics") {
                         response.body = worker.metrics();
                       } else if (path == "/debug/idle") {
                         response.status = worker.idle() ? 200 : 503;
                         response.body = worker.idle() ? "idle\n" : "busy\n";
                       } else if (healthy) {
                         response.body = "ok";
                       } else if (path == "/readyz") {
                         response.status = 503;
                         response.body = worker.not_ready_because();
                       } else {
                         response.status = 404;
                       }
                       const auto sent = co_await writer.send(std::move(response));
                       (void)sent;
                     });
}

/// One piece: the life of `muster run` from start to end, and what is begun here is ended here.
Task<int> operate(net::Loop& loop, const RunOptions& options, Signal& stop) {
  Operator worker(loop, options);
  const auto prepared = worker.prepare();
  if (!prepared) {
    fmt::print(stderr, "muster run: {}\n", prepared.error().message);
    co_return 1;
  }
  std::vector<std::unique_ptr<net::Server>> servers;
  const auto serve = [&](Result<std::unique_ptr<net::Server>> served) {
    if (served)
      servers.push_back(std::move(*served));
    else
      fmt::print(stderr, "muster run: {}\n", served.error().message);
    return static_cast<bool>(served);
  };
  if ((!options.metrics.empty() && !serve(serve_metrics(loop, options, worker))) ||
      (!options.webhook.listen.empty() &&
       !serve(controllers::serve_webhook(loop, options.webhook, worker.client())))) {
    co_return 1;
  }

  if (const auto answering = worker.serve_answers(); !answering) {
    fmt::print(stderr, "muster run: {}\n", answering.error().message);
    co_return 1;
  }

  std::unique_ptr<client::LeaderElector> elector;
  bool lost = false, refused = false;
  if (options.leader_elect) {
    client::LeaderOptions election;
    election.ns = options.ns;
    // A leader that dies without a word is followed by another one, with answers, within 15 s.
    election.lease = std::chrono::seconds(10);
    election.renew_deadline = std::chrono::seconds(7);
    election.retry = std::chrono::milliseconds(1500);
    char host[256] = {};
    ::gethostname(host, sizeof host - 1);
    election.identity =
        fmt::format("{}_{}_{:08x}", host, ::getpid(), static_cast<std::uint32_t>(loop.random()));
    election.on_started = [&] {
      loop.spawn([](Operator& leader, Signal& end, bool& wrong) -> Task<void> {
        const auto begun = co_await leader.begin();
        if (begun) co_return;
        fmt::print(stderr, "muster run: {}\n", begun.error().message);
        wrong = true;
        end.notify();
      }(worker, stop, refused));
    };
    // Another replica may work already: whatever we hold in memory is stale, so this process ends
    // and is started anew.
    election.on_stopped = [&] {
      lost = true;
      stop.notify();
    };
    worker.leads_while([&elector] { return elector->leading(); });
    elector = client::make_leader_elector(loop, worker.client(), std::move(election));
    elector->start();
    worker.stands_by_with(*elector);
  } else {
    const auto begun = co_await worker.begin();
    if (!begun) {
      fmt::print(stderr, "muster run: {}\n", begun.error().message);
      co_return 1;
    }
  }
  fmt::print("muster runs{}\n", options.leader_elect ? "; waiting to lead" : "");
  std::fflush(stdout);
  bool stale = false;
  std::unique_ptr<Timer> looking;
  std::function<void()> look = [&] {
    const Duration silent =
        elector && !worker.working() ? elector->out_of_touch() : Duration::zero();
    stale = silent > kOutOfTouchMost || (silent > Duration::zero() && worker.credentials_renewed());
    if (stale) return stop.notify();
    looking = loop.after(kTouchLook, look);
  };
  look();
  co_await stop.wait(Duration::zero());
  looking.reset();
  log::info("main",
            "stopping{}",
            lost    ? ": the lease was lost"
            : stale ? ": the API server does not answer, a fresh start reads its certificate again"
                    : "");
  const int code = lost || refused || stale ? 1 : 0;
  co_await worker.end(!lost && !refused);
  if (elector) co_await elector->stop();
  for (auto& server : servers) co_await server->stop();
  // What this process knew of the cluster goes with it: to free it object by object would keep a
  // successor waiting.
  std::fflush(nullptr);
  std::_Exit(code);
}

int run_run(command::Call& call) {
  const auto options = read_options(call.values);
  if (!options) return call.misused(options.error().message);
  return serve_until_signal(
      [&](net::Loop& loop, Signal& stop) { return operate(loop, *options, stop); });
}

/// A table: one entry for each flag, in the order of the help.
std::vector<command::Flag> run_flags() {
  using command::Completes;
  using command::FlagType;
  return {
      {.name = "kubeconfig",
       .help =
           "the cluster (default $KUBECONFIG, inside a pod its service account, then ~/.muster/kubeconfig or ~/.kube/config)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "context", .help = "a context of the kubeconfig", .value_name = "NAME"},
      {.name = "scheduler-name",
       .value = "muster",
       .help =
           "schedule pods with these names as spec.schedulerName (separated by commas); pods of jobs get the first",
       .value_name = "LIST"},
      {.name = "scheduler-config",
       .help =
           "how to decide: a policy as for muster sim, or Volcano's scheduler configuration; read again when it changes (default: Muster's own policy)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "hived-config",
       .help =
           "virtual clusters and cells, in HiveD's own format (default: ConfigMap kube-system/muster-hived, followed as it changes)",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "leader-elect",
       .type = FlagType::kBool,
       .value = "false",
       .help = "work only while holding the lease \"muster\""},
      {.name = "namespace",
       .help = "the namespace of the lease (default $POD_NAMESPACE, else muster-system)",
       .value_name = "NAME"},
      {.name = "gang-scheduler",
       .help =
           "kind of PodGroups that jobs get: muster (default), volcano, none, or a scheduler-plugins name",
       .completes = Completes::kWords,
       .words = {"muster", "volcano", "none"},
       .value_name = "NAME"},
      {.name = "gpus-per-node",
       .value = "8",
       .help = "GPUs per worker of an MPIJob v1alpha1 that states only its total (gpus)",
       .value_name = "N"},
      {.name = "metrics",
       .help =
           "serve /metrics, /healthz, /livez, /readyz and /debug/idle at this address over plain HTTP",
       .value_name = "ADDRESS:PORT"},
      {.name = "webhook-listen",
       .help =
           "serve the admission webhook for job kinds at this address (paths /validate, /default and /queues)",
       .value_name = "ADDRESS:PORT"},
      {.name = "webhook-certificate",
       .help = "the webhook's certificate in PEM",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "webhook-key",
       .help = "the webhook's key in PEM",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "queue-access",
       .value = "open",
       .help =
           "what the webhook answers at /queues; closed: using a queue or virtual cluster requires the verb \"use\" on it, or a namespace that the queue allows (docs/security.md)",
       .completes = Completes::kWords,
       .words = {"open", "closed"},
       .value_name = "MODE"},
      {.name = "pai-rest",
       .help =
           "serve OpenPAI's REST API at this address over plain HTTP while leading (docs/openpai-rest.md)",
       .value_name = "ADDRESS:PORT"},
      {.name = "pai-runtime-image",
       .value = "muster",
       .help = "the image, as of deploy/Dockerfile, that prepares tasks of OpenPAI's jobs",
       .value_name = "IMAGE"},
      {.name = "admin-password-file",
       .help =
           "the password of the first administrator of OpenPAI's API; without it none is generated, and users must exist already",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "without",
       .help = "leave out scheduler or controllers (separated by commas)",
       .completes = Completes::kWords,
       .words = {"scheduler", "controllers"},
       .value_name = "LIST"},
  };
}

}  // namespace

command::Command run_command() {
  command::Command made;
  made.name = "run";
  made.summary = "Run as the scheduler and operator of a Kubernetes cluster";
  made.examples =
      "  # From a laptop, against the cluster of a kubeconfig\n"
      "  muster run --kubeconfig ~/.kube/config\n"
      "  # Inside the cluster, one of two replicas, taking Volcano's pods over as well\n"
      "  muster run --leader-elect --scheduler-name muster,volcano\n";
  made.flags = run_flags();
  for (command::Flag& flag : answers_flags("none")) made.flags.push_back(std::move(flag));
  for (command::Flag& flag : aggregated_flags()) made.flags.push_back(std::move(flag));
  for (command::Flag& flag : portal_flags("none")) made.flags.push_back(std::move(flag));
  made.run = run_run;
  return made;
}

}  // namespace muster
