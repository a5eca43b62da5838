#include "portal/session/sessions.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"
#include "net/tls/tls.h"

namespace muster::portal {
namespace {

constexpr const char* kNamespace = "kube-system";
/// How old the "seen" of a Secret may grow before it is written again.
constexpr Duration kSaveEvery = std::chrono::minutes(10);

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string secret_name(const Session& session) { return "muster-session-" + session.id; }

}  // namespace

json::Value secret_of(const Session& session) {
  json::Object about{{"user", session.user.name},
                     {"admin", session.user.admin},
                     {"openpai", session.user.openpai},
                     {"uid", session.user.uid},
                     {"credential", session.user.credential},
                     {"from", session.from},
                     {"agent", session.agent},
                     {"began", session.began.seconds()},
                     {"seen", session.seen.seconds()},
                     {"ends", session.ends.seconds()}};
  json::Array groups, vcs;
  for (const std::string& group : session.user.groups) groups.push_back(json::Value(group));
  for (const std::string& vc : session.user.vcs) vcs.push_back(json::Value(vc));
  about["groups"] = std::move(groups);
  about["vcs"] = std::move(vcs);
  json::Value secret = json::Object{};
  json::make(secret, {"apiVersion"}) = "v1";
  json::make(secret, {"kind"}) = "Secret";
  json::make(secret, {"metadata", "name"}) = secret_name(session);
  json::make(secret, {"metadata", "namespace"}) = kNamespace;
  json::make_object(secret, {"metadata", "labels"})[kube::names::portal::kPart] = "session";
  json::make(secret, {"type"}) = "Opaque";
  json::make(secret, {"data", "hash"}) = base64_encode(session.hash);
  json::make(secret, {"data", "about"}) = base64_encode(json::dump(about));
  return secret;
}

std::unique_ptr<Session> session_of(const json::Value& secret) {
  if (kube::label(secret, kube::names::portal::kPart) != "session") return nullptr;
  const auto hash = base64_decode(json::string_at(secret, "data", "hash"));
  const auto text = base64_decode(json::string_at(secret, "data", "about"));
  if (!hash || !text || hash->size() != 64) return nullptr;
  const auto about = json::parse(*text);
  if (!about) return nullptr;
  auto session = std::make_unique<Session>();
  session->hash = *hash;
  session->id =
      std::string(kube::name_of(secret)).substr(std::string_view("muster-session-").size());
  session->user.name = json::text_at(*about, "user");
  session->user.admin = json::bool_at(*about, "admin");
  session->user.openpai = json::bool_at(*about, "openpai");
  session->user.uid = json::text_at(*about, "uid");
  session->user.credential = json::text_at(*about, "credential");
  for (const json::Value& group : json::array_at(*about, "groups"))
    session->user.groups.push_back(json::text(group));
  for (const json::Value& vc : json::array_at(*about, "vcs"))
    session->user.vcs.push_back(json::text(vc));
  session->from = json::text_at(*about, "from");
  session->agent = json::text_at(*about, "agent");
  session->began = Time::from_seconds(json::int_at(*about, "began"));
  session->seen = session->saved = Time::from_seconds(json::int_at(*about, "seen"));
  session->ends = Time::from_seconds(json::int_at(*about, "ends"));
  if (session->user.name.empty()) return nullptr;
  return session;
}

bool Sessions::alive(const Session& session, Time now) const {
  return now < session.ends && now - session.seen < kIdleMax;
}

Task<void> Sessions::load() {
  if (loaded_) co_return;
  loaded_ = true;
  client::ListOptions options;
  options.ns = kNamespace;
  options.label_selector = std::string(kube::names::portal::kPart) + "=session";
  const auto listed = co_await client_.list(client::resources::kSecrets, options);
  if (!listed) {
    loaded_ = false;
    log::warn("portal", "cannot read the sessions: {}", listed.error().message);
    co_return;
  }
  std::vector<std::string> stale;
  for (const json::Value& secret : listed->items) {
    auto session = session_of(secret);
    if (session && alive(*session, env_.now()))
      by_hash_.emplace(session->hash, std::move(session));
    else
      stale.emplace_back(kube::name_of(secret));
  }
  for (const std::string& name : stale) {
    const auto removed = co_await client_.remove(client::resources::kSecrets, kNamespace, name, {});
    (void)removed;
  }
}

Task<Result<Sessions::Opened>> Sessions::open(User user,
                                              std::string from,
                                              std::string agent,
                                              Time ends) {
  if (by_hash_.size() >= kMax)
    co_return fail(Code::kUnavailable, "too many people are signed in; try again later");
  Opened opened;
  opened.cookie = base64url_encode(net::random_bytes(32));
  opened.id = hex(net::random_bytes(8));
  auto session = std::make_unique<Session>();
  session->id = opened.id;
  session->hash = hex(net::sha256(opened.cookie));
  session->user = std::move(user);
  session->from = std::move(from);
  session->agent = agent.substr(0, 200);
  session->began = session->seen = session->saved = session->checked = env_.now();
  session->ends = session->began + kWholeMax;
  if (ends) session->ends = std::min(session->ends, ends);
  // It is known here only once it is kept: whoever is signed in stays so after a restart.
  const auto kept = co_await client_.create(
      client::resources::kSecrets, kNamespace, secret_of(*session), client::Answer::kNone);
  if (!kept) co_return fail(kept.error());
  const std::string name = session->user.name;
  by_hash_.emplace(session->hash, std::move(session));
  auto mine = of_user(name);
  if (mine.size() > kUserMax) {
    const auto oldest =
        std::min_element(mine.begin(), mine.end(), [](const Session* a, const Session* b) {
          return a->seen < b->seen;
        });
    co_await end((*oldest)->id);
  }
  co_return opened;
}

Session* Sessions::find(const std::string& cookie) {
  if (cookie.empty()) return nullptr;
  const auto found = by_hash_.find(hex(net::sha256(cookie)));
  if (found == by_hash_.end()) return nullptr;
  Session& session = *found->second;
  const Time now = env_.now();
  if (!alive(session, now)) {
    env_.spawn(end(session.id));
    return nullptr;
  }
  session.seen = now;
  if (now - session.saved > kSaveEvery) save_soon(session);
  return &session;
}

Session* Sessions::by_id(const std::string& id) {
  for (const auto& [hash, session] : by_hash_) {
    if (session->id == id) return session.get();
  }
  return nullptr;
}

void Sessions::set_user(const std::string& id, User user) {
  Session* session = by_id(id);
  if (session == nullptr) return;
  session->checked = env_.now();
  if (session->user == user) return;
  session->user = std::move(user);
  save_soon(*session);
}

void Sessions::forget_credential(const std::string& id) {
  if (Session* session = by_id(id)) session->user.credential.clear();
}

void Sessions::save_soon(Session& session) {
  session.saved = session.seen;
  json::Value patch = json::Object{};
  json::make(patch, {"data"}) = json::at(secret_of(session), "data");
  env_.spawn([](client::Client& client, std::string name, json::Value body) -> Task<void> {
    const auto done = co_await client.patch(client::resources::kSecrets,
                                            kNamespace,
                                            std::move(name),
                                            "",
                                            client::PatchType::kMerge,
                                            std::move(body),
                                            client::Answer::kNone);
    if (!done) log::info("portal", "a session was not saved: {}", done.error().message);
  }(client_, secret_name(session), std::move(patch)));
}

Task<void> Sessions::end(std::string id) {
  Session* session = by_id(id);
  if (session == nullptr) co_return;
  const std::string name = secret_name(*session);
  by_hash_.erase(session->hash);
  if (on_end) on_end(id);
  const auto removed = co_await client_.remove(client::resources::kSecrets, kNamespace, name, {});
  if (!removed && removed.error().code != Code::kNotFound)
    log::warn("portal", "the Secret of an ended session stays: {}", removed.error().message);
}

Task<void> Sessions::end_user(std::string user, std::string but_id) {
  std::vector<std::string> ids;
  for (const Session* session : of_user(user)) {
    if (session->id != but_id) ids.push_back(session->id);
  }
  for (const std::string& id : ids) co_await end(id);
}

std::vector<const Session*> Sessions::of_user(const std::string& user) const {
  std::vector<const Session*> found;
  for (const auto& [hash, session] : by_hash_) {
    if (session->user.name == user) found.push_back(session.get());
  }
  return found;
}

std::map<std::string, Time> Sessions::last_seen() const {
  std::map<std::string, Time> seen;
  for (const auto& [hash, session] : by_hash_) {
    Time& last = seen[session->user.name];
    last = std::max(last, session->seen);
  }
  return seen;
}

}  // namespace muster::portal
