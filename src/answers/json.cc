#include "answers/json.h"

#include "answers/service.h"
#include "base/strings.h"

namespace muster::answers {
namespace {

void put(json::Object& out, std::string_view key, const std::optional<Time>& time) {
  if (time) out[key] = format_time(*time);
}

json::Object quantiles(const Quantiles& range) {
  json::Object out;
  put(out, "p10", range.p10);
  put(out, "p50", range.p50);
  put(out, "p90", range.p90);
  return out;
}

json::Value start_json(const Start& start) {
  // What rests on nothing has no time in it, whatever the courses gave.
  json::Object out = start.basis == Basis::kNone ? json::Object() : quantiles(start.range);
  out["basis"] = basis_name(start.basis);
  if (!start.because.empty()) out["because"] = start.because;
  put(out, "notBefore", start.not_before);
  if (start.basis != Basis::kNone) {
    out["beyond"] = start.beyond;
    if (start.beyond > 0) out["horizon"] = format_time(start.horizon);
  }
  out["draws"] = start.draws;
  out["support"] = json::Object{{"declared", start.support.declared},
                                {"learned", start.support.learned},
                                {"guessed", start.support.guessed}};
  json::Array assumes;
  for (const std::string& one : start.assumes) assumes.emplace_back(one);
  out["assumes"] = std::move(assumes);
  if (start.first_said)
    out["firstSaid"] = json::Object{{"at", format_time(start.first_said->at)},
                                    {"p50", format_time(start.first_said->p50)}};
  return out;
}

json::Value refusal_json(const engine::Refusal& refusal, const Naming& name) {
  json::Object out{{"reason", engine::reason_name(refusal.reason)}};
  const std::string subject =
      refusal.subject.find('/') == std::string::npos ? refusal.subject : name(refusal.subject);
  if (!subject.empty()) out["subject"] = subject;
  // The text names the subject, too.
  if (subject != kAnothersJob) out["text"] = engine::describe(refusal);
  if (!refusal.queue.empty()) out["queue"] = refusal.queue;
  return out;
}

/// "wait for blue/secret" is "wait for another team's job" to who may not know it.
std::string without_names(const std::string& words, const Naming& name) {
  std::vector<std::string> out = split(words, ' ');
  for (std::string& word : out) {
    const std::size_t slash = word.find('/');
    if (slash == std::string::npos || parse_int(word.substr(0, slash))) continue;
    const std::size_t end = word.find_first_of(",;:.", slash);
    if (name(word.substr(0, end)) == kAnothersJob)
      word = std::string(kAnothersJob) + (end == std::string::npos ? "" : word.substr(end));
  }
  return join(out, " ");
}

/// The same without the names of those ahead, unless all of them may be named.
engine::Refusal for_asker(engine::Refusal refusal, const Naming& name) {
  refusal.words = without_names(refusal.words, name);
  for (const std::string& one : refusal.ahead) {
    if (name(one) != kAnothersJob) continue;
    refusal.ahead.clear();
    break;
  }
  return refusal;
}

json::Value seat_json(const Seat& seat) {
  json::Array gpus;
  for (const std::int32_t gpu : seat.gpus) gpus.emplace_back(gpu);
  return json::Object{{"task", seat.task}, {"node", seat.node}, {"gpus", std::move(gpus)}};
}

/// "ns/kind/name" is "name" in a sentence.
std::string last_of(const std::string& job) { return job.substr(job.rfind('/') + 1); }

json::Value alternative_json(const Alternative& one, const Naming& name) {
  std::string text = one.text;
  for (const std::string& gang : one.about) {
    const std::size_t mark = text.find("{}");
    if (mark != std::string::npos) text.replace(mark, 2, last_of(name(gang)));
  }
  json::Object row{{"change", one.change},
                   {"flag", one.flag},
                   {"text", text},
                   {"verdict", verdict_name(one.verdict)},
                   {"verified", true}};
  put(row, "start", one.start);
  json::Array placement;
  for (const Seat& seat : one.placement) placement.push_back(seat_json(seat));
  row["placement"] = std::move(placement);
  json::Array victims;
  for (const std::string& victim : one.victims) victims.emplace_back(name(victim));
  row["victims"] = std::move(victims);
  return row;
}

}  // namespace

std::string refusal_text(const engine::Refusal& refusal, const Naming& name) {
  engine::Refusal told = for_asker(refusal, name);
  if (told.subject.find('/') != std::string::npos && name(told.subject) == kAnothersJob)
    told.subject = kAnothersJob;
  return engine::describe(told);
}

json::Value decision_json(const Decision& decision, const Naming& name) {
  json::Object out{{"verdict", fate_name(decision.fate)},
                   {"text",
                    decision.waits ? decision.text + refusal_text(decision.forecast.refusal, name)
                                   : decision.text},
                   {"tasks", decision.tasks},
                   {"gpus", static_cast<double>(decision.gpu_milli) / 1000}};
  json::Array placement;
  for (const Seat& seat : decision.placement) placement.push_back(seat_json(seat));
  out["placement"] = std::move(placement);
  json::Array victims;
  for (const std::string& victim : decision.victims) {
    json::Object row{{"job", name(victim)}};
    if (json::as_string(row["job"]) != kAnothersJob) row["gang"] = victim;
    victims.push_back(std::move(row));
  }
  out["victims"] = std::move(victims);
  const bool waits = decision.fate == Fate::kWaits || decision.fate == Fate::kNever;
  out["wait"] = waits ? forecast_json(decision.forecast, name, decision.at) : json::Value();
  json::Array alternatives;
  for (const Alternative& one : decision.alternatives)
    alternatives.push_back(alternative_json(one, name));
  out["alternatives"] = std::move(alternatives);
  out["at"] = format_time(decision.at);
  if (decision.revision != 0) out["revision"] = std::to_string(decision.revision);
  return out;
}

json::Value whatif_json(const WhatIf& told, const Naming& name) {
  json::Object out{{"revision", std::to_string(told.revision)},
                   {"horizonSeconds", told.horizon / std::chrono::seconds(1)},
                   {"draws", told.draws},
                   {"cpuSeconds", told.cpu_s},
                   {"summary", told.summary}};
  json::Array jobs;
  for (const Moved& one : told.jobs) {
    json::Object row{{"job", name(one.job)},
                     {"before", quantiles(one.before)},
                     {"after", quantiles(one.after)},
                     {"evicted", one.evicted}};
    if (one.end_before.p50) row["endBefore"] = quantiles(one.end_before);
    if (one.end_after.p50) row["endAfter"] = quantiles(one.end_after);
    jobs.push_back(std::move(row));
  }
  out["jobs"] = std::move(jobs);
  json::Array queues;
  for (const QueueMoved& one : told.queues)
    queues.push_back(json::Object{{"queue", one.queue},
                                  {"waitBeforeSeconds", one.wait_before_s},
                                  {"waitAfterSeconds", one.wait_after_s},
                                  {"gpusBefore", one.gpus_before},
                                  {"gpusAfter", one.gpus_after}});
  out["queues"] = std::move(queues);
  json::Array warnings;
  for (const std::string& one : told.warnings) warnings.emplace_back(one);
  out["warnings"] = std::move(warnings);
  if (!told.cut.empty()) out["cut"] = told.cut;
  return out;
}

json::Value forecast_json(const Forecast& told, const Naming& name, Time now) {
  Forecast forecast = told;
  forecast.refusal = for_asker(told.refusal, name);
  if (told.start.because == engine::describe(told.refusal))
    forecast.start.because = engine::describe(forecast.refusal);
  json::Object out{{"job", name(forecast.job)},
                   {"asked", format_time(forecast.asked)},
                   {"ageSeconds", (now - forecast.asked) / std::chrono::seconds(1)},
                   {"state",
                    forecast.state == State::kWaits  ? "waits"
                    : forecast.state == State::kRuns ? "runs"
                                                     : "unknown"},
                   {"queue", forecast.queue},
                   {"place", forecast.place},
                   {"of", forecast.of},
                   {"refusal", refusal_json(forecast.refusal, name)},
                   {"start", start_json(forecast.start)}};
  json::Array waits;
  for (const WaitsFor& one : forecast.waits_for) {
    json::Object row{{"job", name(one.job)},
                     {"gpus", static_cast<double>(one.gpu_milli) / 1000},
                     {"basis", basis_name(one.basis)},
                     {"runs", one.runs}};
    if (one.basis != Basis::kNone) row["end"] = quantiles(one.end);
    waits.push_back(std::move(row));
  }
  out["waitsFor"] = std::move(waits);
  json::Array alternatives;
  for (const Alternative& one : forecast.alternatives)
    alternatives.push_back(alternative_json(one, name));
  out["alternatives"] = std::move(alternatives);
  out["revision"] = std::to_string(forecast.revision);
  return out;
}

}  // namespace muster::answers
