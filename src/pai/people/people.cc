#include "pai/people/people.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "net/tls/tls.h"
#include "pai/people/hex.h"
#include "pai/people/password.h"

namespace muster::pai {
namespace {

using client::resources::kNamespaces;
using client::resources::kSecrets;

/// Signs tokens. Beside Muster's own objects, so that whoever may read users' Secrets cannot make
/// tokens by that alone.
constexpr const char* kKeyNamespace = "kube-system";
constexpr const char* kKeyName = "muster-pai-token-key";
constexpr const char* kKeyField = "key";

constexpr std::int64_t kBrowserTokenS = 7 * 24 * 3600;
constexpr std::size_t kBrowserTokensMax = 200;
constexpr std::size_t kApplicationTokensMax = 100;

std::string host_of(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  return colon == std::string::npos ? address : address.substr(0, colon);
}

tl::unexpected<Refusal> bad_token() {
  return refuse(401, "UnauthorizedUserError", "Your token is invalid.");
}

GroupRecord standing_group(const char* name, const char* description, bool admin) {
  json::Array vcs;
  if (!admin) vcs.emplace_back(kDefaultVc);
  return {.name = name,
          .description = description,
          .external_name = "",
          .extension = {{"acls",
                         {{"admin", admin},
                          {"virtualClusters", std::move(vcs)},
                          {"storageConfigs", json::Array()}}}}};
}

}  // namespace

Refusal no_user(std::string_view name, int status) {
  return {.status = status,
          .code = "NoUserError",
          .message = fmt::format("User {} is not found.", name)};
}

Refusal no_group(std::string_view name) {
  return {.status = 404,
          .code = "NoGroupError",
          .message = fmt::format("Group {} is not found.", name)};
}

People::People(Env& env,
               client::Client& client,
               client::Informers& informers,
               PeopleOptions options)
    : env_(env),
      client_(client),
      informers_(informers),
      options_(std::move(options)),
      hashing_(env) {}

Task<Result<void>> People::start() {
  const auto made = co_await make_namespaces();
  if (!made) co_return made;
  const auto key = co_await make_key();
  if (!key) co_return key;
  directory_.follow(informers_);
  informers_.start_all();
  co_await informers_.wait_synced();
  const auto groups = co_await make_standing_groups();
  if (!groups) co_return groups;
  auto matched = co_await match_groups_to_vcs();
  co_return matched;
}

Task<void> People::prepare_nobody() {
  auto hash = co_await hashed(net::random_uuid());
  if (hash) nobody_ = std::move(*hash);
}

Task<Result<void>> People::make_namespaces() {
  for (const char* name : {kUserNamespace, kGroupNamespace, kTokenNamespace}) {
    const auto made = co_await client_.create(
        kNamespaces,
        "",
        json::Object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", name}}}});
    if (!made && made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  }
  co_return Result<void>();
}

/// Two replicas may start at once: whoever comes second takes the first one's.
Task<Result<void>> People::make_key() {
  const auto made = co_await client_.create(
      kSecrets,
      kKeyNamespace,
      json::Object{{"apiVersion", "v1"},
                   {"kind", "Secret"},
                   {"metadata", {{"name", kKeyName}, {"namespace", kKeyNamespace}}},
                   {"type", "Opaque"},
                   {"data", {{kKeyField, base64_encode(net::random_bytes(32))}}}});
  if (!made && made.error().code != Code::kAlreadyExists) co_return fail(made.error());
  const auto kept = co_await client_.get(kSecrets, kKeyNamespace, kKeyName);
  if (!kept) co_return fail(kept.error());
  key_ = base64_decode(json::string_at(*kept, "data", kKeyField)).value_or("");
  if (key_.size() < 16)
    co_return fail(
        Code::kInvalid,
        fmt::format(
            "Secret {}/{} holds no key of 16 bytes or more under \"{}\"; delete it, and a new one is created (all users must log in again)",
            kKeyNamespace,
            kKeyName,
            kKeyField));
  co_return Result<void>();
}

Task<Result<void>> People::make_standing_groups() {
  for (const GroupRecord& group : {standing_group(kAdminGroup, "administrators", true),
                                   standing_group(kDefaultGroup, "everybody", false)}) {
    if (directory_.find_group(group.name) != nullptr) continue;
    const auto made = co_await create_group(group);
    if (!made && made.error().status != 409) co_return fail(Code::kInternal, made.error().message);
  }
  co_return Result<void>();
}

bool People::needs_admin() const {
  const auto users = directory_.users();
  return std::none_of(users.begin(), users.end(), [this](const UserRecord* user) {
    return directory_.is_admin(*user);
  });
}

Task<Result<bool>> People::make_first_admin(std::string password) {
  if (!needs_admin()) co_return false;
  UserRecord admin;
  admin.name = "admin";
  admin.groups = {kDefaultGroup, kAdminGroup};
  const auto made = co_await create_user(std::move(admin), std::move(password));
  if (!made && made.error().status == 409)
    co_return fail(
        Code::kConflict,
        "a user \"admin\" exists and is not an administrator; add it to the group \"admingroup\", or remove it");
  if (!made) co_return fail(Code::kInternal, made.error().message);
  co_return true;
}

// Logging in.

Task<Answer<std::string>> People::hashed(std::string password) {
  Result<std::string> hash = std::string();
  const std::string salt = net::random_bytes(16);
  const auto done = co_await hashing_.run([&] { hash = hash_password(password, salt); });
  if (!done) co_return refuse(done.error());
  if (!hash) co_return refuse(hash.error());
  co_return std::move(*hash);
}

Task<Answer<void>> People::check_password(std::string user,
                                          std::string password,
                                          std::string address) {
  const std::string host = host_of(address);
  const Duration wait = throttle_.ask(user, host, env_.monotonic());
  if (wait > Duration::zero()) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(wait + std::chrono::milliseconds(999));
    Refusal later{.status = 429,
                  .code = "TooManyRequestsError",
                  .message = fmt::format("too many failed logins; try again in {} s",
                                         static_cast<int>(seconds.count())),
                  .retry_after_s = static_cast<int>(seconds.count())};
    co_return refuse(std::move(later));
  }
  const UserRecord* found = directory_.find_user(user);
  const bool known = found != nullptr;
  const std::string stored = known ? found->password : nobody_;
  bool right = false;
  const auto done = co_await hashing_.run(
      [&] { right = password.size() <= kPasswordMax && verify_password(stored, user, password); });
  if (!done) co_return refuse(done.error());
  if (!known || !right) throttle_.failed(user, host, env_.monotonic());
  if (!known) co_return refuse(no_user(user, 400));
  if (!right) co_return refuse(400, "IncorrectPasswordError", "Password is incorrect.");
  throttle_.succeeded(user, host);
  if (is_openpai_hash(stored)) {
    // Taken over from OpenPAI: from now on kept as ours are. A failure costs nothing but that.
    auto fresh = co_await hashed(std::move(password));
    if (fresh) {
      const auto kept = co_await change_user(user, [&](UserRecord& record) -> Answer<void> {
        if (record.password == stored) record.password = *fresh;
        return {};
      });
      if (!kept)
        log::warn(
            "pai", "the password of {} stays in OpenPAI's form: {}", user, kept.error().message);
    }
  }
  co_return Answer<void>();
}

// Tokens.

Task<Answer<std::string>> People::issue_token(std::string user, bool application) {
  const std::int64_t now_s = env_.now().seconds();
  TokenClaims claims{.user = user,
                     .application = application,
                     .issued_s = now_s,
                     .expires_s = application ? 0 : now_s + kBrowserTokenS,
                     .id = net::random_uuid()};
  const std::string token = make_token(key_, claims);
  const auto kept = co_await change_tokens(user, [&](Tokens& tokens) -> Answer<void> {
    // By age; ids are random.
    std::vector<std::pair<std::int64_t, std::string>> browsers;
    std::size_t applications = 0;
    for (auto each = tokens.begin(); each != tokens.end();) {
      const auto old = read_unsigned(each->second);
      if (!old || (old->expires_s != 0 && old->expires_s <= now_s)) {
        each = tokens.erase(each);
        continue;
      }
      if (old->application)
        ++applications;
      else
        browsers.emplace_back(old->issued_s, each->first);
      ++each;
    }
    if (application && applications >= kApplicationTokensMax)
      return refuse(400,
                    "InvalidParametersError",
                    fmt::format("User {} has {} application tokens already; revoke one that is no "
                                "longer used.",
                                user,
                                applications));
    std::sort(browsers.begin(), browsers.end());
    for (std::size_t i = 0; !application && i + kBrowserTokensMax < browsers.size() + 1; ++i)
      tokens.erase(browsers[i].second);
    tokens[claims.id] = token;
    return {};
  });
  if (!kept) co_return refuse(kept.error());
  co_return token;
}

Task<Answer<void>> People::revoke_token(std::string user, std::string token) {
  auto done = co_await change_tokens(std::move(user), [&](Tokens& tokens) -> Answer<void> {
    std::erase_if(tokens, [&](const auto& each) { return each.second == token; });
    return {};
  });
  co_return done;
}

Task<Answer<void>> People::revoke_browser_tokens(std::string user) {
  auto done = co_await change_tokens(std::move(user), [](Tokens& tokens) -> Answer<void> {
    std::erase_if(tokens, [](const auto& each) {
      const auto claims = read_unsigned(each.second);
      return !claims || !claims->application;
    });
    return {};
  });
  co_return done;
}

std::optional<Caller> People::caller_of_token(std::string_view token) const {
  const auto claims = read_token(key_, token);
  if (!claims) return std::nullopt;
  const std::int64_t now_s = env_.now().seconds();
  if (claims->expires_s != 0 && claims->expires_s <= now_s) return std::nullopt;
  const UserRecord* user = directory_.find_user(claims->user);
  if (user == nullptr || !directory_.has_token(claims->user, token)) return std::nullopt;
  return Caller{.user = user->name,
                .admin = directory_.is_admin(*user),
                .application = claims->application,
                .token = std::string(token)};
}

Answer<Caller> People::caller_of(const net::Request& request) const {
  const std::string_view header = trim(request.headers.get("Authorization"));
  if (header.empty())
    return refuse(401, "UnauthorizedUserError", "Guest is not allowed to do this operation.");
  const std::size_t space = header.find(' ');
  if (space == std::string_view::npos) return bad_token();
  const std::string scheme = to_lower(header.substr(0, space));
  const std::string_view rest = trim(header.substr(space + 1));
  if (scheme == "bearer") {
    auto caller = caller_of_token(rest);
    if (!caller) return bad_token();
    return std::move(*caller);
  }
  const auto pair = scheme == "basic" ? base64_decode(rest) : std::nullopt;
  const std::size_t colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos) return bad_token();
  auto caller = caller_of_token(std::string_view(*pair).substr(colon + 1));
  if (!caller || !caller->application || caller->user != pair->substr(0, colon)) return bad_token();
  return std::move(*caller);
}

// What somebody may.

std::vector<std::string> People::vcs_of(const UserRecord& user) const {
  const auto existing = options_.virtual_clusters();
  if (directory_.is_admin(user)) return existing;
  auto granted = directory_.granted_vcs(user);
  std::erase_if(granted, [&](const std::string& vc) { return !contains(existing, vc); });
  return granted;
}

bool People::may_use(std::string_view user, std::string_view vc) const {
  const UserRecord* found = directory_.find_user(user);
  return found != nullptr && contains(vcs_of(*found), vc);
}

std::vector<std::string> People::kubernetes_groups(const UserRecord& user) const {
  std::vector<std::string> groups;
  for (const std::string& group : user.groups)
    if (directory_.find_group(group) != nullptr) groups.push_back("pai:" + group);
  // Whichever group makes them an administrator: one binding is enough for Kubernetes.
  const std::string admins = std::string("pai:") + kAdminGroup;
  if (directory_.is_admin(user) && !contains(groups, admins)) groups.push_back(admins);
  return groups;
}

json::Object user_info(const People& people, const UserRecord& user) {
  return {{"username", user.name},
          {"grouplist", array_of(user.groups)},
          {"email", user.email},
          {"extension", user.extension},
          {"admin", people.directory().is_admin(user)},
          {"virtualCluster", array_of(people.vcs_of(user))},
          {"storageConfig", array_of(people.directory().storages(user))}};
}

json::Object group_info(const GroupRecord& group) {
  return {{"groupname", group.name},
          {"description", group.description},
          {"externalName", group.external_name},
          {"extension", group.extension}};
}

}  // namespace muster::pai
