#include "main/answers.h"

#include "answers/http.h"
#include "engine/model/reason.h"
#include "kube/names.h"

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
           "keep records of ended jobs for so many days and so many jobs; none to keep none (docs/answers.md)",
       .value_name = "DAYS,JOBS"},
      {.name = "history-dir",
       .help =
           "also append the record of each ended job to a file of this folder, a file a day; nothing there is ever removed",
       .completes = Completes::kFiles,
       .value_name = "FOLDER"},
  };
}

Result<AnswersOptions> answers_options(const command::Values& values) {
  AnswersOptions options;
  options.history_dir = values.text("history-dir");
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
                 std::function<const scheduler::Scheduler*()> scheduler)
    : env_(env) {
  if (options.history) {
    answers::RecorderOptions keep;
    keep.limits = *options.history;
    keep.directory = options.history_dir;
    keep.must_wait = [scheduler] {
      const scheduler::Scheduler* one = scheduler();
      return one != nullptr && one->binding();
    };
    recorder_ = std::make_unique<answers::Recorder>(env, client, informers, std::move(keep));
  }
  answers::Live::Options look;
  look.engine = [scheduler = std::move(scheduler)] {
    const scheduler::Scheduler* one = scheduler();
    return one != nullptr && one->ready() ? &one->engine() : nullptr;
  };
  live_ = std::make_unique<answers::Live>(env, std::move(look));
  service_ = std::make_unique<answers::Service>(env, recorder_.get(), live_.get());
}

void Answers::listen_to(scheduler::Options& options) {
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
  live_->stop();
  if (recorder_) co_await recorder_->stop();
}

void Answers::add_metrics(prometheus::Page& page) {
  const answers::OutlookPtr& last = live_->last();
  page.one(
      "muster_forecast_cpu_seconds_total", "counter", "CPU time of forecasts.", live_->cpu_s());
  page.one("muster_forecast_age_seconds",
           "gauge",
           "How old the last forecasts are; 0: there are none.",
           last ? static_cast<double>((env_.now() - last->asked).count()) / 1e6 : 0);
  page.one("muster_forecast_draws",
           "gauge",
           "Courses that the last forecasts were made of.",
           last ? last->forecasts.draws : 0);
}

Task<net::Response> Answers::answer(apiserver::AnswersCall call) {
  const auto asked = answers::what_is_asked(call.method, call.target);
  if (asked && !asked->anybody && !call.may(asked->verb, asked->resource, asked->ns))
    co_return forbidden(call, *asked);
  answers::Question question;
  question.visitor = {call.user, call.groups, call.may};
  question.method = call.method;
  question.target = std::move(call.target);
  question.body = std::move(call.body);
  if (!asked) co_return answers::error_answer(asked.error());
  auto response = co_await answers::answer(*service_, std::move(question));
  co_return response;
}

}  // namespace muster
