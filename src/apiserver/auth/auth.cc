#include "apiserver/auth/auth.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "net/tls/tls.h"

namespace muster::apiserver {
namespace {

constexpr std::size_t kKnownMax = 4096;
/// How far the clock of whoever signed a token may be ahead of ours.
constexpr std::int64_t kSkewS = 10;

Error unauthorized() {
  Error error;
  error.code = Code::kUnauthorized;
  error.message = "Unauthorized";
  return error;
}

/// Compares in time that does not depend on where the texts differ.
bool same_secret(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (a[i] ^ b[i]));
  return difference == 0;
}

}  // namespace

bool User::in_group(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

User component_user(std::string name) {
  return User{.name = std::move(name), .groups = {"system:masters", "system:authenticated"}};
}

Result<User> Authenticator::authenticate(const net::Request& request, Time now) {
  if (request.peer.trusted_user) return component_user(*request.peer.trusted_user);
  const std::string_view header = request.headers.get("Authorization");
  if (!header.empty()) {
    if (header.size() < 8 || to_lower(header.substr(0, 7)) != "bearer ")
      return fail(unauthorized());
    return user_of_token(std::string(trim(header.substr(7))), now, nullptr);
  }
  if (request.peer.cert_user) {
    User user{.name = *request.peer.cert_user, .groups = request.peer.cert_groups};
    user.groups.emplace_back("system:authenticated");
    return user;
  }
  return fail(unauthorized());
}

Result<User> Authenticator::user_of_token(const std::string& token,
                                          Time now,
                                          std::vector<std::string>* audiences) {
  if (!core_.options.admin_token.empty() && same_secret(token, core_.options.admin_token)) {
    if (audiences != nullptr) *audiences = {core_.options.issuer};
    return User{.name = "muster-admin", .groups = {"system:masters", "system:authenticated"}};
  }
  const std::int64_t now_s = now.seconds();
  auto found = known_.find(token);
  if (found == known_.end()) {
    if (core_.options.find_token_owner) {
      if (const auto owner = core_.options.find_token_owner(token)) {
        if (audiences != nullptr) *audiences = {core_.options.issuer};
        User user{.name = owner->name, .groups = owner->groups};
        user.groups.emplace_back("system:authenticated");
        return user;
      }
    }
    const auto payload = net::verify_token(core_.options.token_key_pem, token);
    if (!payload) return fail(unauthorized());
    const auto claims = json::parse(*payload);
    if (!claims || json::string_at(*claims, "iss") != core_.options.issuer)
      return fail(unauthorized());
    const json::Value& bound = json::at(*claims, kube::kKubernetesDomain);
    const std::string ns = json::text_at(bound, "namespace");
    const std::string account = json::text_at(bound, "serviceaccount", "name");
    Known known;
    known.not_before_s = json::int_at(*claims, "nbf");
    known.expires_s = json::int_at(*claims, "exp");
    known.account_key = ns + "/" + account;
    known.account_uid = json::text_at(bound, "serviceaccount", "uid");
    known.user.name = "system:serviceaccount:" + ns + ":" + account;
    known.user.uid = known.account_uid;
    known.user.groups = {
        "system:serviceaccounts", "system:serviceaccounts:" + ns, "system:authenticated"};
    if (json::at(bound, "pod").is_object()) {
      known.user.extra[std::string(kube::names::kubernetes::kTokenPodName)] = {
          json::text_at(bound, "pod", "name")};
      known.user.extra[std::string(kube::names::kubernetes::kTokenPodUid)] = {
          json::text_at(bound, "pod", "uid")};
    }
    for (const auto& [kind, storage] :
         {std::pair{"pod", "pods"}, std::pair{"secret", "secrets"}, std::pair{"node", "nodes"}}) {
      // A pod's token names its node as well, for information.
      const json::Value& object = json::at(bound, kind);
      if (!object.is_object() || !known.bound_storage.empty()) continue;
      known.bound_storage = storage;
      known.bound_key =
          (storage == std::string_view("nodes") ? "" : ns + "/") + json::text_at(object, "name");
      known.bound_uid = json::text_at(object, "uid");
    }
    for (const json::Value& audience : json::array_at(*claims, "aud"))
      known.audiences.push_back(json::text(audience));
    known.user.identity = ++identities_;
    if (known_.size() >= kKnownMax) known_.clear();
    found = known_.emplace(token, std::move(known)).first;
  }
  const Known& known = found->second;
  const StoredPtr account = core_.image.collection("serviceaccounts").find(known.account_key);
  if (known.expires_s <= now_s || known.not_before_s > now_s + kSkewS || !account ||
      kube::uid_of(account->object) != known.account_uid)
    return fail(unauthorized());
  if (!known.bound_storage.empty()) {
    const StoredPtr object = core_.image.collection(known.bound_storage).find(known.bound_key);
    if (!object || kube::uid_of(object->object) != known.bound_uid) return fail(unauthorized());
  }
  if (audiences != nullptr) {
    *audiences = known.audiences;
  } else if (std::find(known.audiences.begin(), known.audiences.end(), core_.options.issuer) ==
             known.audiences.end()) {
    return fail(unauthorized());  // meant for somebody else
  }
  return known.user;
}

Result<std::string> Authenticator::issue(const TokenSubject& subject, Time* expires) {
  const std::int64_t now_s = core_.env.now().seconds();
  json::Array audiences;
  for (const std::string& audience : subject.audiences) audiences.push_back(json::Value(audience));
  if (audiences.empty()) audiences.push_back(json::Value(core_.options.issuer));
  json::Object bound = {
      {"namespace", subject.ns},
      {"serviceaccount", {{"name", subject.account}, {"uid", subject.account_uid}}}};
  if (!subject.bound_kind.empty())
    bound[subject.bound_kind] =
        json::Value{{"name", subject.bound_name}, {"uid", subject.bound_uid}};
  const std::int64_t end_s = now_s + subject.lifetime_s;
  const json::Value claims = {
      {"aud", std::move(audiences)},
      {"exp", end_s},
      {"iat", now_s},
      {"iss", core_.options.issuer},
      {"jti", net::random_uuid()},
      {kube::kKubernetesDomain, std::move(bound)},
      {"nbf", now_s},
      {"sub", "system:serviceaccount:" + subject.ns + ":" + subject.account}};
  *expires = Time::from_seconds(end_s);
  return net::sign_token(core_.options.token_key_pem, json::dump(claims));
}

}  // namespace muster::apiserver
