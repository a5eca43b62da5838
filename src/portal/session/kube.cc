#include "portal/session/kube.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "client/access_review.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"

namespace muster::portal {
namespace {

/// What a visitor's request may not bring along: credentials, identities, and what belongs to its
/// own connection.
bool is_kept(std::string_view name) {
  const std::string lower = to_lower(name);
  for (const std::string_view dropped : {"authorization",
                                         "cookie",
                                         "host",
                                         "connection",
                                         "content-length",
                                         "transfer-encoding",
                                         "origin",
                                         "referer",
                                         "x-remote-user",
                                         "x-remote-group"}) {
    if (lower == dropped) return false;
  }
  return !lower.starts_with("impersonate-") && !lower.starts_with("sec-") &&
         !lower.starts_with("x-remote-extra-");
}

}  // namespace

net::Request Kube::request_as(const User& user, net::Request request) const {
  net::Headers headers;
  for (const auto& [name, value] : request.headers.fields()) {
    if (is_kept(name)) headers.add(name, value);
  }
  headers.set("Impersonate-User", user.name);
  for (const std::string& group : user.groups) headers.add("Impersonate-Group", group);
  // So that the cluster's audit log knows from where it came.
  if (const std::string& peer = request.peer.address; !peer.empty())
    headers.set("X-Forwarded-For", peer.substr(0, peer.rfind(':')));
  request.headers = std::move(headers);
  request.peer = {};
  if (sign_) sign_(request);
  return request;
}

Task<Result<net::Response>> Kube::send_as(const User& user, net::Request request) {
  auto answer = co_await client_.http().request(request_as(user, std::move(request)));
  co_return answer;
}

Task<Result<json::Value>> Kube::call_as(const User& user,
                                        std::string method,
                                        std::string target,
                                        json::Value body,
                                        std::string content_type) {
  net::Request request;
  request.method = std::move(method);
  request.target = std::move(target);
  request.headers.set("Accept", "application/json");
  if (!body.is_null()) {
    request.headers.set("Content-Type", std::move(content_type));
    request.body = json::dump(body);
  }
  const auto answer = co_await send_as(user, std::move(request));
  if (!answer) co_return fail(answer.error());
  auto parsed = json::parse(answer->body);
  if (answer->status >= 300) {
    Error error;
    error.code = code_of(parsed ? json::string_at(*parsed, "reason") : "", answer->status);
    error.message = parsed ? json::text_at(*parsed, "message") : answer->body.substr(0, 500);
    co_return fail(std::move(error));
  }
  if (!parsed) co_return fail(parsed.error());
  co_return std::move(*parsed);
}

Task<Result<User>> Kube::user_of_token(std::string token) {
  json::Value review{{"apiVersion", std::string(kube::groups::kAuthentication) + "/v1"},
                     {"kind", "TokenReview"},
                     {"spec", {{"token", token}}}};
  const auto answer =
      co_await client_.raw("POST",
                           fmt::format("/apis/{}/v1/tokenreviews", kube::groups::kAuthentication),
                           std::move(review));
  if (!answer) co_return fail(answer.error());
  if (!json::bool_at(*answer, "status", "authenticated"))
    co_return fail(Code::kUnauthorized, "the cluster does not know this token, or it has expired");
  User user;
  user.name = json::text_at(*answer, "status", "user", "username");
  for (const json::Value& group : json::array_at(*answer, "status", "user", "groups"))
    user.groups.push_back(json::text(group));
  user.uid = json::text_at(*answer, "status", "user", "uid");
  user.admin = co_await may(user, {.verb = "*", .group = "*", .resource = "*"});
  co_return user;
}

Task<Result<User>> Kube::user_now(User user) {
  const std::vector<std::string> parts = split(user.name, ':');
  if (parts.size() == 4 && parts[0] == "system" && parts[1] == "serviceaccount") {
    const auto account =
        co_await client_.get(client::resources::kServiceAccounts, parts[2], parts[3]);
    if (!account) co_return fail(account.error());
    if (!user.uid.empty() && user.uid != kube::uid_of(*account))
      co_return fail(Code::kNotFound, "the account was deleted and made again");
  }
  user.admin = co_await may(user, {.verb = "*", .group = "*", .resource = "*"});
  co_return user;
}

Task<bool> Kube::may(User user, Act act) {
  json::Array groups;
  for (const std::string& group : user.groups) groups.push_back(json::Value(group));
  json::Object what{{"verb", act.verb}, {"group", act.group}, {"resource", act.resource}};
  if (!act.subresource.empty()) what["subresource"] = act.subresource;
  if (!act.ns.empty()) what["namespace"] = act.ns;
  if (!act.name.empty()) what["name"] = act.name;
  json::Object spec{
      {"user", user.name}, {"groups", std::move(groups)}, {"resourceAttributes", std::move(what)}};
  const auto allowed = co_await client::review_access(client_, std::move(spec));
  co_return allowed.value_or(false);
}

}  // namespace muster::portal
