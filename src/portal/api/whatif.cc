/// POST whatif and GET whatif/ID: changes tried on a copy of the cluster, asked of the group of
/// answers (docs/answers.md) in the name of who asks. Here jobs only get the names that pages know.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "portal/api/api.h"

namespace muster::portal {
namespace {

constexpr std::size_t kQuestionMax = 1024 * 1024;

std::string root() { return fmt::format("/apis/{}/v1/whatifs", kube::groups::kAnswers); }

/// "ns/kind/name" of the object, which is how answers call a job.
std::string object_name(const World& world, const std::string& id) {
  const JobIndex::Entry* entry = world.jobs.find(id);
  if (entry == nullptr || !entry->object) return id;
  return job_id(entry->facts.ns, entry->facts.kind, kube::name_of(*entry->object));
}

/// Members of changes that name jobs.
void name_objects(const World& world, json::Value& question) {
  const auto rename = [&](json::Value& value) {
    if (value.is_string()) value = object_name(world, json::text(value));
  };
  if (!question.is_object()) return;
  const auto rename_all = [&](json::Object& in, const char* list) {
    if (const auto found = in.find(list); found != in.end() && found->value().is_array()) {
      for (json::Value& one : found->value().get_array()) rename(one);
    }
  };
  rename_all(question.get_object(), "jobs");
  const auto changes = question.get_object().find("changes");
  if (changes == question.get_object().end() || !changes->value().is_array()) return;
  for (json::Value& change : changes->value().get_array()) {
    if (!change.is_object()) continue;
    for (auto& [kind, what] : change.get_object()) {
      if (!what.is_object()) continue;
      if (kind == "stop") rename_all(what.get_object(), "jobs");
      if (kind != "priority" && kind != "lasts") continue;
      if (const auto job = what.get_object().find("job"); job != what.get_object().end())
        rename(job->value());
    }
  }
}

json::Value times(const json::Value& start, const json::Value& end) {
  const auto time = [](const json::Value& range, const char* which) {
    const Millis at = millis_at(json::at(range, which));
    return at == 0 ? json::Value(nullptr) : json::Value(at);
  };
  return {{"start", time(start, "p50")},
          {"low", time(start, "p10")},
          {"high", time(start, "p90")},
          {"end", time(end, "p50")}};
}

json::Value shown(const World& world, const Visible& visible, const json::Value& answer) {
  json::Array jobs;
  for (const json::Value& one : json::array_at(answer, "jobs")) {
    const std::string key = json::text_at(one, "job");
    const JobIndex::Entry* entry = world.jobs.of_key(key);
    if (entry != nullptr && !sees(visible, *entry)) entry = nullptr;
    jobs.push_back({{"id", entry == nullptr ? json::Value(nullptr) : json::Value(entry->facts.id)},
                    {"name", entry == nullptr ? key.substr(key.rfind('/') + 1) : entry->facts.name},
                    {"user", entry == nullptr ? "" : entry->facts.user},
                    {"evicted", json::bool_at(one, "evicted")},
                    {"before", times(json::at(one, "before"), json::at(one, "endBefore"))},
                    {"after", times(json::at(one, "after"), json::at(one, "endAfter"))}});
  }
  json::Array queues;
  for (const json::Value& one : json::array_at(answer, "queues"))
    queues.push_back({{"queue", json::at(one, "queue")},
                      {"waitBefore", json::at(one, "waitBeforeSeconds")},
                      {"waitAfter", json::at(one, "waitAfterSeconds")},
                      {"gpusBefore", json::at(one, "gpusBefore")},
                      {"gpusAfter", json::at(one, "gpusAfter")}});
  return {{"text", json::at(answer, "summary")},
          {"jobs", std::move(jobs)},
          {"queues", std::move(queues)},
          {"warnings", json::at(answer, "warnings")},
          {"cut", json::text_at(answer, "cut")},
          {"horizon", json::int_at(answer, "horizonSeconds") * 1000},
          {"draws", json::at(answer, "draws")},
          {"rv", json::text_at(answer, "revision")}};
}

}  // namespace

Task<void> serve_whatif(ApiWorld api, ApiCall call) {
  World& world = api.world;
  net::Request request;
  request.method = call.request.method;
  request.headers.set("Accept", "application/json");
  if (call.request.method == "POST" && call.path.size() == 1) {
    auto question = json::parse(call.request.body);
    if (call.request.body.size() > kQuestionMax || !question || !question->is_object()) {
      co_await answer(
          call.writer,
          error_answer(400,
                       "BadRequest",
                       "wanted {\"changes\": […], \"horizon\": \"24h\"} of at most 1 MiB"));
      co_return;
    }
    co_await world.jobs.wait_ready();
    name_objects(world, *question);
    request.target = root();
    request.headers.set("Content-Type", "application/json");
    request.body = json::dump(*question);
  } else if (call.request.method == "GET" && call.path.size() == 2) {
    request.target = root() + "/" + percent_encode(call.path[1]);
  } else {
    co_await answer(
        call.writer,
        error_answer(405, "MethodNotAllowed", "questions are asked by POST whatif; GET whatif/ID"));
    co_return;
  }
  const auto got = co_await world.kube.send_as(call.visitor.user, std::move(request));
  if (!got) {
    co_await answer_error(call.writer, got.error());
    co_return;
  }
  const auto body = json::parse(got->body);
  if (got->status == 202 && body) {
    co_await answer_json(call.writer, {{"id", json::at(*body, "id")}}, 202);
  } else if (got->status >= 300 || !body) {
    net::Response refused = error_answer(got->status,
                                         body ? json::text_at(*body, "reason") : "InternalError",
                                         body ? json::text_at(*body, "message") : "no answer");
    if (got->headers.has("Retry-After"))
      refused.headers.set("Retry-After", std::string(got->headers.get("Retry-After")));
    co_await answer(call.writer, std::move(refused));
  } else {
    const VisiblePtr visible = co_await world.rights.visible(call.visitor.user);
    co_await answer_json(call.writer, shown(world, *visible, *body));
  }
}

}  // namespace muster::portal
