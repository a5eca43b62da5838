#include "apiserver/rest/router.h"

#include <fmt/core.h>

#include "apiserver/audit/log.h"
#include "apiserver/auth/auth.h"
#include "apiserver/auth/impersonation.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/rest/discovery.h"
#include "apiserver/rest/read_ahead.h"
#include "apiserver/rest/rest.h"
#include "apiserver/rest/shares.h"
#include "apiserver/rest/standing.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/names.h"
#include "net/http/query.h"

namespace muster::apiserver {
namespace {

/// A bound on what one request of several reads may ask for.
constexpr std::size_t kReadsMax = 64;
constexpr std::size_t kReadsBytesMax = 256 * 1024;
/// Lines of the audit log in an answer, unless asked for.
constexpr std::int64_t kAuditLines = 100;

Error audit_is_behind() {
  Error error;
  error.code = Code::kTooManyRequests;
  error.message =
      "the audit log is written more slowly than requests come, and none is answered unrecorded; "
      "try again later";
  error.retry_after_s = 1;
  return error;
}

Error too_many_waiting() {
  Error error;
  error.code = Code::kTooManyRequests;
  error.message =
      "too many requests of yours are waiting already, as others use the server too; try again later";
  error.retry_after_s = 1;
  return error;
}

/// What a request counts in the share of its user: a write is read, checked and stored.
Shares::Asked asked_by(const net::Request& request) {
  constexpr Shares::Cost kRead = 2, kWrite = 6;
  const bool reads = request.method == "GET" || request.method == "HEAD";
  return {reads ? kRead : kWrite, !reads};
}

bool is_public(std::string_view path) {
  for (const std::string_view each : {"/healthz", "/livez", "/readyz", "/version"}) {
    if (path == each || (path.starts_with(each) && path.substr(each.size()) == "/")) return true;
  }
  return false;
}

bool is_stream(std::string_view subresource) {
  return subresource == "log" || subresource == "exec" || subresource == "attach" ||
         subresource == "portforward";
}

std::string verb_of(const net::Request& request, bool named, bool watching) {
  if (request.method == "GET" || request.method == "HEAD")
    return named ? "get" : watching ? "watch" : "list";
  if (request.method == "POST") return "create";
  if (request.method == "PUT") return "update";
  if (request.method == "PATCH") return "patch";
  if (request.method == "DELETE") return named ? "delete" : "deletecollection";
  return "";
}

std::string manager_of(const net::Request& request) {
  const std::string_view agent = request.headers.get("User-Agent");
  const std::string_view name = agent.substr(0, agent.find('/'));
  return name.empty() ? "unknown" : std::string(name.substr(0, 128));
}

/// Writes that keep book of what has happened already. Only this process's own wait: what others
/// send is theirs to pace.
bool can_wait(const Call& call) {
  if (!call.in_process && !call.request.peer.trusted_user) return false;
  return call.resource->storage == "events" || call.resource->info.group == kube::groups::kMuster ||
         (call.resource->storage == "pods" && call.subresource == "status");
}

bool is_read(const Call& call) { return call.verb == "get" || call.verb == "list"; }

/// Whether the loop has more to do for it than it does in one go.
bool is_long(Core& core, const Call& call) {
  constexpr std::int64_t kObjects = 500;
  if (call.verb != "list" || call.request.peer.trusted_user) return false;
  // One that waits for a later revision must not keep others from their turn meanwhile.
  const auto version = parse_version(call.target.get("resourceVersion"));
  if (!version || *version > core.image.revision()) return false;
  const std::int64_t limit = parse_int(call.target.get("limit")).value_or(0);
  return (limit <= 0 || limit > kObjects) &&
         std::ssize(core.collection(*call.resource).objects()) > kObjects;
}

Attributes attributes_of(const Call& call) {
  Attributes attributes;
  attributes.verb = call.verb;
  attributes.group = call.resource->info.group;
  attributes.resource = call.resource->info.plural;
  attributes.subresource = call.subresource;
  attributes.name = call.name;
  // A list or watch of one object by its name needs the right to that one, as in Kubernetes.
  if (call.name.empty() && (call.verb == "list" || call.verb == "watch")) {
    const auto fields = kube::FieldSelector::parse(call.target.get("fieldSelector"));
    if (fields) attributes.name = fields->required_name();
  }
  attributes.ns =
      call.resource->info.plural == "namespaces" && call.ns.empty() ? call.name : call.ns;
  return attributes;
}

/// A shell that is asked for by GET: that needs the verb of POST, too.
bool needs_create(const Call& call) {
  return call.verb == "get" && (call.subresource == "exec" || call.subresource == "attach" ||
                                call.subresource == "portforward");
}

std::vector<Attributes> needed_by(const Call& call) {
  std::vector<Attributes> needed = {attributes_of(call)};
  if (needs_create(call)) {
    needed.push_back(needed.front());
    needed.back().verb = "create";
  }
  return needed;
}

bool is_for_answers(const net::Target& target) {
  return target.segments.size() > 1 && target.segments[0] == "apis" &&
         target.segments[1] == kube::groups::kAnswers;
}

constexpr std::string_view kReads = "/muster/v1/reads", kAudit = "/muster/v1/audit";

/// An answer that nobody has to wait for.
Task<Result<Reply>> ready(Result<Reply> answer) { co_return answer; }

}  // namespace

void Router::count(std::string_view method, int status) {
  ++core_.request_counts[fmt::format("{} {}", method, status)];
}

Task<Result<void>> Router::send(const Call& call,
                                net::ResponseWriter& writer,
                                net::Response response) {
  count(call.request.method, response.status);
  if (!response.headers.has("Cache-Control"))
    response.headers.set("Cache-Control", "no-cache, private");
  if (!call.request.peer.trusted_user)
    core_.shares->charge(call.user.name, Shares::cost_of_bytes(response.body.size()));
  return writer.send(std::move(response));
}

Result<void> Router::identify(Call& call, audit::Record& record) const {
  auto target = net::parse_target(call.request.target);
  if (!target) return fail(bad_request(target.error().message));
  call.target = std::move(*target);
  call.manager = manager_of(call.request);
  auto user = core_.authenticator->authenticate(call.request, call.received);
  if (!user && is_public(call.target.path) && call.request.headers.get("Authorization").empty()) {
    user = User{.name = "system:anonymous", .groups = {"system:unauthenticated"}};
  }
  if (!user) return fail(user.error());
  if (call.request.headers.has("Impersonate-User")) record.set_asker(*user);
  auto acting = impersonated(core_, call.request, std::move(*user));
  if (!acting) {
    record.begin();
    record.set_decision(false);
    return fail(acting.error());
  }
  call.user = std::move(*acting);
  return {};
}

/// /api/v1/namespaces/NS/pods/x/log and its relatives.
Result<void> Router::route(Call& call) const {
  const auto& parts = call.target.segments;
  std::string group, version;
  std::size_t at = 0;
  if (parts.size() >= 3 && parts[0] == "api") {
    version = parts[1];
    at = 2;
  } else if (parts.size() >= 4 && parts[0] == "apis") {
    group = parts[1];
    version = parts[2];
    at = 3;
  } else {
    return fail(no_such_path());
  }
  bool watching = net::on(call.target, "watch");
  bool old_watch = false;
  if (parts[at] == "watch" && parts.size() > at + 1) {
    watching = old_watch = true;
    ++at;
  }
  if (core_.resources.find_group_version(group, version) == nullptr) return fail(no_such_path());
  if (parts[at] == "namespaces" && parts.size() > at + 2 && group.empty() &&
      (parts[at + 2] == "status" || parts[at + 2] == "finalize") && parts.size() == at + 3) {
    call.resource = core_.resources.find(group, version, "namespaces");
    call.name = parts[at + 1];
    call.subresource = parts[at + 2];
  } else if (parts[at] == "namespaces" && parts.size() > at + 2) {
    call.ns = parts[at + 1];
    call.resource = core_.resources.find(group, version, parts[at + 2]);
    if (call.resource && !call.resource->info.namespaced) call.resource = nullptr;
    at += 2;
    if (parts.size() > at + 1) call.name = parts[at + 1];
    if (parts.size() > at + 2) call.subresource = parts[at + 2];
    if (parts.size() > at + 3) return fail(no_such_path());
  } else {
    call.resource = core_.resources.find(group, version, parts[at]);
    if (parts.size() > at + 1) call.name = parts[at + 1];
    if (parts.size() > at + 2) call.subresource = parts[at + 2];
    if (parts.size() > at + 3) return fail(no_such_path());
    if (call.resource && call.resource->info.namespaced && !call.name.empty())
      return fail(no_such_path());
  }
  if (!call.resource) return fail(no_such_path());
  if (old_watch && !call.name.empty()) {
    // The old single-object watch is a watch of the collection pinned to the name.
    call.target.query.emplace_back("fieldSelector", "metadata.name=" + call.name);
    call.name.clear();
  }
  call.verb = verb_of(call.request, !call.name.empty(), watching);
  if (call.verb == "patch") call.patch = kube::patch_type_of(media_type(call.request));
  if (call.verb.empty() || call.request.method == "HEAD") return fail(method_not_allowed());
  if (!call.subresource.empty() && !call.resource->has_subresource(call.subresource)) {
    return fail(call.resource->custom() ? not_found(*call.resource, call.name) : no_such_path());
  }
  return {};
}

Result<Sight> Router::authorize_sight(const Call& call, audit::Record& record) const {
  if (has_summary(call)) {
    Attributes attributes = attributes_of(call);
    const bool whole = core_.authorizer->allowed(call.user, attributes);
    attributes.subresource = "summary";
    if (!whole && core_.authorizer->allowed(call.user, attributes, record.reason())) {
      record.set_decision(true);
      return Sight::kSummary;
    }
  }
  const auto allowed = authorize(call, record);
  if (!allowed) return fail(allowed.error());
  return Sight::kWhole;
}

Result<void> Router::authorize(const Call& call, audit::Record& record) const {
  Attributes attributes = attributes_of(call);
  const auto allowed = core_.authorizer->check(call.user, attributes, record.reason());
  record.set_decision(allowed.has_value());
  if (!allowed || !needs_create(call)) return allowed;
  attributes.verb = "create";
  const bool granted = core_.authorizer->allowed(call.user, attributes, record.reason());
  record.set_decision(granted);
  if (!granted) return fail(forbidden(*call.resource, call.name, ""));
  return {};
}

Result<void> Router::authorize_path(const Call& call, audit::Record& record) const {
  if (is_public(call.target.path)) {
    record.set_decision(true);
    return {};
  }
  Attributes attributes;
  attributes.verb = "get";
  attributes.path = call.target.path;
  const auto allowed = core_.authorizer->check(call.user, attributes, record.reason());
  record.set_decision(allowed.has_value());
  return allowed;
}

AnswersCall Router::answers_call(Call& call) const {
  AnswersCall out;
  out.user = call.user.name;
  out.groups = call.user.groups;
  out.method = call.request.method;
  out.target = call.target;
  out.body = std::move(call.request.body);
  out.may = [this, user = call.user](
                std::string_view verb, std::string_view resource, std::string_view ns) {
    Attributes attributes;
    attributes.verb = verb;
    attributes.group = kube::groups::kAnswers;
    attributes.resource = resource;
    attributes.ns = ns;
    return core_.authorizer->allowed(user, attributes);
  };
  return out;
}

Task<void> Router::handle(net::Request request, net::ResponseWriter& socket) {
  const Gate::Pass pass(core_.gate);
  Call call;
  call.request = std::move(request);
  if (core_.audit && core_.audit->full() && !call.request.peer.trusted_user) {
    const bool room = co_await core_.audit->wait_for_room();
    if (!room) {
      (void)co_await send(call, socket, error_response(audit_is_behind()));
      co_return;
    }
  }
  call.received = core_.env.now();
  audit::Trail writer(core_, call, socket);
  const auto known_user = identify(call, writer.record());
  if (!known_user) {
    (void)co_await send(call, writer, error_response(known_user.error()));
    co_return;
  }
  std::optional<Shares::Turn> turn;
  if (!call.request.peer.trusted_user) {
    const Shares::Asked asked = asked_by(call.request);
    if (auto now = core_.shares->goes_now(call.user.name, asked)) {
      turn.emplace(std::move(*now));
    } else if (auto later = co_await core_.shares->wait(call.user.name, asked)) {
      turn.emplace(std::move(*later));
    } else {
      (void)co_await send(call, writer, error_response(too_many_waiting()));
      co_return;
    }
  }
  if (is_our_own(call)) {
    turn.reset();  // nothing is stored, and it may take its time
    co_await serve_our_own(call, writer);
    co_return;
  }
  auto described = core_.discovery->answer(call.request, call.target);
  if (described) {
    writer.record().begin();
    const auto allowed = authorize_path(call, writer.record());
    if (allowed && call.request.method != "GET") {
      (void)co_await send(call, writer, error_response(method_not_allowed()));
      co_return;
    }
    (void)co_await send(
        call, writer, allowed ? std::move(*described) : error_response(allowed.error()));
    co_return;
  }
  const auto routed = route(call);
  writer.record().begin();
  if (!routed) {
    const bool known =
        call.target.segments[0] == "api" ||
        (call.target.segments.size() > 2 && core_.resources.has_group(call.target.segments[1]));
    (void)co_await send(call,
                        writer,
                        known || routed.error().code != Code::kNotFound
                            ? error_response(routed.error())
                            : text_response(404, "404 page not found\n"));
    co_return;
  }
  const auto sight = authorize_sight(call, writer.record());
  if (!sight) {
    (void)co_await send(call, writer, error_response(sight.error()));
    co_return;
  }
  if (is_stream(call.subresource)) turn.reset();  // open as long as somebody types
  co_await serve(call, *sight, writer);
}

bool Router::is_our_own(const Call& call) const {
  return call.target.path == kReads || call.target.path == kAudit ||
         (core_.options.answers && is_for_answers(call.target));
}

Task<void> Router::serve_our_own(Call& call, audit::Trail& writer) {
  writer.record().begin();
  if (call.target.path == kReads) {
    const std::string id(writer.record().id());
    auto answer = co_await read_many(call, id);
    (void)co_await send(call, writer, std::move(answer));
  } else if (call.target.path == kAudit) {
    const auto allowed = authorize_path(call, writer.record());
    (void)co_await send(call, writer, allowed ? read_audit(call) : error_response(allowed.error()));
  } else {
    auto answer = co_await core_.options.answers(answers_call(call));
    writer.record().set_decision(answer.status != http_status_of(Code::kForbidden));
    (void)co_await send(call, writer, std::move(answer));
  }
}

Task<void> Router::serve(Call& call, Sight sight, audit::Trail& writer) {
  if (is_stream(call.subresource) && (call.verb == "get" || call.verb == "create")) {
    net::EndingWriter ending(core_.env, writer);
    const Standing::Open open(*core_.standing, call.request, needed_by(call), ending);
    co_await stream_pod(core_, call, ending);
    co_return;
  }
  auto accepted = negotiate(call.request, false, call.name.empty());
  if (!accepted) {
    (void)co_await send(call, writer, error_response(accepted.error()));
    co_return;
  }
  accepted->pretty = net::on(call.target, "pretty");
  if (call.verb == "watch" && call.resource->has_verb("watch")) {
    count("WATCH", 200);
    net::EndingWriter ending(core_.env, writer);
    const Standing::Open open(*core_.standing, call.request, needed_by(call), ending);
    co_await watch_objects(core_, call, *accepted, ending);
    co_return;
  }
  std::optional<Shares::Long> turn;
  if (is_long(core_, call)) {
    auto begun = co_await core_.shares->begin_long(call.user.name);
    turn.emplace(std::move(begun));
  }
  auto response = co_await perform(call, *accepted);
  if (turn) turn->made();
  if (response && sight == Sight::kSummary)
    response = co_await summarized(core_, call, net::Response(std::move(*response)));
  // A refusal comes with the warnings of what was read before it.
  const bool refused = !response;
  if (refused && accepted->yaml)
    response = Reply(
        encode(*accepted, http_status_of(response.error().code), status_of(response.error())));
  else if (refused)
    response = Reply(error_response(response.error()));
  (void)co_await send(
      call, writer, refused ? with_warnings(std::move(*response), call) : std::move(*response));
}

Task<Result<Reply>> Router::perform(Call& call, Accepted accepted) {
  std::optional<Turns::First> first;
  if (can_wait(call)) {
    co_await core_.turns.wait();
  } else if (!is_read(call)) {
    first.emplace(core_.turns);
  }
  if (!call.in_process) co_await read_ahead(core_, call);
  auto reply = co_await dispatch(call, std::move(accepted));
  co_return reply;
}

net::Response Router::read_audit(const Call& call) const {
  if (call.request.method != "GET") return error_response(method_not_allowed());
  if (!core_.audit)
    return error_response(bad_request("this server keeps no audit log (--audit-log-path none)"));
  std::int64_t wanted = kAuditLines;
  if (const std::string_view given = call.target.get("limit"); !given.empty()) {
    wanted = parse_int(given).value_or(0);
    if (wanted < 1)
      return error_response(
          bad_request(fmt::format("limit: wanted a number from 1 on, found {}", quoted(given))));
  }
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  response.body = R"({"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[)" +
                  join(core_.audit->last(static_cast<std::size_t>(wanted)), ",") + "]}\n";
  return response;
}

Task<net::Response> Router::read_one(const Call& outer, const std::string& id, std::string target) {
  Call call;
  call.request.method = "GET";
  call.request.target = std::move(target);
  call.request.peer = outer.request.peer;
  for (const std::string_view name : {"User-Agent", "X-Forwarded-For"})
    call.request.headers.set(std::string(name), std::string(outer.request.headers.get(name)));
  call.request.headers.set("Audit-Id", id);
  call.user = outer.user;
  audit::Record record(core_, call);
  call.manager = outer.manager;
  auto parsed = net::parse_target(call.request.target);
  if (!parsed) co_return error_response(bad_request(parsed.error().message));
  call.target = std::move(*parsed);
  const auto routed = route(call);
  record.begin();
  Result<Reply> response = fail(Error{});
  const Result<Sight> sight =
      routed ? authorize_sight(call, record) : Result<Sight>(fail(routed.error()));
  if (!sight) {
    response = fail(sight.error());
  } else if (call.verb == "watch" || is_stream(call.subresource)) {
    response = fail(bad_request("a stream cannot be one of several reads"));
  } else {
    response = co_await dispatch(call, Accepted{});
    if (response && *sight == Sight::kSummary)
      response = co_await summarized(core_, call, net::Response(std::move(*response)));
  }
  net::Response answer =
      response ? net::Response(std::move(*response)) : error_response(response.error());
  record.set_answer(answer);
  co_return answer;
}

Task<net::Response> Router::read_many(const Call& call, const std::string& id) {
  if (call.request.method != "POST") co_return error_response(method_not_allowed());
  if (call.request.body.size() > kReadsBytesMax)
    co_return error_response(bad_request(fmt::format(
        "wanted at most {} bytes of targets, found {}", kReadsBytesMax, call.request.body.size())));
  const auto wanted = json::parse(call.request.body);
  if (!wanted || !wanted->is_array() || wanted->get_array().size() > kReadsMax) {
    co_return error_response(
        bad_request(fmt::format("wanted a JSON array of at most {} targets", kReadsMax)));
  }
  net::Response response;
  response.headers.set("Content-Type", "application/json");
  std::string body = "[";
  for (const json::Value& target : wanted->get_array()) {
    const net::Response one = co_await read_one(call, id, json::text(target));
    if (body.size() > 1) body += ',';
    body += fmt::format("{{\"status\":{},\"fields\":{},\"body\":",
                        one.status,
                        one.headers.has("Preference-Applied"));
    body += one.body.empty() ? "null" : one.body;
    body += '}';
  }
  response.body = std::move(body) + "]\n";
  co_return response;
}

Task<Result<Reply>> Router::dispatch(Call& call, Accepted accepted) {
  const Resource& resource = *call.resource;
  const std::string& sub = call.subresource;
  if (resource.info.group == kube::groups::kMetrics) return read_usage(core_, call);
  if (sub == "scale") {
    if (call.verb == "get") return get_scale(core_, call, accepted);
    if (call.verb == "update" || call.verb == "patch") return update_scale(core_, call, accepted);
    return ready(fail(method_not_allowed()));
  }
  if (call.verb == "create") {
    if (sub == "binding" || (resource.info.plural == "bindings" && resource.info.group.empty()))
      return bind_pod(core_, call, accepted);
    if (sub == "eviction") return evict_pod(core_, call, accepted);
    if (sub == "token") return create_token(core_, call, accepted);
    if (!sub.empty() || !call.name.empty()) return ready(fail(method_not_allowed()));
    if (resource.info.namespaced && call.ns.empty()) return ready(fail(method_not_allowed()));
    if (!resource.has_verb("create")) return ready(fail(method_not_allowed()));
    if (!resource.stored) return create_review(core_, call, accepted);
    return create_object(core_, call, accepted);
  }
  const bool view = sub.empty() || sub == "status" || sub == "resize" ||
                    sub == "ephemeralcontainers" || sub == "finalize" || sub == "approval";
  if (!view || !resource.stored) {
    if (resource.info.plural == "componentstatuses" && call.verb == "list") {
      return ready(json_response(200,
                                 json::Value{{"kind", "ComponentStatusList"},
                                             {"apiVersion", "v1"},
                                             {"metadata", json::Object()},
                                             {"items", json::Array()}}));
    }
    return ready(fail(method_not_allowed()));
  }
  if (!sub.empty() && sub == "finalize" && call.verb != "update")
    return ready(fail(method_not_allowed()));
  if (sub.empty() && !resource.has_verb(call.verb)) return ready(fail(method_not_allowed()));
  if (call.verb == "get") return get_object(core_, call, accepted);
  if (call.verb == "list") return list_objects(core_, call, accepted);
  if ((call.verb == "update" || call.verb == "patch") && call.name.empty())
    return ready(fail(method_not_allowed()));
  if (call.verb == "update") return update_object(core_, call, accepted);
  if (call.verb == "patch") return patch_object(core_, call, accepted);
  if (!sub.empty()) return ready(fail(method_not_allowed()));
  if (call.verb == "delete") return delete_object(core_, call, accepted);
  if (call.verb == "deletecollection") return delete_collection(core_, call);
  return ready(fail(method_not_allowed()));
}

}  // namespace muster::apiserver
