#include "answers/http.h"

#include <fmt/core.h>

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
      "there is no such answer; there are records, records/UID, records/UID/timeline, usage, waits and accuracy";
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
  add("records", true, {"get", "list"});
  add("usage", false, {"get"});
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

Result<Asked> what_is_asked(const std::string& method, const net::Target& target) {
  const Segments& parts = target.segments;
  Asked asked;
  asked.verb = "get";
  asked.anybody = true;
  if (parts.size() <= kHead) return asked;
  const std::string& word = parts[kHead];
  if (word == "records" && parts.size() <= kHead + 3) {
    asked.resource = "records";
    if (parts.size() == kHead + 1) asked.verb = "list";
    if (parts.size() == kHead + 3 && parts[kHead + 2] != "timeline") return fail(no_such_path());
  } else if ((word == "usage" || word == "waits" || word == "accuracy") &&
             parts.size() == kHead + 1) {
    asked.resource = "usage";
  } else {
    return fail(no_such_path());
  }
  if (method != "GET")
    return fail(Code::kMethodNotAllowed, fmt::format("{} is to be read: want GET", target.path));
  return asked;
}

Task<net::Response> answer(Service& service, Question question) {
  const Segments& parts = question.target.segments;
  if (parts.size() <= kHead) co_return json_answer(200, discovery(parts.size()));
  const std::string& word = parts[kHead];
  Result<json::Value> found = fail(no_such_path());
  if (word == "records" && parts.size() == kHead + 1)
    found = service.records(question.visitor, question.target);
  else if (word == "records" && parts.size() == kHead + 2)
    found = service.record(question.visitor, parts[kHead + 1]);
  else if (word == "records" && parts.size() == kHead + 3)
    found = service.timeline(question.visitor, parts[kHead + 1]);
  else if (word == "usage")
    found = service.usage(question.visitor, question.target);
  else if (word == "waits")
    found = service.waits(question.visitor, question.target);
  else if (word == "accuracy")
    found = service.accuracy(question.visitor, question.target);
  co_return found ? json_answer(200, *found) : error_answer(found.error());
}

}  // namespace muster::answers
