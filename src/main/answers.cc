#include "main/answers.h"

#include <fmt/core.h>

#include "answers/http.h"
#include "answers/records/past_runs.h"
#include "base/strings.h"
#include "engine/model/reason.h"
#include "kube/names.h"
#include "kube/security/tenants.h"
#include "main/cells_preview.h"
#include "main/scheduler_config.h"

namespace muster {
namespace {

/// "volcano:ns/name" is ns/name to everybody else.
std::string plain_key(const std::string& key) {
  const std::size_t colon = key.find(':');
  return colon == std::string::npos ? key : key.substr(colon + 1);
}

net::Response forbidden(const apiserver::AnswersCall& call, const answers::Asked& asked) {
  net::Response response;
  response.status = 403;
  response.headers.set("Content-Type", "application/json");
  response.body = json::dump(json::Object{
      {"kind", "Status"},
      {"apiVersion", "v1"},
      {"metadata", json::Object()},
      {"status", "Failure"},
      {"message",
       "User \"" + call.user + "\" cannot " + asked.verb + " resource \"" + asked.resource +
           "\" in API group \"" + std::string(kube::groups::kAnswers) + "\"" +
           (asked.ns.empty() ? " at the cluster scope" : " in the namespace \"" + asked.ns + "\"")},
      {"reason", "Forbidden"},
      {"code", 403}});
  return response;
}

}  // namespace

std::vector<command::Flag> answers_flags(const char* history) {
  using command::Completes;
  return {
      {.name = "history",
       .value = history,
       .help =
           "keep records of ended jobs for this many days and of at most this many jobs; none keeps none (docs/answers.md)",
       .value_name = "DAYS,JOBS"},
      {.name = "history-dir",
       .help =
           "also append the record of each ended job to a file in this folder, one file per day; nothing there is ever removed",
       .completes = Completes::kFiles,
       .value_name = "FOLDER"},
      {.name = "forecast-cpu",
       .value = "10",
       .help =
           "per cent of one core that forecasts may use while somebody asks for them; they wait while the program has more urgent work",
       .value_name = "PERCENT"},
  };
}

Result<AnswersOptions> answers_options(const command::Values& values) {
  AnswersOptions options;
  options.history_dir = values.text("history-dir");
  const auto share = parse_int(values.text("forecast-cpu"));
  if (!share || *share < 1 || *share > 100)
    return fail(Code::kBadRequest,
                fmt::format("--forecast-cpu: wanted a number from 1 to 100, got {}",
                            quoted(values.text("forecast-cpu"))));
  options.cpu_share = static_cast<double>(*share) / 100;
  const std::string history = values.text("history");
  if (history == "none") {
    if (!options.history_dir.empty())
      return fail(Code::kBadRequest,
                  "--history-dir: there are no records to write with --history none");
    return options;
  }
  auto limits = answers::parse_history(history);
  if (!limits) return fail(limits.error());
  options.history = *limits;
  return options;
}

Answers::Answers(Env& env,
                 client::Client& client,
                 client::Informers& informers,
                 AnswersOptions options,
                 std::function<scheduler::Scheduler*()> scheduler)
    : env_(env),
      client_(client),
      informers_(informers),
      scheduler_(scheduler),
      queues_closed_(options.queues_closed) {
  if (options.history) {
    answers::RecorderOptions keep;
    keep.limits = *options.history;
    keep.directory = options.history_dir;
    keep.must_wait = [scheduler] {
      const scheduler::Scheduler* one = scheduler();
      return one != nullptr && one->binding();
    };
    // What ends from now on the engine sees itself; records are kept in whole seconds.
    const Time begun = answers::whole_seconds(env.now());
    keep.found = [scheduler, begun](const answers::Record& record) {
      scheduler::Scheduler* one = scheduler();
      if (one == nullptr) return;
      for (const engine::PastRun& run : answers::past_runs(record, begun)) one->remember(run);
    };
    keep.turned = [this](const std::string& uid) { accuracy_.turned(uid); };
    recorder_ = std::make_unique<answers::Recorder>(env, client, informers, std::move(keep));
    sayings_ = std::make_unique<answers::Sayings>(
        env, *recorder_, [this](const answers::Tracked& job) { was_said(job); });
  }
  answers::ExpectedStarts::Options write;
  write.write = answers::write_annotations(client);
  write.must_wait = [scheduler] {
    const scheduler::Scheduler* one = scheduler();
    return one != nullptr && one->binding();
  };
  expected_starts_ = std::make_unique<answers::ExpectedStarts>(env, std::move(write));
  answers::Live::Options look;
  look.engine = [scheduler] {
    const scheduler::Scheduler* one = scheduler();
    return one != nullptr && one->ready() ? &one->engine() : nullptr;
  };
  look.copy = [scheduler](std::function<void(engine::Engine)> take) {
    return scheduler()->copy_engine(std::move(take));
  };
  look.cpu_share = options.cpu_share;
  look.adjust = [this](answers::Forecasts& forecasts, Time asked) {
    learn_from_starts();
    accuracy_.widen(forecasts, asked);
  };
  look.made = [this](const answers::OutlookPtr& outlook) {
    if (sayings_) env_.spawn(sayings_->note(outlook));
    expected_starts_->note(outlook);
  };
  live_ = std::make_unique<answers::Live>(env, std::move(look));
  service_ = std::make_unique<answers::Service>(env, recorder_.get(), live_.get());
}

/// One that has begun meanwhile is judged at the next look, too.
void Answers::was_said(const answers::Tracked& job) {
  accuracy_.said(job.record.uid);
  if (!job.held.empty()) accuracy_.turned(job.record.uid);
}

/// What records of earlier say, once, and then whoever has started since the last look.
void Answers::learn_from_starts() {
  if (!recorder_ || !recorder_->ready()) return;
  if (!std::exchange(accuracy_read_, true)) {
    for (const answers::Record* record : recorder_->fresh()) accuracy_.judge(*record);
    recorder_->tracker().each([this](const answers::Tracked& job) {
      if (!job.record.over() && !job.record.said.empty()) was_said(job);
    });
  }
  accuracy_.judge_started([this](const std::string& uid) { return recorder_->find(uid); });
}

void Answers::draft_with(std::function<const controllers::Controllers*()> controllers,
                         std::function<void(net::Request&)> sign) {
  Drafts::Parts parts;
  parts.sign = std::move(sign);
  parts.controllers = std::move(controllers);
  parts.scheduler = [this] {
    const scheduler::Scheduler* one = scheduler_();
    return one != nullptr && one->ready() ? one : nullptr;
  };
  drafts_ = std::make_unique<Drafts>(env_, client_, std::move(parts));
  answers::Service::Cluster cluster;
  cluster.draft = [this](answers::Visitor visitor, std::string ns, json::Value job) {
    return drafts_->make(std::move(visitor), std::move(ns), std::move(job));
  };
  cluster.priorities = [this] {
    std::map<std::string, std::int32_t> out;
    for (const auto& [name, object] : informers_.get(client::resources::kPriorityClasses).objects())
      out[name] = static_cast<std::int32_t>(json::int_at(*object, "value"));
    return out;
  };
  cluster.parse_policy = [](std::string_view text) -> Result<engine::Config> {
    auto config = parse_scheduler_config(text);
    if (!config) return fail(config.error());
    return std::move(config->engine);
  };
  cluster.preview_cells = [this](std::string text) {
    return preview_cells(client_, informers_, std::move(text));
  };
  service_->know(std::move(cluster));
}

void Answers::listen_to(scheduler::Options& options) {
  answers::Follower& follower = live_->follower();
  options.on_event = [&follower](const engine::Event& event) { follower.heard(event); };
  options.on_decision = [this, &follower](Time now, const engine::Plan& plan) {
    follower.decided(now, plan);
    if (!plan.reservations_changed) return;
    reservations_ = plan.reservations;
    ++reservations_said_;
  };
  options.on_cells = [&follower](const engine::cells::Config& config, Time now) {
    follower.took_cells(config, now);
  };
  if (!recorder_) return;
  options.on_wait = [this](
                        const engine::Wait& wait, const std::string& pod, const std::string& text) {
    answers::Waited told;
    told.reason = engine::reason_name(wait.refusal.reason);
    told.subject = plain_key(wait.refusal.subject);
    // What a gang is told names those ahead of it, whom a later reader may not know.
    engine::Refusal alone = wait.refusal;
    alone.ahead.clear();
    alone.ahead_count = 0;
    told.text = wait.group.empty() ? text : engine::describe(alone);
    told.from = env_.now();
    recorder_->waits(pod, plain_key(wait.group), std::move(told));
  };
  options.on_evict = [this](const engine::Evict& evict) {
    recorder_->evicting(evict.pod, plain_key(evict.for_whom));
  };
}

void Answers::start() {
  if (recorder_) recorder_->start();
}

Task<void> Answers::stop() {
  co_await service_->stop();
  if (sayings_) co_await sayings_->stop();
  co_await expected_starts_->stop();
  co_await live_->stop();
  if (recorder_) co_await recorder_->stop();
}

void Answers::add_metrics(prometheus::Page& page) {
  const answers::OutlookPtr& last = live_->last();
  page.one(
      "muster_forecast_cpu_seconds_total", "counter", "CPU time of forecasts.", live_->cpu_s());
  page.one("muster_forecast_age_seconds",
           "gauge",
           "Age of the latest forecasts; 0 if there are none.",
           last ? static_cast<double>((env_.now() - last->asked).count()) / 1e6 : 0);
  page.one("muster_forecast_draws",
           "gauge",
           "Simulated courses behind the latest forecasts.",
           last ? last->forecasts.draws : 0);
  page.one("muster_forecast_judged_total",
           "counter",
           "Starts compared with their forecasts.",
           static_cast<double>(accuracy_.judged()));
  page.one("muster_forecast_holds_ratio",
           "gauge",
           "Share of these inside the forecast range; 0.8 is the target.",
           accuracy_.holds());
  page.one(
      "muster_forecast_error_median",
      "gauge",
      "Median distance of the last 200 starts from the middle of their forecasts, as a share of the wait.",
      accuracy_.error());
  page.one("muster_forecast_unanswered",
           "gauge",
           "Waiting jobs of which the latest forecasts cannot tell a start.",
           last ? last->forecasts.unanswered : 0);
  answers::Follower& follower = live_->follower();
  page.one("muster_forecast_engine_held_seconds",
           "gauge",
           "The longest that copying the engine has delayed its decisions.",
           static_cast<double>(follower.held_most().count()) / 1e6);
  page.one("muster_forecast_follower_differences_total",
           "counter",
           "How often the engine's follower diverged and was rebuilt.",
           static_cast<double>(follower.differences()));
}

/// What everybody may use; who holds more than that by a role is not offered it.
std::function<bool(std::string_view, std::string_view)> Answers::uses() const {
  return [this](std::string_view queue, std::string_view ns) {
    const auto object = informers_.get(client::resources::kQueues).find(std::string(queue));
    if (!object) return false;
    const kube::Admits said = kube::queue_admits(*object, ns);
    if (said != kube::Admits::kUnsaid) return said == kube::Admits::kYes;
    return !queues_closed_ || queue == "default";
  };
}

std::vector<std::string> Answers::namespaces() const {
  std::vector<std::string> out;
  for (const auto& [name, object] : informers_.get(client::resources::kNamespaces).objects())
    out.push_back(name);
  return out;
}

Task<net::Response> Answers::answer(apiserver::AnswersCall call) {
  const auto asked = answers::what_is_asked(call.method, call.target);
  if (asked && !asked->anybody && !call.may(asked->verb, asked->resource, asked->ns))
    co_return forbidden(call, *asked);
  answers::Question question;
  question.visitor = {call.user, call.groups, call.may, uses()};
  question.method = call.method;
  question.target = std::move(call.target);
  question.body = std::move(call.body);
  if (!asked) co_return answers::error_answer(asked.error());
  auto response = co_await answers::answer(*service_, std::move(question));
  co_return response;
}

}  // namespace muster
