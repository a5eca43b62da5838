/// POST check: what would become of a manifest, without making anything: what is wrong with it and
/// where, in the very words of OpenPAI's REST API or of the API server, and what would be created.
#include "portal/api/check.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "json/yaml.h"
#include "kube/meta.h"
#include "portal/api/api.h"
#include "portal/api/decision.h"
#include "portal/api/locate.h"
#include "portal/api/mask.h"

namespace muster::portal {
namespace {

constexpr std::size_t kManifestMax = 1024 * 1024;
/// Of one person: typing asks a few times a second, a script may not keep the cluster busy with it.
constexpr int kChecksMax = 40;
constexpr Duration kChecksFor = std::chrono::seconds(10);

json::Value finding(Spot spot, std::string_view path, std::string_view message) {
  return {{"line", spot.line},
          {"col", spot.col},
          {"path", path},
          {"severity", "error"},
          {"message", message}};
}

/// OpenPAI's schema answers with a list of errors as text; everything else is a sentence.
json::Array pai_findings(std::string_view yaml, const std::string& message) {
  json::Array findings;
  const auto errors = json::parse(message);
  if (errors && errors->is_array()) {
    for (const json::Value& error : json::as_array(*errors)) {
      const std::string path = json::text_at(error, "dataPath");
      std::vector<std::string> parts = path_parts(path);
      // What is too much is named beside where it stands.
      const std::string extra = json::text_at(error, "params", "additionalProperty");
      if (!extra.empty()) parts.push_back(extra);
      std::string text = json::text_at(error, "message");
      if (!extra.empty()) text += fmt::format(": {}", extra);
      findings.push_back(finding(locate(yaml, parts), path, text));
    }
    return findings;
  }
  findings.push_back(finding(spot_of_message(message), "", message));
  return findings;
}

/// `strict decoding error: unknown field "spec.colour", unknown field "x"` has no causes.
void add_unknown_fields(json::Array& findings, std::string_view yaml, const std::string& message) {
  constexpr std::string_view kUnknown = "unknown field \"";
  for (std::size_t at = message.find(kUnknown); at != std::string::npos;
       at = message.find(kUnknown, at + 1)) {
    const std::size_t begin = at + kUnknown.size();
    const std::size_t end = message.find('"', begin);
    if (end == std::string::npos) break;
    const std::string path = message.substr(begin, end - begin);
    findings.push_back(
        finding(locate(yaml, path_parts(path)), path, message.substr(at, end + 1 - at)));
  }
}

/// What the API server takes and a controller then does not: the words of its event, each at its line.
void add_errors_of_controller(json::Array& findings,
                              std::string_view yaml,
                              const json::Value& decision) {
  for (const std::string& error : validation_errors(json::string_at(decision, "text"))) {
    const std::string path = error.substr(0, error.find(": "));
    findings.push_back(finding(locate(yaml, path_parts(path)), path, error));
  }
}

json::Array kube_findings(std::string_view yaml, const json::Value& status) {
  json::Array findings;
  const std::string message = json::text_at(status, "message");
  for (const json::Value& cause : json::array_at(status, "details", "causes")) {
    const std::string path = json::text_at(cause, "field");
    findings.push_back(finding(locate(yaml, path_parts(path)),
                               path,
                               fmt::format("{}: {}", path, json::string_at(cause, "message"))));
  }
  if (findings.empty()) add_unknown_fields(findings, yaml, message);
  if (findings.empty()) {
    // `… json: cannot unmarshal string into Go struct field JobSpec.spec.parallelism of type int32`
    constexpr std::string_view kField = "Go struct field ";
    Spot spot = spot_of_message(message);
    std::string path;
    if (const std::size_t at = message.find(kField); at != std::string::npos) {
      path = message.substr(at + kField.size());
      path = path.substr(0, path.find(' '));
      path = path.substr(std::min(path.find('.') + 1, path.size()));
      spot = locate(yaml, path_parts(path));
    }
    findings.push_back(finding(spot, path, message));
  }
  return findings;
}

Task<json::Value> check_pai(World& world, const User& user, std::string text, bool whole) {
  if (!world.options.rest_call)
    co_return json::Value{{"kind", "openpai"},
                          {"diagnostics", {finding({}, "", "this server has no OpenPAI REST API")}},
                          {"objects", ""},
                          {"decision", nullptr}};
  const auto answer =
      co_await world.options.rest_call(user, "POST", "/api/v2/jobs?dryRun=All", text, "text/yaml");
  json::Array findings;
  std::string objects;
  json::Value decision;
  std::string undecided;
  if (!answer) {
    findings.push_back(finding({}, "", answer.error().message));
  } else {
    const auto body = json::parse(answer->body);
    if (answer->status >= 300) {
      const std::string message = body ? json::text_at(*body, "message") : answer->body;
      findings = pai_findings(text, message);
      // What is wrong with the text is marked there; what is wrong with the job is a decision.
      const auto schema = json::parse(message);
      if (!schema || !schema->is_array()) decision = refused_decision(world, message);
    } else if (body) {
      const json::Value& framework = json::at(*body, "framework");
      objects = json::to_yaml(masked(framework, Environment::kShown));
      DecisionAsk ask;
      ask.ns = std::string(kube::namespace_of(framework));
      ask.object = framework;
      ask.as_portal = true;
      ask.whole = whole;
      auto decided = co_await decide_beforehand(world, user, std::move(ask));
      if (decided)
        decision = std::move(*decided);
      else
        undecided = decided.error().message;
    }
  }
  co_return json::Value{{"kind", "openpai"},
                        {"diagnostics", std::move(findings)},
                        {"objects", objects},
                        {"decision", std::move(decision)},
                        {"undecided", undecided}};
}

Task<json::Value> check_kube(
    World& world, const User& user, std::string text, json::Value value, bool whole) {
  const kube::Gvk gvk = kube::gvk_of(value);
  json::Value result{{"kind", to_lower(gvk.kind)},
                     {"diagnostics", json::Array{}},
                     {"objects", ""},
                     {"decision", nullptr}};
  json::Array& findings = result.get_object()["diagnostics"].get_array();
  if (gvk.kind.empty() || gvk.version.empty()) {
    findings.push_back(finding(
        {1, 1},
        "",
        "wanted an OpenPAI job (protocolVersion: 2) or a Kubernetes object (apiVersion and kind)"));
    co_return result;
  }
  const std::string ns =
      kube::namespace_of(value).empty() ? "default" : std::string(kube::namespace_of(value));
  const auto where = co_await collection_of(world, user, gvk, ns);
  if (!where) {
    findings.push_back(finding(locate(text, {"kind"}), "kind", where.error().message));
    co_return result;
  }
  net::Request request;
  request.method = "POST";
  request.target = *where + "?dryRun=All&fieldValidation=Strict";
  request.headers.set("Accept", "application/json");
  request.headers.set("Content-Type", "application/json");
  request.body = json::dump(value);
  const auto answer = co_await world.kube.send_as(user, std::move(request));
  if (!answer) {
    findings.push_back(finding({}, "", answer.error().message));
    co_return result;
  }
  const auto body = json::parse(answer->body);
  if (answer->status >= 300) {
    findings = body ? kube_findings(text, *body)
                    : json::Array{finding({}, "", answer->body.substr(0, 300))};
  } else if (body) {
    result.get_object()["objects"] = json::to_yaml(masked(*body, Environment::kShown));
    DecisionAsk ask;
    ask.ns = ns;
    ask.object = std::move(value);
    ask.whole = whole;
    auto decided = co_await decide_beforehand(world, user, std::move(ask));
    if (decided) {
      add_errors_of_controller(findings, text, *decided);
      result.get_object()["decision"] = std::move(*decided);
    } else {
      result.get_object()["undecided"] = decided.error().message;
    }
  }
  co_return result;
}

}  // namespace

bool CheckLimit::allows(const std::string& user, Duration now) {
  if (asked_.size() > 4096) asked_.clear();
  std::deque<Duration>& times = asked_[user];
  while (!times.empty() && now - times.front() > kChecksFor) times.pop_front();
  if (times.size() >= kChecksMax) return false;
  times.push_back(now);
  return true;
}

Task<void> serve_check(ApiWorld api, ApiCall call) {
  World& world = api.world;
  if (call.request.body.size() > kManifestMax) {
    co_await answer(
        call.writer,
        error_answer(413, "RequestEntityTooLarge", "a manifest may have at most 1 MiB"));
    co_return;
  }
  if (!api.checks.allows(call.visitor.user.name, world.env.monotonic())) {
    net::Response refused = error_answer(429,
                                         "TooManyRequests",
                                         fmt::format("at most {} checks in {} s; wait a moment",
                                                     kChecksMax,
                                                     kChecksFor / std::chrono::seconds(1)));
    refused.headers.set("Retry-After", "2");
    co_await answer(call.writer, std::move(refused));
    co_return;
  }
  const std::string text = call.request.body;
  auto manifest = json::parse_yaml_one(text, 20'000);
  if (!manifest || !manifest->is_object()) {
    const std::string message = manifest ? "wanted one job in YAML" : manifest.error().message;
    co_await answer_json(call.writer,
                         {{"kind", ""},
                          {"diagnostics", {finding(spot_of_message(message), "", message)}},
                          {"objects", ""},
                          {"decision", nullptr}});
    co_return;
  }
  const bool whole = call.target.get("whole") == "true";
  const bool pai = !json::at(*manifest, "protocolVersion").is_null();
  json::Value result;
  if (pai)
    result = co_await check_pai(world, call.visitor.user, text, whole);
  else
    result = co_await check_kube(world, call.visitor.user, text, std::move(*manifest), whole);
  co_await answer_json(call.writer, std::move(result));
}

}  // namespace muster::portal
