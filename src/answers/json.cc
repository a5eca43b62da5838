#include "answers/json.h"

#include "answers/service.h"

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

/// The same without the names of those ahead, unless all of them may be named.
engine::Refusal for_asker(engine::Refusal refusal, const Naming& name) {
  for (const std::string& one : refusal.ahead) {
    if (name(one) != kAnothersJob) continue;
    refusal.ahead.clear();
    break;
  }
  return refusal;
}

}  // namespace

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
  for (const Alternative& one : forecast.alternatives) {
    json::Object row{{"change", one.change},
                     {"flag", one.flag},
                     {"text", one.text},
                     {"verdict", verdict_name(one.verdict)},
                     {"verified", true}};
    put(row, "start", one.start);
    alternatives.push_back(std::move(row));
  }
  out["alternatives"] = std::move(alternatives);
  out["revision"] = std::to_string(forecast.revision);
  return out;
}

}  // namespace muster::answers
