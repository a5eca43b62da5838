#include "apiserver/audit/record.h"

#include "apiserver/audit/log.h"
#include "apiserver/rest/negotiate.h"
#include "base/strings.h"
#include "kube/security/names.h"

namespace muster::apiserver::audit {
namespace {

/// A longer body is left out of its line.
constexpr std::size_t kBodyMax = 1 << 20;
/// What a client may say of itself; longer is cut.
constexpr std::size_t kTextMax = 4096;

std::string_view cut(std::string_view text) { return text.substr(0, kTextMax); }

/// Ids that clients send end up in lines of others' tools.
bool plain(std::string_view id) {
  return !id.empty() && id.size() <= Id::kMax &&
         id.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

}  // namespace

Record::Record(Core& core, const Call& call) : core_(core), log_(core.audit.get()), call_(call) {
  if (log_ == nullptr) return;
  received_ = call.received ? call.received : core.env.now();
  // Components of this process do not look at it, and most of what they ask is not written down.
  if (call.in_process || call.request.peer.trusted_user) return;
  const std::string_view given = call.request.headers.get("Audit-Id");
  if (plain(given))
    id_.set(given);
  else
    id_.draw();
}

Record::~Record() {
  if (log_ == nullptr) return;
  begin();
  if (verdict_.writes(Stage::kResponseComplete)) add(Stage::kResponseComplete, std::move(bodies_));
}

void Record::set_asker(const User& user) {
  if (log_ != nullptr) asker_ = user;
}

void Record::begin() {
  if (log_ == nullptr || begun_) return;
  begun_ = true;
  const bool resource = call_.resource != nullptr;
  verb_ = resource ? call_.verb : to_lower(call_.request.method);
  Request request;
  const User& user = asker_ ? *asker_ : call_.user;
  request.user = user.name;
  request.groups = &user.groups;
  request.verb = verb_;
  request.path = call_.target.path;
  if (resource) {
    request.group = call_.resource->info.group;
    request.resource = call_.resource->info.plural;
    request.subresource = call_.subresource;
    request.name = call_.name;
    request.ns = call_.ns;
    secret_ = holds_secrets(request.group, request.resource, request.subresource);
  }
  verdict_ = log_->policy().judge(request);
  if (!wanted()) return;
  if (id_.empty()) id_.draw();
  if (secret_) verdict_.level = Level::kMetadata;
  if (resource && verdict_.level >= Level::kRequest) keep_request();
  if (verdict_.writes(Stage::kRequestReceived)) add(Stage::kRequestReceived, copy_of_bodies());
}

Bodies& Record::bodies() {
  if (!bodies_) {
    bodies_ = std::make_unique<Bodies>();
    bodies_->secret = secret_;
    bodies_->omit_managed_fields = verdict_.omit_managed_fields;
  }
  return *bodies_;
}

std::unique_ptr<Bodies> Record::copy_of_bodies() const {
  return bodies_ ? std::make_unique<Bodies>(*bodies_) : nullptr;
}

void Record::keep_request() {
  bodies().request = bounded({media_type(call_.request), call_.request.body, call_.object});
}

Content Record::bounded(Content content) {
  if (content.text.size() <= kBodyMax) return content;
  annotate(kube::names::access::kTruncated, "true");
  return {};
}

void Record::annotate(std::string_view key, std::string value) {
  if (log_ == nullptr) return;
  for (auto& [known, text] : annotations_) {
    if (known != key) continue;
    text = std::move(value);
    return;
  }
  annotations_.emplace_back(key, std::move(value));
}

void Record::set_decision(bool allowed) {
  if (log_ == nullptr || !wanted()) return;
  decision_ = allowed ? "allow" : "forbid";
  if (!allowed) reason_ = nullptr;
}

void Record::set_started(int code) {
  if (log_ == nullptr) return;
  begin();
  code_ = code;
  if (verdict_.writes(Stage::kResponseStarted)) add(Stage::kResponseStarted, copy_of_bodies());
}

void Record::set_answer(const net::Response& response, kube::ObjectPtr object) {
  if (log_ == nullptr) return;
  begin();
  code_ = response.status;
  if (!wanted()) return;
  const bool failed = response.status >= 400;
  const bool whole = verdict_.level == Level::kRequestResponse && call_.resource != nullptr;
  if (!failed && !whole) return;
  Content content{
      std::string(response.headers.get("Content-Type")), response.body, std::move(object)};
  if (failed) bodies().failure = bounded(content);
  if (whole) bodies().response = bounded(std::move(content));
}

/// What a client of this process asks for has no path until somebody wants to read it.
std::string Record::path() const {
  const auto& info = call_.resource->info;
  const kube::Resource resource{info.group, info.version, info.plural, info.kind, info.namespaced};
  std::string path = resource.path(call_.ns);
  for (const std::string& part : {call_.name, call_.subresource}) {
    if (!part.empty()) path += "/" + percent_encode(part);
  }
  return path;
}

void Record::add(Stage stage, std::unique_ptr<Bodies> bodies) {
  const bool first = stage == Stage::kRequestReceived;
  if (!first && !call_.violations.empty())
    annotate(kube::names::access::kAuditViolations, join(call_.violations, "; "));
  static const Annotations kNone;
  Event event{.level = verdict_.level,
              .stage = stage,
              .user = asker_ ? *asker_ : call_.user,
              .decision = first ? std::string_view() : decision_,
              .reason = first ? nullptr : &reason_,
              .annotations = first ? kNone : annotations_};
  const net::Request& request = call_.request;
  const std::string made = call_.in_process && call_.resource ? path() : "";
  event.id = id_.view();
  event.uri = cut(made.empty() ? request.target : made);
  event.verb = verb_;
  event.source = request.peer.address;
  event.forwarded = cut(request.headers.get("X-Forwarded-For"));
  event.agent = cut(call_.in_process ? call_.manager : request.headers.get("User-Agent"));
  if (asker_ && !call_.user.name.empty()) event.acting = &call_.user;
  if (call_.resource) {
    event.group = call_.resource->info.group;
    event.version = call_.resource->info.version;
    event.resource = call_.resource->info.plural;
    event.subresource = call_.subresource;
    event.ns = call_.ns;
    event.name = call_.name;
  }
  event.code = code_;
  event.received = received_;
  event.at = core_.env.now();
  log_->add(event, std::move(bodies));
}

Task<Result<void>> Trail::send(net::Response response) {
  record_.set_answer(response);
  if (!record_.id().empty()) response.headers.set("Audit-Id", std::string(record_.id()));
  return inner_.send(std::move(response));
}

Task<Result<void>> Trail::start(net::Response head) {
  record_.set_started(head.status);
  if (!record_.id().empty()) head.headers.set("Audit-Id", std::string(record_.id()));
  return inner_.start(std::move(head));
}

Task<Result<std::unique_ptr<net::WebSocket>>> Trail::upgrade_websocket(std::string protocol) {
  record_.set_started(101);
  return inner_.upgrade_websocket(std::move(protocol));
}

Task<Result<std::unique_ptr<net::ByteStream>>> Trail::upgrade_raw(net::Headers headers) {
  record_.set_started(101);
  return inner_.upgrade_raw(std::move(headers));
}

}  // namespace muster::apiserver::audit
