/// Who serves here, logging in and out, tokens.
#include <fmt/core.h>

#include "base/strings.h"
#include "pai/people/password.h"
#include "pai/people/records.h"
#include "pai/rest/body.h"
#include "pai/rest/routes.h"

namespace muster::pai::rest {
namespace {

constexpr std::int64_t kExpirationMin = 60;
constexpr std::int64_t kExpirationMax = 7 * 24 * 3600;

/// Read and checked, as OpenPAI does; a browser's token lives for seven days all the same.
Answer<void> check_expiration(const json::Value& value) {
  if (value.is_null()) return {};
  const auto seconds = value.is_int64()    ? std::optional<std::int64_t>(value.as_int64())
                       : value.is_string() ? parse_int(json::as_string(value))
                                           : std::nullopt;
  if (!seconds || *seconds < kExpirationMin || *seconds > kExpirationMax)
    return refuse(
        bad_parameters(fmt::format("\"expiration\" must be a number of seconds from {} to {}",
                                   kExpirationMin,
                                   kExpirationMax)));
  return {};
}

Task<Answer<Reply>> log_in(People& people, Call& call) {
  Members members(call.body);
  const std::string user = members.text("username"), password = members.text("password");
  const auto read = members.done();
  if (!read) co_return refuse(read.error());
  const auto expiration = check_expiration(json::at(call.body, "expiration"));
  if (!expiration) co_return refuse(expiration.error());
  const auto right = co_await people.check_password(user, password, call.request.peer.address);
  if (!right) co_return refuse(right.error());
  const auto token = co_await people.issue_token(user, false);
  if (!token) co_return refuse(token.error());
  const UserRecord* record = people.directory().find_user(user);
  co_return answered(
      json::Object{{"user", user},
                   {"token", *token},
                   {"admin", record != nullptr && people.directory().is_admin(*record)},
                   {"hasGitHubPAT",
                    record != nullptr &&
                        !json::string_at(json::Value(record->extension), "githubPAT").empty()}});
}

Task<Answer<Reply>> log_out(People& people, Call& call) {
  const auto revoked = co_await people.revoke_token(call.caller.user, call.caller.token);
  if (!revoked) co_return refuse(revoked.error());
  co_return said(200, "Logout successfully");
}

Task<Answer<Reply>> list_tokens(People& people, Call& call) {
  json::Array tokens;
  for (const auto& [id, token] : people.directory().tokens_of(call.caller.user))
    if (people.caller_of_token(token)) tokens.emplace_back(token);
  co_return answered(json::Object{{"tokens", std::move(tokens)}});
}

Task<Answer<Reply>> make_application_token(People& people, Call& call) {
  const auto token = co_await people.issue_token(call.caller.user, true);
  if (!token) co_return refuse(token.error());
  co_return answered(json::Object{{"token", *token}, {"application", true}});
}

/// One's own, or an administrator anybody's.
Task<Answer<Reply>> revoke(People& people, Call& call) {
  const std::string& token = call.values[0];
  const auto claims = read_unsigned(token);
  if (!claims) co_return refuse(bad_parameters("The token is not valid."));
  if (claims->user != call.caller.user && !call.caller.admin)
    co_return refuse(
        403,
        "ForbiddenUserError",
        fmt::format("User {} is not allowed to do operation on others' tokens.", call.caller.user));
  const auto revoked = co_await people.revoke_token(claims->user, token);
  if (!revoked) co_return refuse(revoked.error());
  co_return said(200, "revoke successfully");
}

Task<Answer<Reply>> check_token(Call& call) {
  const auto claims = read_unsigned(call.caller.token);
  if (!claims) co_return refuse(bad_parameters(claims.error().message));
  co_return answered(claims_json(*claims));
}

}  // namespace

std::vector<Route> login_routes(People& people, std::string version) {
  const Run info = [version](Call&) -> Task<Answer<Reply>> {
    co_return answered(json::Object{{"name", "PAI RESTful API"},
                                    {"version", version},
                                    {"launcherType", "k8s"},
                                    {"authnMethod", "basic"}});
  };
  const Run how = [](Call&) -> Task<Answer<Reply>> {
    co_return answered(json::Object{
        {"authn_type", "basic"}, {"loginURI", "/authn/basic/login"}, {"loginURIMethod", "post"}});
  };
  const Run login = [&people](Call& call) { return log_in(people, call); };
  const Run none = [](Call&) -> Task<Answer<Reply>> {
    co_return refuse(
        400,
        "NotImplementedError",
        "This cluster knows its users by password (POST /authn/basic/login), not by OpenID Connect.");
  };
  return {
      {"GET", "", Who::kAll, info},
      {"GET", "info", Who::kAll, info},
      {"GET", "authn/info", Who::kAll, how},
      {"POST", "authn/basic/login", Who::kAll, login},
      {"POST", "token", Who::kAll, login},
      {"DELETE",
       "authn/basic/logout",
       Who::kUser,
       [&people](Call& call) { return log_out(people, call); }},
      {"GET", "authn/oidc/login", Who::kAll, none},
      {"GET", "authn/oidc/logout", Who::kAll, none},
      {"GET", "tokens", Who::kUser, [&people](Call& call) { return list_tokens(people, call); }},
      {"POST",
       "tokens/application",
       Who::kUser,
       [&people](Call& call) { return make_application_token(people, call); }},
      {"GET", "tokens/check", Who::kPrograms, [](Call& call) { return check_token(call); }},
      {"DELETE",
       "tokens/:token",
       Who::kUser,
       [&people](Call& call) { return revoke(people, call); }},
  };
}

}  // namespace muster::pai::rest
