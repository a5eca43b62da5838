#include "main/aggregated.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

#include "answers/http.h"
#include "base/files.h"
#include "base/log.h"
#include "base/strings.h"
#include "client/access_review.h"
#include "kube/names.h"
#include "net/http/listen_address.h"

namespace muster {
namespace {

/// How often the files and the ConfigMap are looked at, and how soon again after a failure.
constexpr Duration kLook = std::chrono::seconds(10);
constexpr Duration kAgain = std::chrono::seconds(1);
/// What somebody may do is remembered for so long.
constexpr Duration kRemember = std::chrono::seconds(10);
constexpr std::size_t kRememberMax = 20'000;
/// An answer that shows rights to be missing is made again with them, so often at most.
constexpr int kRounds = 3;
constexpr int kTogether = 32;
constexpr const char* kConfigMap = "extension-apiserver-authentication";

net::Response status_answer(int code, std::string_view reason, std::string message) {
  net::Response response;
  response.status = code;
  response.headers.set("Content-Type", "application/json");
  if (code == 503) response.headers.set("Retry-After", "1");
  response.body = json::dump(json::Object{{"kind", "Status"},
                                          {"apiVersion", "v1"},
                                          {"metadata", json::Object()},
                                          {"status", "Failure"},
                                          {"message", std::move(message)},
                                          {"reason", reason},
                                          {"code", code}});
  return response;
}

bool same_header(std::string_view a, std::string_view b) { return to_lower(a) == to_lower(b); }

std::vector<std::string> words_in(const json::Value& map, std::string_view key) {
  std::vector<std::string> out;
  const auto list = json::parse(json::string_at(map, "data", key));
  if (!list || !list->is_array()) return out;
  for (const json::Value& word : list->get_array()) out.emplace_back(json::as_string(word));
  return out;
}

}  // namespace

std::vector<command::Flag> aggregated_flags() {
  using command::Completes;
  return {
      {.name = "answers-listen",
       .help =
           "serve answers.muster.dev at this address to the API server, for deploy/overlays/answers (docs/answers.md)",
       .value_name = "ADDRESS:PORT"},
      {.name = "answers-certificate",
       .help = "the certificate to serve them with, in PEM",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
      {.name = "answers-key",
       .help = "its key in PEM",
       .completes = Completes::kFiles,
       .value_name = "FILE"},
  };
}

AggregatedOptions aggregated_options(const command::Values& values) {
  AggregatedOptions options;
  options.listen = values.text("answers-listen");
  options.certificate_file = values.text("answers-certificate");
  options.key_file = values.text("answers-key");
  if (const char* own = std::getenv("POD_IP")) options.address = own;
  return options;
}

std::string FrontUser::key() const {
  std::string out = name + "\x1f" + uid + "\x1f" + join(groups, "\x1f");
  for (const auto& [key, values] : extra) out += "\x1e" + key + "\x1f" + join(values, "\x1f");
  return out;
}

Result<FrontProxy> parse_front_proxy(const json::Value& config_map) {
  FrontProxy proxy;
  proxy.ca_pem = json::string_at(config_map, "data", "requestheader-client-ca-file");
  if (proxy.ca_pem.empty())
    return fail(
        Code::kInvalid,
        "the API server does not pass on who asks: it needs --requestheader-client-ca-file and --proxy-client-cert-file");
  proxy.names = words_in(config_map, "requestheader-allowed-names");
  proxy.user_headers = words_in(config_map, "requestheader-username-headers");
  proxy.group_headers = words_in(config_map, "requestheader-group-headers");
  proxy.uid_headers = words_in(config_map, "requestheader-uid-headers");
  proxy.extra_prefixes = words_in(config_map, "requestheader-extra-headers-prefix");
  return proxy;
}

std::optional<FrontUser> front_user(const FrontProxy& proxy, const net::Request& request) {
  if (!request.peer.cert_user) return std::nullopt;
  const auto& names = proxy.names;
  if (!names.empty() &&
      std::find(names.begin(), names.end(), *request.peer.cert_user) == names.end())
    return std::nullopt;
  FrontUser user;
  const auto among = [](const std::vector<std::string>& headers, std::string_view name) {
    return std::any_of(headers.begin(), headers.end(), [&](const std::string& header) {
      return same_header(header, name);
    });
  };
  for (const auto& [name, value] : request.headers.fields()) {
    if (among(proxy.user_headers, name) && user.name.empty()) user.name = value;
    if (among(proxy.uid_headers, name)) user.uid = value;
    if (among(proxy.group_headers, name)) user.groups.push_back(value);
    for (const std::string& prefix : proxy.extra_prefixes) {
      if (name.size() > prefix.size() &&
          same_header(std::string_view(name).substr(0, prefix.size()), prefix))
        user.extra[percent_decode(to_lower(name.substr(prefix.size())), false).value_or("")]
            .push_back(value);
    }
  }
  if (user.name.empty()) return std::nullopt;
  return user;
}

Aggregated::Aggregated(net::Loop& loop,
                       client::Client& client,
                       AggregatedOptions options,
                       std::function<Answers*()> answers)
    : loop_(loop),
      client_(client),
      options_(std::move(options)),
      answers_(std::move(answers)),
      wake_(loop.make_signal()),
      gate_(loop) {}

Result<Aggregated::Pair> Aggregated::read_pair() const {
  auto certificate = read_file(options_.certificate_file);
  if (!certificate)
    return fail(Code::kBadRequest, "--answers-certificate: " + certificate.error().message);
  auto key = read_file(options_.key_file);
  if (!key) return fail(Code::kBadRequest, "--answers-key: " + key.error().message);
  return Pair{std::move(*certificate), std::move(*key)};
}

Result<void> Aggregated::start() {
  auto where = net::parse_listen("--answers-listen", options_.listen);
  if (!where) return fail(where.error());
  where_ = std::move(*where);
  auto pair = read_pair();
  if (!pair) return fail(pair.error());
  shown_ = std::move(*pair);
  loop_.spawn(keep());
  return {};
}

void Aggregated::lead() {
  leads_ = true;
  wake_->notify();
}

/// Who is trusted, which certificate is shown and where the Service leads: each may change.
Task<void> Aggregated::keep() {
  const Gate::Pass pass(gate_);
  const Gate::Sleeper sleeper(gate_, *wake_);
  std::string said;
  while (!gate_.closed()) {
    const auto done = co_await look();
    if (!done && done.error().message != said)
      log::warn("main", "answers are not served: {}", done.error().message);
    said = done ? "" : done.error().message;
    if (gate_.closed()) break;
    (void)co_await wake_->wait(done ? kLook : kAgain);
  }
}

Task<Result<void>> Aggregated::look() {
  const auto map = co_await client_.get(client::resources::kConfigMaps, "kube-system", kConfigMap);
  if (!map) co_return fail(map.error());
  auto proxy = parse_front_proxy(*map);
  if (!proxy) co_return fail(proxy.error());
  if (!server_ || !(*proxy == proxy_)) {
    if (server_) co_await server_->stop();
    server_.reset();
    if (gate_.closed()) co_return Result<void>();
    const auto listening = listen(std::move(*proxy));
    if (!listening) co_return listening;
  }
  // The kubelet replaces the files of a Secret that changed.
  if (auto pair = read_pair(); pair && *pair != shown_) {
    const auto taken = net::set_certificate(*server_, pair->certificate, pair->key);
    if (!taken) co_return taken;
    shown_ = std::move(*pair);
    log::info("main", "answers are served with the new certificate");
  }
  if (leads_ && !endpoint_written_) {
    const auto written = co_await write_endpoint();
    co_return written;
  }
  co_return Result<void>();
}

Result<void> Aggregated::listen(FrontProxy proxy) {
  net::ServerOptions where = where_;
  where.certificate_pem = shown_.certificate;
  where.key_pem = shown_.key;
  where.client_ca_pem = proxy.ca_pem;
  auto server = net::listen(
      loop_, std::move(where), [this](net::Request request, net::ResponseWriter& writer) {
        return handle(std::move(request), writer);
      });
  if (!server) return fail(server.error());
  server_ = std::move(*server);
  proxy_ = std::move(proxy);
  log::info("main", "answers are served at port {}", server_->port());
  return {};
}

/// The Service leads to whoever leads: it has this one address.
Task<Result<void>> Aggregated::write_endpoint() {
  const std::string address = options_.address.empty() ? where_.address : options_.address;
  json::Value slice =
      json::Object{{"apiVersion", client::resources::kEndpointSlices.api_version()},
                   {"kind", client::resources::kEndpointSlices.kind},
                   {"metadata",
                    {{"name", options_.service},
                     {"namespace", options_.ns},
                     {"labels",
                      {{kube::names::kubernetes::kServiceName, options_.service},
                       {kube::names::kubernetes::kSliceManager, "muster"}}}}},
                   {"addressType", address.find(':') == std::string::npos ? "IPv4" : "IPv6"},
                   {"endpoints",
                    json::Array{json::Object{{"addresses", json::Array{json::Value(address)}},
                                             {"conditions", {{"ready", true}}}}}},
                   {"ports",
                    json::Array{json::Object{
                        {"name", "answers"}, {"protocol", "TCP"}, {"port", server_->port()}}}}};
  auto written = co_await client_.patch(client::resources::kEndpointSlices,
                                        options_.ns,
                                        options_.service,
                                        "",
                                        client::PatchType::kMerge,
                                        slice);
  if (!written && written.error().code == Code::kNotFound)
    written = co_await client_.create(client::resources::kEndpointSlices, options_.ns, slice);
  if (!written) co_return fail(written.error());
  endpoint_written_ = true;
  log::info(
      "main", "{}/{} leads to {}:{}", options_.ns, options_.service, address, server_->port());
  co_return Result<void>();
}

Task<void> Aggregated::stop() {
  gate_.close();
  wake_->notify();
  if (server_) co_await server_->stop();
  (void)co_await gate_.wait_empty(std::chrono::seconds(5));
}

Task<void> Aggregated::handle(net::Request request, net::ResponseWriter& writer) {
  const Gate::Pass pass(gate_);
  const auto user = front_user(proxy_, request);
  net::Response response;
  if (!user) {
    response = status_answer(401, "Unauthorized", "only the API server may ask here");
  } else if (answers_() == nullptr) {
    response =
        status_answer(503, "ServiceUnavailable", "this replica is on standby; another one answers");
  } else {
    response = co_await answer(*user, std::move(request));
  }
  (void)co_await writer.send(std::move(response));
}

/// Handlers ask for rights and cannot wait for them: what is not known counts as refused, is asked
/// of the cluster, and the answer is made again.
Task<net::Response> Aggregated::answer(FrontUser user, net::Request request) {
  auto target = net::parse_target(request.target);
  if (!target) co_return answers::error_answer(target.error());
  const std::string who = user.key();
  const auto missing = std::make_shared<std::set<Right>>();
  if (request.method == "POST") {
    // A question that takes long is not put twice, so the rights that it may need are asked first.
    std::set<Right> first{{"*", "whatifs", ""}, {"create", "whatifs", ""}, {"get", "records", ""}};
    if (target->segments.size() > 5) first.insert({"create", "checks", target->segments[4]});
    co_await ask(user, std::move(first));
    if (!known(who, {"get", "records", ""}).value_or(false)) {
      std::set<Right> each;
      if (Answers* answers = answers_()) {
        for (const std::string& ns : answers->namespaces()) each.insert({"get", "records", ns});
      }
      co_await ask(user, std::move(each));
    }
  }
  net::Response response;
  for (int round = 0; round < kRounds; ++round) {
    Answers* answers = answers_();
    if (answers == nullptr)
      co_return status_answer(503, "ServiceUnavailable", "this replica no longer leads");
    missing->clear();
    apiserver::AnswersCall call;
    call.user = user.name;
    call.groups = user.groups;
    call.method = request.method;
    call.target = *target;
    call.body = request.body;
    call.may = [this, who, missing](
                   std::string_view verb, std::string_view resource, std::string_view ns) {
      const Right right{std::string(verb), std::string(resource), std::string(ns)};
      const Right everywhere{right.verb, right.resource, ""};
      if (known(who, everywhere).value_or(false)) return true;
      const auto found = known(who, right);
      if (!found) missing->insert({right, everywhere});
      return found.value_or(false);
    };
    response = co_await answers->answer(std::move(call));
    if (missing->empty() || (request.method == "POST" && response.status < 300)) break;
    co_await ask(user, *missing);
  }
  co_return response;
}

std::optional<bool> Aggregated::known(const std::string& user, const Right& right) {
  const auto found = known_.find({user, right});
  if (found == known_.end() || loop_.monotonic() - found->second.at > kRemember)
    return std::nullopt;
  return found->second.allowed;
}

Task<void> Aggregated::ask(FrontUser user, std::set<Right> rights) {
  const std::string who = user.key();
  std::erase_if(rights, [&](const Right& right) { return known(who, right).has_value(); });
  if (known_.size() + rights.size() > kRememberMax) known_.clear();
  int under_way = 0;
  const std::shared_ptr<Signal> one_done = loop_.make_signal();
  for (const Right& right : rights) {
    while (under_way >= kTogether) (void)co_await one_done->wait(Duration::zero());
    ++under_way;
    loop_.spawn(
        [](Aggregated& self, FrontUser asker, Right asked, int& open, std::shared_ptr<Signal> done)
            -> Task<void> {
          const Gate::Pass pass(self.gate_);
          const bool allowed = co_await self.review(asker, asked);
          self.known_[{asker.key(), asked}] = {allowed, self.loop_.monotonic()};
          --open;
          done->notify();
        }(*this, user, right, under_way, one_done));
  }
  while (under_way > 0) (void)co_await one_done->wait(Duration::zero());
}

Task<bool> Aggregated::review(FrontUser user, Right right) {
  json::Array groups;
  for (const std::string& group : user.groups) groups.push_back(json::Value(group));
  json::Object what{{"verb", right.verb},
                    {"group", kube::groups::kAnswers},
                    {"version", "v1"},
                    {"resource", right.resource}};
  if (!right.ns.empty()) what["namespace"] = right.ns;
  json::Object spec{
      {"user", user.name}, {"groups", std::move(groups)}, {"resourceAttributes", std::move(what)}};
  if (!user.uid.empty()) spec["uid"] = user.uid;
  json::Object extra;
  for (const auto& [key, values] : user.extra) {
    json::Array list;
    for (const std::string& value : values) list.push_back(json::Value(value));
    extra[key] = std::move(list);
  }
  if (!extra.empty()) spec["extra"] = std::move(extra);
  const auto allowed = co_await client::review_access(client_, std::move(spec));
  co_return allowed.value_or(false);
}

}  // namespace muster
