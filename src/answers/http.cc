#include "answers/http.h"

#include <fmt/core.h>

#include <array>
#include <map>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/names.h"

namespace muster::answers {
namespace {

using Segments = std::vector<std::string>;

/// apis, the group and its version.
constexpr std::size_t kHead = 3;

Error no_such_path() {
  Error error;
  error.code = Code::kNotFound;
  error.message =
      "there is no such answer; there are when, gantt, queues/Q/when, namespaces/N/when, namespaces/N/jobs/KIND.NAME/when, namespaces/N/check (POST), whatifs (POST), whatifs/ID, records, records/UID, records/UID/timeline, usage, waits and accuracy";
  return error;
}

net::Response json_answer(int status, const json::Value& value) {
  net::Response response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = json::dump(value) + "\n";
  return response;
}

/// What the group and its version have, for clients that look before they ask.
json::Value discovery(std::size_t depth) {
  const std::string group(kube::groups::kAnswers);
  const json::Object version{{"groupVersion", group + "/v1"}, {"version", "v1"}};
  if (depth < kHead)
    return json::Object{{"kind", "APIGroup"},
                        {"apiVersion", "v1"},
                        {"name", group},
                        {"versions", json::Array{version}},
                        {"preferredVersion", version}};
  json::Array resources;
  const auto add = [&](const char* name, bool namespaced, json::Array verbs) {
    resources.push_back(json::Object{{"name", name},
                                     {"singularName", ""},
                                     {"namespaced", namespaced},
                                     {"kind", "Answer"},
                                     {"verbs", std::move(verbs)}});
  };
  add("checks", true, {"create"});
  add("forecasts", true, {"get"});
  add("records", true, {"get", "list"});
  add("usage", false, {"get"});
  add("whatifs", false, {"create", "get"});
  return json::Object{{"kind", "APIResourceList"},
                      {"apiVersion", "v1"},
                      {"groupVersion", group + "/v1"},
                      {"resources", std::move(resources)}};
}

}  // namespace

net::Response error_answer(const Error& error) {
  const int status = http_status_of(error.code);
  json::Object body{{"kind", "Status"},
                    {"apiVersion", "v1"},
                    {"metadata", json::Object()},
                    {"status", "Failure"},
                    {"message", error.message},
                    {"reason", reason_of(error.code)},
                    {"code", status}};
  net::Response response = json_answer(status, body);
  if (error.retry_after_s > 0)
    response.headers.set("Retry-After", std::to_string(error.retry_after_s));
  return response;
}

namespace {

tl::unexpected<Error> wrong_method(const net::Target& target, std::string_view wanted) {
  return fail(Code::kMethodNotAllowed, fmt::format("{}: wanted {}", target.path, wanted));
}

}  // namespace

namespace {

/// namespaces/N/records is records?namespace=N, with the right in the namespace: an API server in
/// front lets those pass who have no other.
bool in_a_namespace(const Segments& parts) {
  if (parts.size() < kHead + 3 || parts[kHead] != "namespaces") return false;
  const std::string& word = parts[kHead + 2];
  return word == "records" || word == "usage" || word == "waits" || word == "accuracy";
}

net::Target without_namespace(net::Target target) {
  target.query.emplace_back("namespace", target.segments[kHead + 1]);
  target.segments.erase(target.segments.begin() + kHead, target.segments.begin() + kHead + 2);
  return target;
}

}  // namespace

Result<Asked> what_is_asked(const std::string& method, const net::Target& target) {
  const Segments& parts = target.segments;
  if (in_a_namespace(parts)) {
    auto whole = what_is_asked(method, without_namespace(target));
    if (whole) whole->ns = parts[kHead + 1];
    if (whole) whole->anybody = false;
    return whole;
  }
  Asked asked;
  asked.verb = "get";
  asked.anybody = true;
  if (parts.size() <= kHead) return asked;
  const std::string& word = parts[kHead];
  const std::string& last = parts.back();
  const bool when = last == "when" || last == "explain";
  if ((when || last == "gantt") && parts.size() == kHead + 1) {
    asked.resource = "forecasts";
  } else if (word == "queues" && parts.size() == kHead + 3 && last == "when") {
    asked.resource = "forecasts";
  } else if (word == "namespaces" && when &&
             (parts.size() == kHead + 3 ||
              (parts.size() == kHead + 5 && parts[kHead + 2] == "jobs"))) {
    asked.resource = "forecasts";
    asked.ns = parts[kHead + 1];
    asked.anybody = false;
  } else if (word == "namespaces" && parts.size() == kHead + 3 && last == "check") {
    asked = {.verb = "create", .resource = "checks", .ns = parts[kHead + 1]};
    return method == "POST" ? Result<Asked>(asked) : wrong_method(target, "POST");
  } else if (word == "whatifs" && parts.size() <= kHead + 2) {
    const bool asks = parts.size() == kHead + 1;
    asked = {.verb = "create", .resource = "whatifs"};
    if (method != (asks ? "POST" : "GET")) return wrong_method(target, asks ? "POST" : "GET");
    return asked;
  } else if (word == "records" && parts.size() <= kHead + 3) {
    asked.resource = "records";
    if (parts.size() == kHead + 1) asked.verb = "list";
    if (parts.size() == kHead + 3 && parts[kHead + 2] != "timeline") return fail(no_such_path());
  } else if ((word == "usage" || word == "waits" || word == "accuracy") &&
             parts.size() == kHead + 1) {
    asked.resource = "usage";
  } else {
    return fail(no_such_path());
  }
  if (method != "GET") return wrong_method(target, "GET");
  return asked;
}

namespace {

/// What the path and its parameters ask about. A job is KIND.NAME.
Result<Service::WhenAsk> when_ask(const net::Target& target) {
  const Segments& parts = target.segments;
  Service::WhenAsk ask;
  if (parts[kHead] == "queues") ask.queue = parts[kHead + 1];
  if (parts[kHead] == "namespaces") ask.ns = parts[kHead + 1];
  if (!target.get("queue").empty()) ask.queue = target.get("queue");
  ask.name = target.get("name");
  if (parts.size() == kHead + 5) {
    const std::string& job = parts[kHead + 3];
    const std::size_t dot = job.find('.');
    if (dot == std::string::npos)
      return fail(Code::kBadRequest,
                  fmt::format("{}: wanted KIND.NAME, such as pytorchjob.medium", job));
    ask.kind = job.substr(0, dot);
    ask.name = job.substr(dot + 1);
  }
  ask.alternatives = parts.back() == "explain" || target.get("alternatives") == "true";
  if (const std::string_view text = target.get("limit"); !text.empty()) {
    const auto limit = parse_int(text);
    if (!limit || *limit < 1)
      return fail(Code::kBadRequest, fmt::format("limit {}: wanted a number from 1 on", text));
    ask.limit = static_cast<std::size_t>(*limit);
  }
  return ask;
}

Result<json::Value> only_one(const json::Value& answer, const std::string& job) {
  const json::Array& items = json::array_at(answer, "items");
  if (items.empty()) return fail(Code::kNotFound, fmt::format("{} is not waiting here", job));
  return items[0];
}

}  // namespace

namespace {

/// Longer ones are read beside the loop.
constexpr std::size_t kShortBody = 16 * 1024;

/// Rights do not change while a question is answered, and are asked for by each of many jobs.
Visitor asking_once(Visitor visitor) {
  const auto known = std::make_shared<std::map<std::array<std::string, 3>, bool>>();
  visitor.may = [known, may = std::move(visitor.may)](
                    std::string_view verb, std::string_view resource, std::string_view ns) {
    const auto [at, fresh] =
        known->try_emplace({std::string(verb), std::string(resource), std::string(ns)});
    if (fresh) at->second = may(verb, resource, ns);
    return at->second;
  };
  return visitor;
}

/// A manifest or a question: YAML, of which JSON is a part.
Result<json::Value> body_of(const std::string& body) {
  constexpr std::size_t kBodyMax = 1024 * 1024;
  constexpr std::size_t kValuesMax = 20'000;
  if (body.size() > kBodyMax)
    return fail(Code::kTooLarge, fmt::format("{} bytes: at most 1 MiB is read", body.size()));
  auto parsed = json::parse_yaml_one(body, kValuesMax);
  if (parsed && !parsed->is_object())
    return fail(Code::kBadRequest, "wanted one object in YAML or JSON");
  return parsed;
}

Task<net::Response> answer_post(Service& service, Question question) {
  const Segments& parts = question.target.segments;
  Result<json::Value> body = json::Value();
  const auto read = [&] { body = body_of(question.body); };
  if (question.body.size() < kShortBody)
    read();
  else
    co_await service.env().run_on_worker(read);
  if (!body) co_return error_answer(body.error());
  if (parts.back() == "check") {
    Service::CheckWish wish;
    wish.shape = question.target.get("shape") == "true";
    wish.quick = question.target.get("quick") == "true";
    wish.cpu_s = static_cast<double>(parse_int(question.target.get("cpuSeconds")).value_or(0));
    const auto decision =
        co_await service.check(question.visitor, parts[kHead + 1], std::move(*body), wish);
    co_return decision ? json_answer(200, *decision) : error_answer(decision.error());
  }
  const auto answered = co_await service.what_if(question.visitor, std::move(*body));
  if (!answered) co_return error_answer(answered.error());
  net::Response response = json_answer(answered->status, answered->body);
  if (answered->status == 202) response.headers.set("Retry-After", "1");
  co_return response;
}

}  // namespace

namespace {

/// There may be ten thousand rows: they are written, and let go of, on a worker.
Task<net::Response> long_answer(Env& env, json::Value value) {
  const auto rows = std::make_shared<json::Value>(std::move(value));
  const auto response = std::make_shared<net::Response>();
  co_await env.run_on_worker([rows, response] {
    *response = json_answer(200, *rows);
    *rows = nullptr;
  });
  co_return std::move(*response);
}

}  // namespace

Task<net::Response> answer(Service& service, Question question) {
  question.visitor = asking_once(std::move(question.visitor));
  if (in_a_namespace(question.target.segments))
    question.target = without_namespace(std::move(question.target));
  if (question.method == "POST") {
    auto response = co_await answer_post(service, std::move(question));
    co_return response;
  }
  const Segments& parts = question.target.segments;
  if (parts.size() <= kHead) co_return json_answer(200, discovery(parts.size()));
  const std::string& word = parts[kHead];
  Result<json::Value> found = fail(no_such_path());
  if (word == "whatifs") {
    const auto later = service.find_what_if(question.visitor, parts.back());
    if (!later) co_return error_answer(later.error());
    net::Response response = json_answer(later->status, later->body);
    if (later->status == 202) response.headers.set("Retry-After", "1");
    co_return response;
  }
  if (parts.back() == "gantt") {
    found = co_await service.gantt(question.visitor);
  } else if (parts.back() == "when" || parts.back() == "explain") {
    const auto ask = when_ask(question.target);
    if (!ask) co_return error_answer(ask.error());
    found = co_await service.when(question.visitor, *ask);
    if (found && parts.size() == kHead + 5) found = only_one(*found, parts[kHead + 3]);
  } else if (word == "records" && parts.size() == kHead + 1) {
    found = co_await service.records(question.visitor, question.target);
  } else if (word == "records" && parts.size() == kHead + 2) {
    found = co_await service.record(question.visitor, parts[kHead + 1]);
  } else if (word == "records" && parts.size() == kHead + 3) {
    found = co_await service.timeline(question.visitor, parts[kHead + 1]);
  } else if (word == "usage") {
    found = co_await service.usage(question.visitor, question.target);
  } else if (word == "waits") {
    found = co_await service.waits(question.visitor, question.target);
  } else if (word == "accuracy") {
    found = co_await service.accuracy(question.visitor, question.target);
  }
  if (!found) co_return error_answer(found.error());
  auto response = co_await long_answer(service.env(), std::move(*found));
  co_return response;
}

}  // namespace muster::answers
