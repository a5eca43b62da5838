#include "agent/pod/pod_tokens.h"

#include <algorithm>

#include "base/log.h"
#include "kube/meta.h"
#include "kube/resources.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;
using std::chrono::seconds;

constexpr std::int64_t kLifetimeLeast_s = 600;  // the server's own bound
constexpr std::int64_t kLifetime_s = 3600;
constexpr Duration kRetry = seconds(10);
/// The kubelet's rule: at four fifths of the lifetime, and at least daily.
constexpr std::int64_t kRenewMax_s = 24 * 3600;

/// What each audience is asked for; the shortest lifetime counts.
std::map<std::string, std::int64_t> wanted_lifetimes(const json::Value& pod) {
  std::map<std::string, std::int64_t> out;
  for (const auto& volume : json::array_at(pod, "spec", "volumes")) {
    for (const auto& source : json::array_at(volume, "projected", "sources")) {
      const auto& wanted = at(source, "serviceAccountToken");
      if (wanted.is_null()) continue;
      const auto lifetime =
          std::max(kLifetimeLeast_s, json::as_int(at(wanted, "expirationSeconds"), kLifetime_s));
      const auto [known, fresh] = out.emplace(text(at(wanted, "audience")), lifetime);
      if (!fresh) known->second = std::min(known->second, lifetime);
    }
  }
  return out;
}

Duration renewal_after(std::int64_t lifetime_s) {
  return std::min<Duration>(seconds(lifetime_s) * 8 / 10, seconds(kRenewMax_s));
}

json::Value token_request(const json::Value& pod,
                          const std::string& audience,
                          std::int64_t lifetime) {
  json::Object bound{{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"name", kube::name_of(pod)},
                     {"uid", kube::uid_of(pod)}};
  json::Object spec{{"expirationSeconds", lifetime}, {"boundObjectRef", std::move(bound)}};
  if (!audience.empty()) spec["audiences"] = json::Array{audience};
  return json::Object{{"apiVersion", kube::resources::kTokenRequests.api_version()},
                      {"kind", "TokenRequest"},
                      {"spec", std::move(spec)}};
}

}  // namespace

Task<void> PodTokens::fetch(Context& context, client::ObjectPtr pod) {
  const auto ns = std::string(kube::namespace_of(*pod));
  const auto account = text(at(*pod, "spec", "serviceAccountName"));
  for (const auto& [audience, lifetime] : wanted_lifetimes(*pod)) {
    if (tokens_[audience].renew_at > context.loop.now()) continue;
    auto body = token_request(*pod, audience, lifetime);
    const auto answer = co_await context.client.post_subresource(
        client::resources::kServiceAccounts, ns, account, "token", std::move(body));
    auto& token = tokens_[audience];
    if (!answer) {
      log::warn("agent", "token of service account {}/{}: {}", ns, account, answer.error().message);
      token.renew_at = context.loop.now() + kRetry;
      continue;
    }
    token.text = text(at(*answer, "status", "token"));
    // The server may have given it less.
    const auto given = json::as_int(at(*answer, "spec", "expirationSeconds"), lifetime);
    token.renew_at = context.loop.now() + renewal_after(given);
  }
}

std::map<std::string, std::string> PodTokens::by_audience() const {
  std::map<std::string, std::string> out;
  for (const auto& [audience, token] : tokens_) out[audience] = token.text;
  return out;
}

Time PodTokens::renew_at() const {
  Time first;
  for (const auto& [audience, token] : tokens_) {
    if (first == Time{} || token.renew_at < first) first = token.renew_at;
  }
  return first;
}

}  // namespace muster::agent
