// One piece: a request's way through the portal, from the socket to who answers it.
#include "portal/portal.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "hived/config_map.h"
#include "net/http/listen_address.h"
#include "net/http/websocket.h"
#include "net/tls/tls.h"
#include "pai/people/throttle.h"
#include "portal/api/api.h"
#include "portal/api/decision.h"
#include "portal/files/files.h"
#include "portal/http/secure_writer.h"
#include "portal/live/hub.h"
#include "portal/session/streams.h"
#include "portal/topics/tenants.h"

namespace muster::portal {
namespace {

constexpr std::string_view kApi = "/api/portal/v1";
/// How many ports after the wanted one are tried.
constexpr int kPortsTried = 100;
/// How long a bearer token that was good is taken without asking again, and how long the rights of
/// somebody who signed in with one.
constexpr Duration kTokenKept = std::chrono::seconds(30);

std::string address_of(const net::Request& request) {
  const std::string& peer = request.peer.address;
  return peer.substr(0, peer.rfind(':'));
}

bool below(std::string_view path, std::string_view folder) {
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

bool is_rest_login(const net::Target& target) {
  return below(target.path, "/rest-server") && target.path.ends_with("/authn/basic/login");
}

/// What a request is about, if it changes something; else a deed without verb. Who it was is known
/// later, but for OpenPAI's API: there its token tells, and is believed only if it was good.
Deed deed_of(const net::Request& request, const net::Target& target) {
  Deed deed;
  std::string_view path = target.path;
  const bool changes =
      request.method != "GET" && request.method != "HEAD" && request.method != "OPTIONS";
  // Questions that need a body are no deeds.
  if (!changes || path.ends_with("check") || path.ends_with("/whatif")) return deed;
  deed.verb = request.method;
  deed.from = address_of(request);
  if (below(path, kApi)) path.remove_prefix(std::min(path.size(), kApi.size() + 1));
  deed.object = path;
  if (!below(target.path, "/rest-server")) return deed;
  const std::string_view header = request.headers.get("Authorization");
  const std::vector<std::string> parts = split(std::string(header), '.');
  if (parts.size() == 3) {
    const auto claims = json::parse(base64url_decode(parts[1]).value_or(""));
    if (claims) deed.user = json::text_at(*claims, "username");
  }
  if (is_rest_login(target)) {
    const auto body = json::parse(request.body);
    if (body) deed.user = json::text_at(*body, "username");
  }
  return deed;
}

}  // namespace

struct Portal::Impl {
  Impl(net::Loop& l, client::Client& client, client::Informers& i, Options o)
      : loop(l),
        options(std::move(o)),
        kube(client, options.sign),
        rights(l, kube, i),
        jobs(l, i),
        nodes(i),
        events(i),
        tally(l, jobs, nodes),
        sessions(l, client),
        files(options.listening.folder),
        informers(i),
        trail(l, options.trail_file),
        samples(l, sampled(), options.samples_file),
        simulations(l, options.simulator, options.simulations_folder),
        forecasts(l, options.outlook),
        starts(l, jobs, forecasts),
        world{l, kube, rights, jobs, nodes, events, tally, i, trail, forecasts, starts, options},
        hub(
            l,
            [this](User user, std::string topic, json::Value query) {
              return open_topic(world, std::move(user), std::move(topic), std::move(query));
            },
            [this](std::string session, User user) {
              return recheck(std::move(session), std::move(user));
            },
            files.build()),
        streams(l,
                [this](std::string session, User user) {
                  return recheck(std::move(session), std::move(user));
                }),
        gate(l) {
    sessions.on_end = [this](const std::string& id) {
      hub.end_session(id);
      streams.end_session(id);
    };
    jobs.on_change = nodes.on_change = events.on_change = forecasts.on_change =
        starts.on_change = [this] { hub.poke(); };
    events.on_warning = [this](const EventFacts& event) {
      jobs.warn({.uid = event.uid, .text = event.message, .at = event.at});
    };
  }

  net::Loop& loop;
  Options options;
  Kube kube;
  Rights rights;
  JobIndex jobs;
  Nodes nodes;
  Events events;
  Tally tally;
  Sessions sessions;
  Files files;
  client::Informers& informers;
  Trail trail;
  CheckLimit checks;
  Samples samples;
  Simulations simulations;
  Forecasts forecasts;
  Starts starts;
  World world;
  Hub hub;
  Streams streams;
  Gate gate;
  Site site;
  pai::Throttle throttle;  // of those who sign in with a token
  std::unique_ptr<net::Server> server;
  bool begun = false, following = false;
  struct KnownToken {
    User user;
    Duration at{};
  };
  std::map<std::string, KnownToken> tokens;     // by hash
  std::map<std::string, std::string> changing;  // user -> the session that changes them just now

  std::function<std::vector<TenantFacts>()> sampled() {
    if (!options.queues) return nullptr;
    return [this] {
      // What waits is summed up for those who look; here it is summed up for those who will.
      (void)tally.version();
      return tenants_of(world);
    };
  }

  /// From now on the cluster is followed.
  void follow() {
    if (std::exchange(following, true)) return;
    informers.get(client::resources::kNamespaces).start();
    informers.get(client::resources::kQueues).start();
    nodes.begin();
    jobs.begin();
    events.begin();
  }
  /// The first visitor.
  void begin() {
    if (std::exchange(begun, true)) return;
    follow();
    if (options.visited) options.visited();
  }
  /// Whoever was signed in before a restart comes back at once, and does not want to wait until a
  /// hundred thousand jobs have been read.
  Task<void> expect_visitors() {
    const Gate::Pass pass(gate);
    co_await sessions.load();
    if (!sessions.empty() && !gate.closed()) follow();
  }

  Result<void> listen();
  void name_hosts();
  Task<void> serve(net::Request request, net::ResponseWriter& plain);
  Task<void> route(net::Request request,
                   net::Target target,
                   net::ResponseWriter& writer,
                   Deed& deed);
  Task<Result<Visitor>> visitor_of(const net::Request& request);
  Task<Result<User>> user_of_bearer(std::string token);
  Task<Result<User>> user_now(std::string session, User user);
  Task<std::optional<User>> recheck(std::string session, User user);
  Task<void> serve_session(net::Request request, net::ResponseWriter& writer, Deed& deed);
  Task<void> sign_in(net::Request request, net::ResponseWriter& writer, Deed& deed);
  Task<void> sign_out(net::Request request, net::ResponseWriter& writer, Deed& deed);
  Task<Result<User>> user_of_login(const json::Value& login, const std::string& from, Time* ends);
  Task<json::Value> session_value(std::optional<User> user);
};

std::string program_version() { return MUSTER_VERSION; }

Portal::Portal(net::Loop& loop,
               client::Client& client,
               client::Informers& informers,
               Options options)
    : impl_(std::make_unique<Impl>(loop, client, informers, std::move(options))) {}

Portal::~Portal() = default;

Result<void> Portal::start() {
  impl_->name_hosts();
  const auto listening = impl_->listen();
  if (listening) impl_->samples.start();
  if (listening) impl_->loop.spawn(impl_->expect_visitors());
  return listening;
}

Task<void> Portal::stop() {
  impl_->jobs.stop();
  impl_->starts.stop();
  impl_->samples.stop();
  impl_->simulations.stop();
  co_await impl_->hub.stop();
  co_await impl_->forecasts.stop();
  if (impl_->server) co_await impl_->server->stop();
  impl_->gate.close();
  const bool empty = co_await impl_->gate.wait_empty(std::chrono::seconds(5));
  (void)empty;
}

std::string Portal::address() const {
  const std::string& where = impl_->options.listening.address;
  const std::string shown = where == "0.0.0.0" || where == "::" ? "127.0.0.1" : where;
  return fmt::format("{}://{}:{}{}/",
                     impl_->site.scheme(),
                     shown.find(':') != std::string::npos ? "[" + shown + "]" : shown,
                     impl_->server ? impl_->server->port() : 0,
                     impl_->site.prefix);
}

void Portal::user_changed(const std::string& user, bool ends) {
  impl_->rights.forget(user);
  if (!ends) return;
  impl_->streams.end_user(user);
  // Whoever changes their own password stays where they did it.
  std::string here;
  if (const auto found = impl_->changing.find(user); found != impl_->changing.end())
    here = found->second;
  impl_->sessions.forget_credential(here);
  impl_->loop.spawn(impl_->sessions.end_user(user, here));
}

void Portal::Impl::name_hosts() {
  const Listening& where = options.listening;
  site.tls = !is_loopback(where.address) && !where.plain_http;
  site.plain_public = !is_loopback(where.address) && where.plain_http;
  site.prefix = where.prefix;
  for (const char* name : {"localhost", "127.0.0.1", "[::1]"}) site.hosts.insert(name);
  site.hosts.insert(where.address.find(':') != std::string::npos
                        ? "[" + to_lower(where.address) + "]"
                        : to_lower(where.address));
  for (const std::vector<std::string>* list :
       {&where.hosts, &std::as_const(options).certificate_names}) {
    for (const std::string& name : *list) site.hosts.insert(host_name(name));
  }
}

Result<void> Portal::Impl::listen() {
  net::ServerOptions listening;
  listening.address = options.listening.address;
  listening.body_bytes_max = 2 * 1024 * 1024;
  listening.connections_max = 4096;
  if (site.tls) {
    listening.certificate_pem = options.certificate_pem;
    listening.key_pem = options.key_pem;
    if (listening.certificate_pem.empty())
      return fail(
          Code::kBadRequest,
          fmt::format(
              "--portal {}:{}: the portal has a certificate for this machine only; add --portal-plain-http to serve it without TLS",
              options.listening.address,
              options.listening.port));
  }
  const auto handler = [this](net::Request request, net::ResponseWriter& writer) {
    return serve(std::move(request), writer);
  };
  const bool several = options.listening.any_port && options.listening.port != 0;
  const int tries = several ? kPortsTried + 1 : 1;
  Error last;
  for (int i = 0; i < tries; ++i) {
    net::ServerOptions here = listening;
    // The last resort is any port that the system has.
    const int port = i < kPortsTried ? options.listening.port + i : 0;
    here.port = static_cast<std::uint16_t>(port < 65536 ? port : 0);
    auto made = net::listen(loop, std::move(here), handler);
    if (made) {
      server = std::move(*made);
      return {};
    }
    last = made.error();
  }
  last.message = fmt::format(
      "cannot serve the portal at {}:{}: {}; choose another with --portal ADDRESS:PORT, or --portal none",
      options.listening.address,
      options.listening.port,
      last.message);
  return fail(std::move(last));
}

Task<void> Portal::Impl::serve(net::Request request, net::ResponseWriter& plain) {
  const Gate::Pass pass(gate);
  SecureWriter writer(plain);
  if (!host_accepted(site, request)) {
    co_await answer(
        writer,
        error_answer(
            421,
            "MisdirectedRequest",
            fmt::format(
                "this portal does not answer to the name \"{}\"; start it with --portal-host NAME to allow it",
                host_name(request.headers.get("Host")).substr(0, 100))));
    co_return;
  }
  if (!site.prefix.empty()) {
    if (!below(request.target.substr(0, request.target.find('?')), site.prefix)) {
      co_await answer(
          writer, error_answer(404, "NotFound", fmt::format("the portal is at {}/", site.prefix)));
      co_return;
    }
    request.target = request.target.substr(site.prefix.size());
    if (!request.target.starts_with('/')) request.target = "/" + request.target;
  }
  // The id of a job is one segment of the path, slashes and all.
  if (request.target.starts_with(kApi)) {
    const std::size_t mark = std::min(request.target.find('?'), request.target.size());
    const std::string path = request.target.substr(0, mark);
    request.target =
        replace_all(replace_all(path, "%2F", "/"), "%2f", "/") + request.target.substr(mark);
  }
  auto target = net::parse_target(request.target);
  if (!target) {
    co_await answer_error(writer, target.error());
    co_return;
  }
  Deed deed = deed_of(request, *target);
  const bool signs_in = is_rest_login(*target);
  co_await route(std::move(request), std::move(*target), writer, deed);
  if (deed.verb.empty()) co_return;
  deed.code = writer.status();
  // Nobody is who they say they are until they have shown it.
  if (deed.code == 401 || (signs_in && deed.code >= 300)) deed.user.clear();
  deed.text = writer.said();
  trail.note(deed);
}

/// Without a kubeconfig kubectl asks port 8080 of this machine, which is where the portal is.
bool asks_for_kubernetes(std::string_view path) {
  return below(path, "/api") || below(path, "/apis") || below(path, "/openapi");
}

/// Of what a server says before kubectl knows its kinds, it shows only text, and only with some codes.
net::Response not_kubernetes() {
  net::Response out = json_answer(
      406,
      "this is the portal, not the API server; kubectl comes here when it has no kubeconfig: export "
      "KUBECONFIG as \"muster up\" says\n");
  out.headers.set("Content-Type", "text/plain; charset=utf-8");
  return out;
}

/// A table of paths: who answers each, and what the visitor must have shown.
Task<void> Portal::Impl::route(net::Request request,
                               net::Target target,
                               net::ResponseWriter& writer,
                               Deed& deed) {
  const std::string& path = target.path;
  if (below(path, "/rest-server")) {
    if (options.rest)
      co_await options.rest(std::move(request), writer);
    else
      co_await answer(writer, error_answer(404, "NotFound", "this server has no OpenPAI REST API"));
    co_return;
  }
  const bool api = below(path, kApi), in_kube = below(path, "/kube");
  if (!api && asks_for_kubernetes(path)) {
    co_await answer(writer, not_kubernetes());
    co_return;
  }
  if (!api && !in_kube) {
    if (request.method != "GET" && request.method != "HEAD") {
      co_await answer(writer, error_answer(405, "MethodNotAllowed", "pages are read with GET"));
      co_return;
    }
    begin();
    if (const auto page = openpai_page(target);
        page && !(path == "/index.html" && !target.has("from")))
      co_await answer(writer, redirect(site.prefix + *page));
    else
      co_await answer(writer, files.answer(request, target));
    co_return;
  }
  begin();
  co_await sessions.load();
  const bool with_cookie =
      !cookie_of(request, site.cookie()).empty() && !request.headers.has("Authorization");
  const bool socket = net::wants_websocket(request);
  const bool signs_in = path == std::string(kApi) + "/session" && request.method == "POST";
  Result<void> allowed;
  if (socket) allowed = check_socket_origin(site, request, with_cookie);
  // Whoever signs in has no cookie yet: a page of another site could sign somebody in as somebody
  // else.
  else if (with_cookie ||
           (signs_in && (request.headers.has("Origin") || request.headers.has("Sec-Fetch-Site"))))
    allowed = check_origin(site, request);
  if (!allowed) {
    co_await answer_error(writer, allowed.error());
    co_return;
  }
  if (!in_kube && !acceptable_body(request)) {
    co_await answer(
        writer,
        error_answer(
            415, "UnsupportedMediaType", "wanted a body of type application/json or text/yaml"));
    co_return;
  }
  if (path == std::string(kApi) + "/session") {
    co_await serve_session(std::move(request), writer, deed);
    co_return;
  }
  auto visitor = co_await visitor_of(request);
  if (!visitor) {
    co_await answer_error(writer, visitor.error());
    co_return;
  }
  deed.user = visitor->user.name;
  net::EndingWriter ending(loop, writer);
  const Streams::Open open(streams, visitor->user, visitor->session, ending);
  if (in_kube) {
    co_await serve_kube(world, std::move(*visitor), std::move(request), ending);
    co_return;
  }
  if (socket && !visitor->session.empty() && hub.sockets_of(visitor->session) >= Hub::kSocketsMax) {
    co_await answer(
        writer,
        error_answer(429,
                     "TooManyRequests",
                     fmt::format("a session has at most {} sockets", Hub::kSocketsMax)));
    co_return;
  }
  std::vector<std::string> parts(target.segments.begin() + 3, target.segments.end());
  const bool people = !parts.empty() && parts[0] == "pai" && request.method != "GET";
  const std::string user = visitor->user.name, session = visitor->session;
  if (people && !session.empty()) changing[user] = session;
  // Tabs are the hub's to end: it says why.
  const bool tab = !parts.empty() && parts[0] == "live";
  ApiCall call{std::move(request),
               std::move(target),
               std::move(parts),
               std::move(*visitor),
               tab ? writer : ending};
  co_await serve_api({world, sessions, hub, site, samples, checks, simulations}, std::move(call));
  if (people) changing.erase(user);
}

Task<Result<Visitor>> Portal::Impl::visitor_of(const net::Request& request) {
  const std::string_view header = request.headers.get("Authorization");
  if (!header.empty()) {
    if (header.size() < 8 || to_lower(header.substr(0, 7)) != "bearer ")
      co_return fail(Code::kUnauthorized, "wanted 'Authorization: Bearer TOKEN'");
    auto user = co_await user_of_bearer(std::string(trim(header.substr(7))));
    if (!user) co_return fail(user.error());
    co_return Visitor{std::move(*user), ""};
  }
  const Session* session = sessions.find(cookie_of(request, site.cookie()));
  if (session == nullptr)
    co_return fail(Code::kUnauthorized, "nobody is signed in, or the session has ended");
  const std::string id = session->id;
  auto user = co_await user_now(id, session->user);
  if (!user && user.error().code == Code::kNotFound) {
    co_await sessions.end(id);
    co_return fail(Code::kUnauthorized, "the account that signed in is gone");
  }
  if (!user && user.error().code == Code::kExpired) {
    co_await sessions.end(id);
    co_return fail(Code::kUnauthorized, user.error().message);
  }
  if (!user) co_return fail(user.error());
  co_return Visitor{std::move(*user), id};
}

Task<Result<User>> Portal::Impl::user_of_bearer(std::string token) {
  const std::string hash = net::sha256(token);
  if (const auto known = tokens.find(hash);
      known != tokens.end() && loop.monotonic() - known->second.at < kTokenKept)
    co_return known->second.user;
  auto user = co_await kube.user_of_token(std::move(token));
  if (!user) co_return user;
  if (tokens.size() > 4096) tokens.clear();
  tokens[hash] = {*user, loop.monotonic()};
  co_return user;
}

/// What was taken from somebody counts at once, not when their session ends.
Task<Result<User>> Portal::Impl::user_now(std::string session, User user) {
  if (user.openpai && !options.look_up) co_return user;
  const Session* known = sessions.by_id(session);
  if (!user.openpai && known != nullptr && known->checked &&
      loop.now() - known->checked < kTokenKept)
    co_return user;
  Result<User> now = user;
  if (user.openpai)
    now = co_await options.look_up(user.name);
  else
    now = co_await kube.user_now(user);
  // Also a password that was changed while nobody here was told: before the first visit, or while
  // another process ran.
  if (now && !user.credential.empty() && now->credential != user.credential)
    co_return fail(Code::kExpired, "the password has been changed; sign in again");
  if (now && !session.empty()) sessions.set_user(session, *now);
  co_return now;
}

Task<std::optional<User>> Portal::Impl::recheck(std::string session, User user) {
  if (!session.empty() && sessions.by_id(session) == nullptr) co_return std::nullopt;
  auto now = co_await user_now(std::move(session), std::move(user));
  if (!now) co_return std::nullopt;
  co_return *now;
}

Task<void> Portal::Impl::serve_session(net::Request request,
                                       net::ResponseWriter& writer,
                                       Deed& deed) {
  if (request.method == "POST") {
    co_await sign_in(std::move(request), writer, deed);
  } else if (request.method == "DELETE") {
    co_await sign_out(std::move(request), writer, deed);
  } else if (request.method == "GET" || request.method == "HEAD") {
    auto visitor = co_await visitor_of(request);
    std::optional<User> user;
    if (visitor) user = visitor->user;
    auto value = co_await session_value(std::move(user));
    co_await answer_json(writer, std::move(value));
  } else {
    co_await answer(writer, error_answer(405, "MethodNotAllowed", "wanted GET, POST or DELETE"));
  }
}

Task<json::Value> Portal::Impl::session_value(std::optional<User> user) {
  json::Array groups, vcs, features, namespaces;
  json::Object value{{"user", nullptr},
                     {"admin", false},
                     {"cluster", options.cluster},
                     {"version", options.version},
                     {"build", files.build()},
                     {"plainHttp", site.plain_public},
                     {"defaultPassword", false}};
  if (user && user->admin && user->openpai && options.known_password) {
    const bool known = co_await options.known_password(user->name);
    value["defaultPassword"] = known;
  }
  for (const char* one : {"exec", "log", "views", "check"}) features.push_back(json::Value(one));
  const bool decides = co_await decides_beforehand(kube.own());
  if (decides) features.push_back(json::Value("decide"));
  if (decides && forecasts.offered()) {
    features.push_back(json::Value("forecast"));
    features.push_back(json::Value("whatif"));
  }
  if (simulations.offered()) features.push_back(json::Value("sims"));
  if (options.rest) features.push_back(json::Value("rest"));
  if (options.sign_in) features.push_back(json::Value("password"));
  if (options.rest_call && user && user->openpai) features.push_back(json::Value("tokens"));
  if (options.queues) features.push_back(json::Value("usage"));
  if (user && user->admin) features.push_back(json::Value("audit"));
  if (user && user->admin && !options.policy_file.empty())
    features.push_back(json::Value("policy"));
  const auto cells = co_await kube.own().get(
      client::resources::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
  if (cells) features.push_back(json::Value("cells"));
  if (cells || (user && user->admin)) features.push_back(json::Value("hived"));
  if (user) {
    value["user"] = user->name;
    value["admin"] = user->admin;
    for (const std::string& group : user->groups) groups.push_back(json::Value(group));
    for (const std::string& vc : user->vcs) vcs.push_back(json::Value(vc));
    const VisiblePtr visible = co_await rights.visible(*user);
    namespaces.push_back(json::Value("default"));
    if (!visible->changes_all) {
      namespaces.clear();
      for (const std::string& ns : visible->changes) namespaces.push_back(json::Value(ns));
    }
  }
  value["groups"] = std::move(groups);
  value["vcs"] = std::move(vcs);
  value["features"] = std::move(features);
  value["namespaces"] = std::move(namespaces);
  co_return value;
}

Task<Result<User>> Portal::Impl::user_of_login(const json::Value& login,
                                               const std::string& from,
                                               Time* ends) {
  const std::string token = json::text_at(login, "token");
  if (!token.empty()) {
    if (const Duration wait = throttle.ask(from, from, loop.monotonic()); wait > Duration::zero()) {
      Error error{.code = Code::kTooManyRequests, .message = "too many tries; wait a while"};
      error.retry_after_s = static_cast<int>(wait / std::chrono::seconds(1)) + 1;
      co_return fail(std::move(error));
    }
    auto user = co_await kube.user_of_token(token);
    if (!user)
      throttle.failed(from, from, loop.monotonic());
    else
      throttle.succeeded(from, from);
    // A session of a token ends no later than the token does.
    const std::vector<std::string> parts = split(token, '.');
    if (parts.size() == 3) {
      const auto claims = json::parse(base64url_decode(parts[1]).value_or(""));
      if (claims && json::int_at(*claims, "exp") > 0)
        *ends = Time::from_seconds(json::int_at(*claims, "exp"));
    }
    co_return user;
  }
  if (!json::at(login, "user").is_string() || !json::at(login, "password").is_string())
    co_return fail(Code::kBadRequest, "wanted {user, password} or {token}");
  if (!options.sign_in)
    co_return fail(Code::kBadRequest,
                   "this server knows no passwords; sign in with a token of the cluster");
  auto user = co_await options.sign_in(
      json::text_at(login, "user"), json::text_at(login, "password"), from);
  co_return user;
}

Task<void> Portal::Impl::sign_in(net::Request request, net::ResponseWriter& writer, Deed& deed) {
  const auto login = json::parse(request.body);
  if (!login || !login->is_object()) {
    co_await answer(
        writer,
        error_answer(400, "BadRequest", "wanted a JSON object {user, password} or {token}"));
    co_return;
  }
  const std::string from = address_of(request);
  Time ends;
  auto user = co_await user_of_login(*login, from, &ends);
  if (!user) {
    net::Response refused = error_answer(user.error());
    if (user.error().code == Code::kUnauthorized)
      refused = error_answer(401,
                             "LoginFailed",
                             json::at(*login, "token").is_string() ? user.error().message
                                                                   : "wrong user name or password");
    co_await answer(writer, std::move(refused));
    co_return;
  }
  deed.user = user->name;
  // Whoever signs in anew leaves the session before.
  if (const Session* before = sessions.find(cookie_of(request, site.cookie())); before != nullptr)
    co_await sessions.end(before->id);
  auto opened =
      co_await sessions.open(*user, from, std::string(request.headers.get("User-Agent")), ends);
  if (!opened) {
    co_await answer_error(writer, opened.error());
    co_return;
  }
  auto value = co_await session_value(std::move(*user));
  net::Response response = json_answer(200, json::dump(value) + "\n");
  response.headers.set(
      "Set-Cookie",
      set_cookie(site, opened->cookie, Sessions::kWholeMax / std::chrono::seconds(1)));
  co_await answer(writer, std::move(response));
}

Task<void> Portal::Impl::sign_out(net::Request request, net::ResponseWriter& writer, Deed& deed) {
  if (const Session* session = sessions.find(cookie_of(request, site.cookie()));
      session != nullptr) {
    deed.user = session->user.name;
    co_await sessions.end(session->id);
  }
  net::Response response = json_answer(200, "{}\n");
  response.headers.set("Set-Cookie", set_cookie(site, "", 0));
  co_await answer(writer, std::move(response));
}

Result<std::optional<Listening>> read_listening(const std::string& portal,
                                                bool plain_http,
                                                const std::string& hosts,
                                                const std::string& prefix,
                                                const std::string& folder) {
  if (portal == "none") return std::optional<Listening>();
  const auto where = net::parse_listen("--portal", portal);
  if (!where) return fail(where.error());
  Listening listening;
  listening.address = where->address;
  listening.port = where->port;
  listening.plain_http = plain_http;
  listening.hosts = split_nonempty(hosts, ',');
  listening.prefix = prefix;
  listening.folder = folder;
  while (listening.prefix.ends_with('/')) listening.prefix.pop_back();
  if (!listening.prefix.empty() && !listening.prefix.starts_with('/'))
    return fail(Code::kBadRequest,
                fmt::format("--portal-prefix {}: wanted a path, e.g. /muster", prefix));
  return std::optional<Listening>(std::move(listening));
}

}  // namespace muster::portal
