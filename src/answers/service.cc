#include "answers/service.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "answers/accuracy.h"
#include "answers/json.h"
#include "base/pace.h"
#include "base/strings.h"
#include "kube/framework.h"
#include "kube/meta.h"

namespace muster::answers {
namespace {

constexpr std::size_t kLimit = 100, kLimitMax = 10'000;
/// How long those who ask for the whole history wait for each other.
constexpr Duration kPatience = std::chrono::seconds(5);

struct Period {
  Time from, to;
};

Result<Period> period_of(const net::Target& query, Time now, Duration by_default) {
  Period period{now - by_default, Time{}};
  if (const std::string_view text = query.get("from"); !text.empty()) {
    const auto from = parse_moment(text, now);
    if (!from) return fail(from.error().code, "from " + from.error().message);
    period.from = *from;
  }
  if (const std::string_view text = query.get("to"); !text.empty()) {
    const auto to = parse_moment(text, now);
    if (!to) return fail(to.error().code, "to " + to.error().message);
    period.to = *to;
  }
  if (period.to && period.to <= period.from)
    return fail(Code::kBadRequest, "the period is empty: \"to\" is not after \"from\"");
  return period;
}

/// Which of kUsageFields are asked for.
Result<std::vector<std::size_t>> fields_of(const net::Target& query) {
  std::vector<std::size_t> fields;
  const std::string_view text = query.get("by");
  for (const std::string& word : split_nonempty(text.empty() ? "user" : text, ',')) {
    const auto found = std::find(kUsageFields.begin(), kUsageFields.end(), trim(word));
    if (found == kUsageFields.end())
      return fail(Code::kBadRequest,
                  fmt::format("by {}: wanted some of user, namespace, queue, kind, model, priority",
                              quoted(word)));
    fields.push_back(static_cast<std::size_t>(found - kUsageFields.begin()));
  }
  return fields;
}

/// Rows of namespaces that somebody may not look into are theirs no longer: only their numbers are.
UsageKey shown_key(const std::set<std::string>& visible, const UsageKey& key) {
  if (visible.contains(key[1])) return key;
  UsageKey hidden;
  hidden.fill(std::string(kOthers));
  hidden[2] = key[2];
  hidden[4] = key[4];
  return hidden;
}

double hours(std::int64_t milli_seconds) { return static_cast<double>(milli_seconds) / 3'600'000; }

json::Object usage_row(const UsageKey& key,
                       const std::vector<std::size_t>& fields,
                       const Usage& usage) {
  json::Object row;
  for (const std::size_t field : fields) row[kUsageFields[field]] = key[field];
  row["gpuSeconds"] = static_cast<double>(usage.held) / 1000;
  row["gpuHours"] = hours(usage.held);
  row["guaranteedHours"] = hours(usage.guaranteed);
  row["opportunisticHours"] = hours(usage.opportunistic);
  row["discardedHours"] = hours(usage.discarded);
  row["waitedHours"] = hours(usage.waited);
  row["started"] = usage.started;
  row["preempted"] = usage.preempted;
  row["succeeded"] = usage.succeeded;
  row["failed"] = usage.failed;
  row["stopped"] = usage.stopped;
  return row;
}

/// The value below which a share `q` of the sorted numbers lies.
double quantile(const std::vector<double>& sorted, double q) {
  if (sorted.empty()) return 0;
  const auto at = static_cast<std::size_t>(
      std::min<double>(static_cast<double>(sorted.size()) - 1,
                       std::ceil(q * static_cast<double>(sorted.size())) - 1));
  return sorted[at];
}

std::string_view namespace_of_name(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos) return "";
  const std::string_view before = name.substr(0, slash);
  const auto colon = before.rfind(':');
  return colon == std::string_view::npos ? before : before.substr(colon + 1);
}

/// Of one that the engine may not place, since something else must happen first; it is asked for by
/// its name.
std::optional<Forecast> gated_forecast(const Outlook& outlook, const Service::WhenAsk& ask) {
  const std::string key = ask.ns + "/" + ask.name;
  for (const std::string& gang : {key, "volcano:" + key}) {
    const auto view = outlook.copy->gang(gang);
    if (!view || view->waiting || view->running || view->bound > 0) continue;
    Forecast out;
    out.job = gang;
    out.asked = outlook.asked;
    out.state = State::kWaits;
    out.queue = view->queue;
    out.refusal.reason = engine::Reason::kGated;
    if (const auto why = outlook.copy->why(gang)) out.refusal = why->refusal;
    out.start.because = engine::describe(out.refusal);
    out.revision = outlook.forecasts.revision;
    return out;
  }
  return std::nullopt;
}

// What follows looks through all that is kept, so it runs on a worker.

json::Value records_json(const Shelf& shelf,
                         const RecordQuery& query,
                         const std::set<std::string>& visible) {
  json::Array items;
  for (const Summary& row : list(shelf, query, &visible)) items.push_back(summary_json(row));
  // Only of what has yet to end: that is what one waits for.
  std::int64_t others = 0, others_milli = 0;
  for (const Record& job : shelf.living) {
    if (visible.contains(job.ns)) continue;
    ++others;
    if (job.runs.empty()) continue;
    for (const Part& part : job.runs.back().parts) others_milli += part.end ? 0 : part.milli;
  }
  return json::Object{
      {"items", std::move(items)},
      {"others",
       json::Object{{"jobs", others}, {"gpus", static_cast<double>(others_milli) / 1000}}}};
}

struct Grouping {
  std::vector<std::size_t> fields;  // of kUsageFields
  std::set<std::string> visible;    // namespaces
  bool daily = false;

  [[nodiscard]] UsageKey key_of(const UsageKey& key) const {
    const UsageKey shown = shown_key(visible, key);
    UsageKey grouped;
    for (const std::size_t field : fields) grouped[field] = shown[field];
    return grouped;
  }
};

json::Value usage_by(const Shelf& shelf, const Period& period, const Grouping& by) {
  std::map<std::string, UsageRows> by_step;
  Usage total;
  for (const auto& [day, rows] : usage(shelf, period.from, period.to)) {
    UsageRows& out = by_step[by.daily ? day : std::string()];
    for (const auto& [key, usage] : rows) {
      out[by.key_of(key)] += usage;
      total += usage;
    }
  }
  json::Array items;
  for (const auto& [day, rows] : by_step) {
    for (const auto& [key, usage] : rows) {
      json::Object row;
      if (!day.empty()) row["day"] = day;
      for (auto& member : usage_row(key, by.fields, usage)) row[member.key()] = member.value();
      items.push_back(std::move(row));
    }
  }
  return json::Object{{"from", day_of(period.from)},
                      {"items", std::move(items)},
                      {"total", usage_row({}, {}, total)}};
}

json::Value waits_by(const Shelf& shelf, const Period& period, const Grouping& by) {
  std::map<UsageKey, std::vector<double>> groups;
  RecordQuery wanted;
  wanted.limit = SIZE_MAX;
  wanted.since = period.from;
  wanted.until = period.to;
  for (const Summary& row : list(shelf, wanted, nullptr)) {
    if (!row.started) continue;
    const UsageKey key =
        by.key_of({*row.user, *row.ns, *row.queue, *row.kind, *row.model, *row.priority});
    groups[key].push_back(
        static_cast<double>(std::max<std::int64_t>(0, (row.started - row.submitted).count())) /
        1e6);
  }
  json::Array items;
  for (auto& [key, waits] : groups) {
    std::sort(waits.begin(), waits.end());
    json::Object row;
    for (const std::size_t field : by.fields) row[kUsageFields[field]] = key[field];
    row["jobs"] = waits.size();
    for (const auto& [name, q] : {std::pair{"p50Seconds", .5},
                                  {"p90Seconds", .9},
                                  {"p99Seconds", .99},
                                  {"mostSeconds", 1.}})
      row[name] = quantile(waits, q);
    items.push_back(std::move(row));
  }
  return json::Object{{"from", day_of(period.from)}, {"items", std::move(items)}};
}

json::Value accuracy_of(const Shelf& shelf,
                        const Period& period,
                        const std::set<std::string>& visible) {
  std::map<std::string, Judged> by_basis;
  // Whoever may see none of it is not worth the unpacking.
  if (!visible.empty()) {
    each_ended(shelf, period.from, [&](const Record& record) {
      if (period.to && record.ended >= period.to) return;
      if (visible.contains(record.ns)) judge_by_basis(record, by_basis);
    });
  }
  json::Array items;
  for (const auto& [basis, judged] : by_basis) {
    const Figures figures = judged.tally.figures();
    json::Object row{
        {"basis", basis}, {"judged", figures.moments}, {"unanswered", judged.unanswered}};
    if (figures.moments > 0) {
      row["err"] = figures.err;
      row["errP75"] = figures.err75;
      row["x2"] = figures.x2;
      row["holds"] = figures.holds;
    }
    items.push_back(std::move(row));
  }
  return json::Object{{"from", day_of(period.from)}, {"items", std::move(items)}};
}

}  // namespace

Result<Recorder*> Service::recorder() const {
  if (recorder_ == nullptr)
    return fail(Code::kNotFound, "no records are kept here (--history none)");
  if (!recorder_->ready()) {
    Error error;
    error.code = Code::kUnavailable;
    error.message = "the records are still being read; try again in a moment";
    error.retry_after_s = 1;
    return fail(std::move(error));
  }
  return recorder_;
}

std::string Service::job_of(std::string_view gang) const {
  std::string job = recorder_ != nullptr ? recorder_->job_of_gang(gang) : "";
  if (job.empty())
    job = gang.substr(gang.find(':') == std::string_view::npos ? 0 : gang.find(':') + 1);
  return job;
}

std::string Service::name_for(const Visitor& visitor, std::string_view gang) const {
  const std::string job = job_of(gang);
  return visitor.may("get", "forecasts", job.substr(0, job.find('/'))) ? job
                                                                       : std::string(kAnothersJob);
}

std::string Service::called(std::string_view job) const {
  const Tracked* tracked =
      recorder_ != nullptr ? recorder_->tracker().find(std::string(job)) : nullptr;
  if (tracked == nullptr || !tracked->object || tracked->kind != JobKind::kOpenPai) return "";
  return std::string(kube::label(*tracked->object, kube::names::pai::kRelease));
}

Task<std::shared_ptr<const Service::Names>> Service::names_in(OutlookPtr outlook) {
  if (names_ && names_->of.lock() == outlook) co_return names_;
  const auto made = std::make_shared<Names>();
  made->of = outlook;
  const std::vector<Forecast>& jobs = outlook->forecasts.jobs;
  made->by_name.reserve(jobs.size());
  Pace pace(env_);
  for (std::uint32_t i = 0; i < jobs.size(); ++i) {
    if (pace.over()) co_await pace.rest();
    const std::string job = job_of(jobs[i].job);
    const std::string name = job.substr(job.rfind('/') + 1);
    made->by_name[name].push_back(i);
    if (const std::string other = called(job); !other.empty() && other != name)
      made->by_name[other].push_back(i);
  }
  names_ = made;
  co_return made;
}

Task<Result<json::Value>> Service::when(Visitor visitor, WhenAsk ask) {
  if (live_ == nullptr)
    co_return fail(Code::kNotFound, "no scheduler runs here (--without scheduler)");
  const auto outlook = co_await live_->outlook();
  if (!outlook) co_return fail(outlook.error());
  const Naming naming = [&](std::string_view gang) { return name_for(visitor, gang); };
  const Time now = env_.now();
  json::Array items;
  std::int64_t others = 0;
  const std::vector<Forecast>& jobs = (*outlook)->forecasts.jobs;
  const bool named = !ask.name.empty();
  // One of many thousand is found without a look at the others.
  std::vector<std::uint32_t> wanted;
  if (named) {
    const auto names = co_await names_in(*outlook);
    if (const auto found = names->by_name.find(ask.name); found != names->by_name.end())
      wanted = found->second;
  }
  Pace pace(env_);
  for (std::size_t i = 0; i < (named ? wanted.size() : jobs.size()); ++i) {
    if (pace.over()) co_await pace.rest();
    const Forecast& forecast = jobs[named ? wanted[i] : i];
    if (!ask.queue.empty() && forecast.queue != ask.queue) continue;
    const std::string job = naming(forecast.job);
    if (job == kAnothersJob) {
      others += named ? 0 : 1;
      continue;
    }
    const std::vector<std::string> parts = split(job, '/');
    if (!ask.ns.empty() && parts.front() != ask.ns) continue;
    const std::string name = called(job);
    if (!ask.name.empty() && parts.back() != ask.name && name != ask.name) continue;
    if (!ask.kind.empty() && (parts.size() != 3 || parts[1] != ask.kind)) continue;
    if (items.size() >= ask.limit) break;
    Forecast shown = forecast;
    const Tracked* tracked = recorder_ != nullptr ? recorder_->tracker().find(job) : nullptr;
    if (tracked != nullptr && !tracked->record.said.empty() && tracked->record.said.front().p50)
      shown.start.first_said = {tracked->record.said.front().at, tracked->record.said.front().p50};
    if (ask.alternatives && items.empty()) {
      AlternativesAsk trial;
      trial.job = forecast.job;
      trial.asker = asker_of(visitor, parts.front(), job, (*outlook)->copy->queues());
      shown.alternatives = co_await live_->alternatives(*outlook, std::move(trial));
    }
    json::Value item = forecast_json(shown, naming, now);
    const auto gang = (*outlook)->copy->gang(forecast.job);
    if (gang) {
      item.as_object()["gpus"] = static_cast<double>(gang->device_milli) / 1000;
      item.as_object()["submitted"] = format_time(gang->created);
    }
    if (!name.empty()) item.as_object()["name"] = name;
    for (json::Value& row : item.as_object()["waitsFor"].as_array()) {
      if (std::string its = called(json::string_at(row, "job")); !its.empty())
        row.as_object()["name"] = std::move(its);
    }
    items.push_back(std::move(item));
  }
  if (items.empty() && !ask.name.empty()) {
    if (auto gated = gated_forecast(**outlook, ask); gated && naming(gated->job) != kAnothersJob)
      items.push_back(forecast_json(*gated, naming, now));
  }
  co_return json::Value(json::Object{{"items", std::move(items)},
                                     {"others", json::Object{{"jobs", others}}},
                                     {"draws", (*outlook)->forecasts.draws},
                                     {"cut", (*outlook)->forecasts.cut}});
}

Task<Result<json::Value>> Service::gantt(Visitor visitor) {
  if (live_ == nullptr)
    co_return fail(Code::kNotFound, "no scheduler runs here (--without scheduler)");
  const auto outlook = co_await live_->outlook();
  if (!outlook) co_return fail(outlook.error());
  json::Array bars;
  Pace pace(env_);
  for (const Bar& bar : (*outlook)->forecasts.gantt) {
    if (pace.over()) co_await pace.rest();
    json::Object row{{"job", name_for(visitor, bar.job)},
                     {"queue", bar.queue},
                     {"gpus", static_cast<double>(bar.gpu_milli) / 1000},
                     {"start", format_time(bar.start)},
                     {"running", bar.running}};
    if (bar.end) row["end"] = format_time(bar.end);
    bars.push_back(std::move(row));
  }
  co_return json::Value(json::Object{{"bars", std::move(bars)}});
}

Task<Result<json::Value>> Service::records(Visitor visitor, net::Target query) {
  const Gate::Pass pass(gate_);
  auto recorder = this->recorder();
  if (!recorder) co_return fail(recorder.error());
  RecordQuery wanted;
  wanted.user = query.get("user");
  wanted.queue = query.get("queue");
  wanted.ns = query.get("namespace");
  wanted.kind = query.get("kind");
  wanted.name = query.get("name");
  for (const char c : query.get("state"))
    wanted.state += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  wanted.limit = kLimit;
  if (const std::string_view text = query.get("limit"); !text.empty()) {
    const auto limit = parse_int(text);
    if (!limit || *limit < 1 || *limit > static_cast<std::int64_t>(kLimitMax))
      co_return fail(
          Code::kBadRequest,
          fmt::format("limit {}: wanted a number from 1 to {}", quoted(text), kLimitMax));
    wanted.limit = static_cast<std::size_t>(*limit);
  }
  for (const auto& [name, time] : {std::pair{"since", &wanted.since}, {"until", &wanted.until}}) {
    const std::string_view text = query.get(name);
    if (text.empty()) continue;
    const auto moment = parse_moment(text, env_.now());
    if (!moment)
      co_return fail(Code::kBadRequest, fmt::format("{} {}", name, moment.error().message));
    *time = *moment;
  }
  const auto shelf = co_await (*recorder)->shelf();
  const auto visible = co_await namespaces_for(visitor, "records", shelf);
  const auto out = std::make_shared<json::Value>();
  co_await env_.run_on_worker(
      [shelf, visible, wanted, out] { *out = records_json(*shelf, wanted, visible); });
  co_return std::move(*out);
}

Task<Result<json::Value>> Service::record(Visitor visitor, std::string uid) {
  const Gate::Pass pass(gate_);
  auto recorder = this->recorder();
  if (!recorder) co_return fail(recorder.error());
  const auto found = co_await (*recorder)->look_up(uid);
  if (!found || !visitor.sees(found->ns))
    co_return fail(Code::kNotFound, fmt::format("there is no record {}", quoted(uid)));
  co_return record_json(*found);
}

Task<Result<json::Value>> Service::timeline(Visitor visitor, std::string uid) {
  const Gate::Pass pass(gate_);
  auto recorder = this->recorder();
  if (!recorder) co_return fail(recorder.error());
  const auto found = co_await (*recorder)->look_up(uid);
  if (!found || !visitor.sees(found->ns))
    co_return fail(Code::kNotFound, fmt::format("there is no record {}", quoted(uid)));
  co_return timeline_json(*found, [&](std::string_view ns) { return visitor.sees(ns); });
}

Task<std::set<std::string>> Service::namespaces_for(Visitor visitor,
                                                    std::string resource,
                                                    ShelfPtr shelf) {
  std::set<std::string> out;
  Pace pace(env_);
  for (const std::string& ns : shelf->namespaces) {
    if (pace.over()) co_await pace.rest();
    if (visitor.may("get", resource, ns)) out.insert(ns);
  }
  co_return out;
}

Task<Result<json::Value>> Service::usage(Visitor visitor, net::Target query) {
  const Gate::Pass pass(gate_);
  auto recorder = this->recorder();
  if (!recorder) co_return fail(recorder.error());
  const auto period = period_of(query, env_.now(), std::chrono::hours(24 * 30));
  if (!period) co_return fail(period.error());
  const auto fields = fields_of(query);
  if (!fields) co_return fail(fields.error());
  const std::string_view step = query.get("step");
  if (!step.empty() && step != "day")
    co_return fail(Code::kBadRequest, fmt::format("step {}: wanted day, or nothing", quoted(step)));
  const auto shelf = co_await (*recorder)->shelf();
  const auto visible = co_await namespaces_for(visitor, "usage", shelf);
  const auto out = std::make_shared<json::Value>();
  co_await env_.run_on_worker(
      [&, shelf, out] { *out = usage_by(*shelf, *period, {*fields, visible, !step.empty()}); });
  co_return std::move(*out);
}

Task<Result<json::Value>> Service::waits(Visitor visitor, net::Target query) {
  const Gate::Pass pass(gate_);
  auto recorder = this->recorder();
  if (!recorder) co_return fail(recorder.error());
  const auto period = period_of(query, env_.now(), std::chrono::hours(24 * 30));
  if (!period) co_return fail(period.error());
  const auto fields = fields_of(query);
  if (!fields) co_return fail(fields.error());
  const auto slot = co_await questions_.enter(visitor.user, kPatience);
  if (!slot) co_return fail(slot.error());
  const auto shelf = co_await (*recorder)->shelf();
  const auto visible = co_await namespaces_for(visitor, "usage", shelf);
  const auto out = std::make_shared<json::Value>();
  co_await env_.run_on_worker(
      [&, shelf, out] { *out = waits_by(*shelf, *period, {*fields, visible, false}); });
  co_return std::move(*out);
}

Task<Result<json::Value>> Service::accuracy(Visitor visitor, net::Target query) {
  const Gate::Pass pass(gate_);
  auto recorder = this->recorder();
  if (!recorder) co_return fail(recorder.error());
  const auto period = period_of(query, env_.now(), std::chrono::hours(24 * 30));
  if (!period) co_return fail(period.error());
  const auto slot = co_await questions_.enter(visitor.user, kPatience);
  if (!slot) co_return fail(slot.error());
  const auto shelf = co_await (*recorder)->shelf();
  const auto visible = co_await namespaces_for(visitor, "usage", shelf);
  const auto out = std::make_shared<json::Value>();
  co_await env_.run_on_worker([&, shelf, out] { *out = accuracy_of(*shelf, *period, visible); });
  co_return std::move(*out);
}

json::Value timeline_json(const Record& record,
                          const std::function<bool(std::string_view ns)>& sees) {
  struct Entry {
    Time at;
    json::Object value;
  };
  std::vector<Entry> entries;
  const auto add = [&](Time at, std::string_view what, json::Object more) {
    json::Object value{{"at", format_time(at)}, {"what", what}};
    for (auto& member : more) value[member.key()] = std::move(member.value());
    entries.push_back({at, std::move(value)});
  };
  const auto named = [&](const std::string& name) {
    const std::string_view ns = namespace_of_name(name);
    return ns.empty() || sees(ns) ? name : std::string(kAnothersJob);
  };
  add(record.submitted, "submitted", {{"user", record.user}});
  for (const Waited& wait : record.waits) {
    json::Object more{{"reason", wait.reason}};
    const std::string subject = named(wait.subject);
    if (!subject.empty()) more["subject"] = subject;
    // The text names the subject, too.
    if (subject == wait.subject) more["text"] = wait.text;
    if (wait.to) more["until"] = format_time(wait.to);
    add(wait.from, "waits", std::move(more));
  }
  for (const Foretold& said : record.said) {
    json::Object more{{"basis", said.basis}};
    if (said.p10) more["p10"] = format_time(said.p10);
    if (said.p50) more["p50"] = format_time(said.p50);
    if (said.p90) more["p90"] = format_time(said.p90);
    if (!said.because.empty()) more["because"] = said.because;
    add(said.at, "foretold", std::move(more));
  }
  std::int64_t attempt = 0;
  for (const Run& run : record.runs) {
    ++attempt;
    json::Array nodes;
    for (const std::string& node : run.nodes) nodes.emplace_back(node);
    add(run.start,
        "started",
        {{"attempt", attempt},
         {"gpus", static_cast<double>(run.milli) / 1000},
         {"nodes", std::move(nodes)}});
    if (!run.end) continue;
    json::Object more{{"attempt", attempt}, {"how", run.how}};
    if (!run.by.empty()) more["by"] = named(run.by);
    add(run.end, "left", std::move(more));
  }
  if (record.over()) {
    json::Object more{{"state", record.state}};
    if (record.has_exit) more["exit"] = record.exit;
    if (!record.exit_phrase.empty()) more["phrase"] = record.exit_phrase;
    add(record.ended, "ended", std::move(more));
  }
  std::stable_sort(
      entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.at < b.at; });
  json::Array list;
  for (Entry& entry : entries) list.push_back(std::move(entry.value));
  return json::Object{{"job", record.job},
                      {"uid", record.uid},
                      {"namespace", record.ns},
                      {"kind", record.kind},
                      {"user", record.user},
                      {"state", record.state},
                      {"entries", std::move(list)}};
}

}  // namespace muster::answers
