#include "apiserver/auth/impersonation.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/auth/rbac.h"
#include "base/strings.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kExtraPrefix = "impersonate-extra-";
constexpr std::string_view kAuthentication = kube::groups::kAuthentication;

/// What the headers ask for.
struct Wanted {
  std::string name, uid;
  std::vector<std::string> groups;
  std::map<std::string, std::vector<std::string>> extra;
};

Wanted wanted_by(const net::Request& request) {
  Wanted wanted;
  wanted.name = std::string(request.headers.get("Impersonate-User"));
  wanted.uid = std::string(request.headers.get("Impersonate-Uid"));
  for (const std::string_view group : request.headers.all("Impersonate-Group"))
    wanted.groups.emplace_back(group);
  for (const auto& [header, value] : request.headers.fields()) {
    const std::string lower = to_lower(header);
    if (!lower.starts_with(kExtraPrefix)) continue;
    const std::string raw = lower.substr(kExtraPrefix.size());
    const auto key = percent_decode(raw, false);
    wanted.extra[key.value_or(raw)].push_back(value);
  }
  return wanted;
}

/// As Go prints the struct that has no name.
std::string go_text(const Wanted& wanted) {
  std::vector<std::string> groups, extra;
  for (const std::string& group : wanted.groups) groups.push_back(quoted(group));
  for (const auto& [key, values] : wanted.extra) {
    std::vector<std::string> quotes;
    for (const std::string& value : values) quotes.push_back(quoted(value));
    extra.push_back(fmt::format("{}:[]string{{{}}}", quoted(key), join(quotes, ", ")));
  }
  return fmt::format(
      "&user.DefaultInfo{{Name:\"\", UID:{}, Groups:[]string{}, Extra:map[string][]string{}}}",
      quoted(wanted.uid),
      groups.empty() ? "(nil)" : "{" + join(groups, ", ") + "}",
      extra.empty() ? "(nil)" : "{" + join(extra, ", ") + "}");
}

/// Namespace and name of system:serviceaccount:NAMESPACE:NAME; anything else is an ordinary user,
/// whatever it begins with.
std::optional<std::pair<std::string, std::string>> account_in(std::string_view name) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const auto parts = split(name.substr(kPrefix.size()), ':');
  if (parts.size() != 2 || !kube::check_dns_label(parts[0]).empty() ||
      !kube::check_dns_subdomain(parts[1]).empty())
    return std::nullopt;
  return std::pair{parts[0], parts[1]};
}

class Asker {
 public:
  Asker(Core& core, const User& user) : core_(core), user_(user) {}
  Result<void> may(std::string_view group,
                   std::string_view resource,
                   std::string_view name,
                   std::string_view ns = "",
                   std::string_view subresource = "") const {
    Attributes attributes;
    attributes.verb = "impersonate";
    attributes.group = std::string(group);
    attributes.resource = std::string(resource);
    attributes.subresource = std::string(subresource);
    attributes.name = std::string(name);
    attributes.ns = std::string(ns);
    return core_.authorizer->check(user_, attributes);
  }

 private:
  Core& core_;
  const User& user_;
};

}  // namespace

Result<User> impersonated(Core& core, const net::Request& request, User user) {
  Wanted wanted = wanted_by(request);
  if (wanted.name.empty()) {
    if (wanted.uid.empty() && wanted.groups.empty() && wanted.extra.empty()) return user;
    return fail(bad_request(
        fmt::format("requested {} without impersonating a user name", go_text(wanted))));
  }
  const Asker asker(core, user);
  User acting;
  acting.name = wanted.name;
  if (const auto account = account_in(wanted.name)) {
    const auto allowed = asker.may("", "serviceaccounts", account->second, account->first);
    if (!allowed) return fail(allowed.error());
    if (wanted.groups.empty())
      acting.groups = {"system:serviceaccounts", "system:serviceaccounts:" + account->first};
  } else {
    const auto allowed = asker.may("", "users", wanted.name);
    if (!allowed) return fail(allowed.error());
  }
  for (std::string& group : wanted.groups) {
    const auto allowed = asker.may("", "groups", group);
    if (!allowed) return fail(allowed.error());
    acting.groups.push_back(std::move(group));
  }
  for (auto& [key, values] : wanted.extra) {
    for (const std::string& value : values) {
      const auto allowed = asker.may(kAuthentication, "userextras", value, "", key);
      if (!allowed) return fail(allowed.error());
    }
    acting.extra[key] = std::move(values);
  }
  if (!wanted.uid.empty()) {
    const auto allowed = asker.may(kAuthentication, "uids", wanted.uid);
    if (!allowed) return fail(allowed.error());
    acting.uid = std::move(wanted.uid);
  }
  const std::string_view always =
      acting.name == "system:anonymous" ? "system:unauthenticated" : "system:authenticated";
  if (!acting.in_group(always) && !acting.in_group("system:unauthenticated"))
    acting.groups.emplace_back(always);
  return acting;
}

}  // namespace muster::apiserver
