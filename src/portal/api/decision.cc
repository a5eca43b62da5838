#include "portal/api/decision.h"

#include <fmt/core.h>

#include <algorithm>

#include "answers/visitor.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::portal {
namespace {

using json::at;

std::string root() { return fmt::format("/apis/{}/v1", kube::groups::kAnswers); }

json::Value millis(const json::Value& time) {
  const Millis value = millis_at(time);
  return value == 0 ? json::Value(nullptr) : json::Value(value);
}

/// OpenPAI's jobs come back by themselves; of others it is not said.
json::Value victim_value(const World& world, const Visible& visible, const json::Value& victim) {
  const std::string job = json::text_at(victim, "job");
  json::Object out{{"id", job},
                   {"user", json::text_at(victim, "user")},
                   {"gpus", at(victim, "gpus").is_null() ? json::Value(0) : at(victim, "gpus")},
                   {"lost_s", json::int_at(victim, "lostSeconds")},
                   {"comes_back", job.find("/openpai/") != std::string::npos}};
  // Jobs have other names here than their objects: OpenPAI's are the user's.
  const std::string gang = json::text_at(victim, "gang");
  const std::string key = gang.substr(gang.find(':') == std::string::npos ? 0 : gang.find(':') + 1);
  const JobIndex::Entry* entry = world.jobs.of_group(key);
  if (entry == nullptr) entry = world.jobs.of_pod(key);
  if (entry == nullptr) entry = world.jobs.find(job);
  if (entry != nullptr) {
    const bool seen = sees(visible, *entry);
    out["id"] = seen ? entry->facts.id : std::string(answers::kAnothersJob);
    out["user"] = seen ? entry->facts.user : "";
  }
  return out;
}

/// The refusal and the forecast as the page's `Wait`.
json::Value wait_of(const json::Value& forecast, Millis now) {
  if (!forecast.is_object()) return nullptr;
  const json::Value& start = at(forecast, "start");
  const json::Value& refusal = at(forecast, "refusal");
  const std::string basis = json::text_at(start, "basis");
  std::int64_t runs = 0;
  for (const json::Value& one : json::array_at(forecast, "waitsFor"))
    runs = std::max(runs, json::int_at(one, "runs"));
  const std::int64_t place = json::int_at(forecast, "place");
  return {{"at", now},
          {"reason", json::text_at(refusal, "reason")},
          {"text", json::text_at(refusal, "text")},
          {"place", place == 0 ? json::Value(nullptr) : json::Value(place)},
          {"ahead", std::max<std::int64_t>(0, place - 1)},
          {"start", millis(at(start, "p50"))},
          {"startLow", millis(at(start, "p10"))},
          {"startHigh", millis(at(start, "p90"))},
          {"basis", basis.empty() ? "none" : basis},
          {"basisText",
           basis == "known"     ? std::string("the jobs ahead of it declare how long they last")
           : basis != "learned" ? std::string()
                                : fmt::format("learned from {} runs", runs)},
          {"nodesTotal", 0},
          {"byCause", json::Array{}},
          {"shortages", json::Array{}},
          {"queue", json::text_at(forecast, "queue")},
          {"of", json::int_at(forecast, "of")},
          {"aheadFirst", json::Array{}},
          {"subject", json::text_at(refusal, "subject")},
          {"subjectId", nullptr},
          {"until", millis(at(start, "notBefore"))},
          {"preemption", ""}};
}

json::Value decision_value(const World& world, const Visible& visible, const json::Value& answer) {
  json::Array victims, alternatives;
  for (const json::Value& one : json::array_at(answer, "victims"))
    victims.push_back(victim_value(world, visible, one));
  for (const json::Value& one : json::array_at(answer, "alternatives")) {
    const std::string flag = json::text_at(one, "flag");
    const std::string text = json::text_at(one, "text");
    alternatives.push_back({{"change", flag.empty() ? text : flag},
                            {"text", flag.empty() ? "" : text},
                            {"verdict", "starts"},
                            {"start", millis(at(one, "start"))},
                            {"yaml", nullptr}});
  }
  json::Array placement;
  for (const json::Value& seat : json::array_at(answer, "placement")) {
    const std::string task = json::text_at(seat, "task");
    placement.push_back({{"task", task.substr(task.rfind('/') + 1)},
                         {"node", at(seat, "node")},
                         {"gpus", at(seat, "gpus")}});
  }
  return {{"verdict", at(answer, "verdict")},
          {"text", at(answer, "text")},
          {"placement", std::move(placement)},
          {"victims", std::move(victims)},
          {"wait", wait_of(at(answer, "wait"), world.now())},
          {"alternatives", std::move(alternatives)},
          {"at", millis(at(answer, "at"))},
          {"rv", json::text_at(answer, "revision")}};
}

}  // namespace

json::Value refused_decision(const World& world, const std::string& message) {
  return {{"verdict", "refused"},
          {"text", message},
          {"placement", json::Array{}},
          {"victims", json::Array{}},
          {"wait", nullptr},
          {"alternatives", json::Array{}},
          {"at", world.now()},
          {"rv", ""}};
}

Task<bool> decides_beforehand(client::Client& client) {
  const auto list = co_await client.raw("GET", root(), nullptr);
  if (!list) co_return false;
  const json::Array& resources = json::array_at(*list, "resources");
  co_return std::any_of(resources.begin(), resources.end(), [](const json::Value& one) {
    return json::string_at(one, "name") == "checks";
  });
}

Task<Result<json::Value>> decide_beforehand(World& world, User user, DecisionAsk ask) {
  const std::string target = fmt::format("{}/namespaces/{}/check{}",
                                         root(),
                                         percent_encode(ask.ns),
                                         ask.whole ? "?cpuSeconds=2" : "?quick=true");
  Result<json::Value> answer = json::Value();
  if (ask.as_portal)
    answer = co_await world.kube.own().raw("POST", target, std::move(ask.object));
  else
    answer = co_await world.kube.call_as(user, "POST", target, std::move(ask.object));
  if (!answer) co_return fail(answer.error());
  const VisiblePtr visible = co_await world.rights.visible(std::move(user));
  co_return decision_value(world, *visible, *answer);
}

}  // namespace muster::portal
