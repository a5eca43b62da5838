#include "agent/image/credentials.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/secret_types.h"
#include "net/tls/tls.h"

namespace muster::agent::image {
namespace {

/// "https://index.docker.io/v1/" and "docker.io" are written by the same people for the same thing.
std::string canonical_key(std::string_view text) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (text.starts_with(scheme)) text.remove_prefix(scheme.size());
  }
  const auto slash = text.find('/');
  std::string host(text.substr(0, slash));
  std::string path(slash == std::string_view::npos ? "" : text.substr(slash));
  for (const std::string_view version : {"/v1/", "/v2/"}) {
    if (path.starts_with(version)) path.erase(0, version.size() - 1);
  }
  if (path == "/v1" || path == "/v2") path.clear();
  while (path.ends_with('/')) path.pop_back();
  if (host == "index.docker.io" || host == "registry-1.docker.io") host = "docker.io";
  return host + path;
}

/// A part of a host's name against one with `*` in it. The last star takes more when the rest does
/// not fit, so that hostile patterns cost no more than the product of both lengths.
bool part_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, behind_star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      behind_star = ++p;
      taken = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (behind_star != std::string_view::npos) {
      p = behind_star;
      t = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

bool host_matches(std::string_view pattern, std::string_view host) {
  const auto port_of = [](std::string_view& text) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos || text.ends_with(']')) return std::string_view();
    const auto port = text.substr(colon + 1);
    text = text.substr(0, colon);
    return port;
  };
  const auto wanted_port = port_of(pattern), port = port_of(host);
  if (wanted_port != port) return false;
  const auto wanted = split(pattern, '.'), parts = split(host, '.');
  if (wanted.size() != parts.size()) return false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!part_matches(wanted[i], parts[i])) return false;
  }
  return true;
}

Login login_of(const json::Value& entry) {
  Login login;
  login.username = json::text_at(entry, "username");
  login.password = json::text_at(entry, "password");
  login.identity_token = json::text_at(entry, "identitytoken");
  if (!login.empty()) return login;
  // "auth" is both in one: base64 of user:password.
  const auto both = base64_decode(trim(json::string_at(entry, "auth")));
  if (!both) return login;
  const auto colon = both->find(':');
  if (colon == std::string::npos) return login;
  login.username = both->substr(0, colon);
  login.password = both->substr(colon + 1);
  while (login.password.ends_with('\0')) login.password.pop_back();
  return login;
}

}  // namespace

bool key_matches(std::string_view key, std::string_view repository) {
  const auto wanted = canonical_key(key);
  const auto wanted_slash = wanted.find('/'), slash = repository.find('/');
  const std::string_view wanted_host(wanted.data(), std::min(wanted_slash, wanted.size()));
  if (!host_matches(wanted_host, repository.substr(0, slash))) return false;
  if (wanted_slash == std::string::npos) return true;
  if (slash == std::string_view::npos) return false;
  return repository.substr(slash).starts_with(std::string_view(wanted).substr(wanted_slash));
}

void Credentials::add(const std::string& key, Login login) {
  if (login.empty()) return;
  entries_.push_back({canonical_key(key), std::move(login)});
}

void Credentials::add_config(const json::Value& auths) {
  if (!auths.is_object()) return;
  for (const auto& [key, entry] : auths.get_object()) add(std::string(key), login_of(entry));
}

std::string Credentials::add_secret(const json::Value& secret) {
  const auto type = json::string_at(secret, "type");
  const bool old = type == kube::secret_types::kDockerConfig;
  if (!old && type != kube::secret_types::kDockerConfigJson)
    return fmt::format(
        "its type is \"{}\"; wanted {}", type, kube::secret_types::kDockerConfigJson);
  const auto text =
      base64_decode(json::string_at(secret, "data", old ? ".dockercfg" : ".dockerconfigjson"));
  if (!text) return "its data is not base64";
  const auto config = json::parse(*text);
  if (!config) return "its data is not JSON: " + config.error().message;
  add_config(old ? *config : json::at(*config, "auths"));
  return "";
}

std::vector<Login> Credentials::matching(const Reference& image) const {
  std::vector<const Entry*> found;
  const auto repository = image.repository();
  for (const auto& entry : entries_) {
    if (key_matches(entry.key, repository)) found.push_back(&entry);
  }
  std::stable_sort(found.begin(), found.end(), [](const Entry* a, const Entry* b) {
    return a->key.size() > b->key.size();
  });
  std::vector<Login> out;
  for (const auto* entry : found) {
    if (std::find(out.begin(), out.end(), entry->login) == out.end()) out.push_back(entry->login);
  }
  return out;
}

std::string fingerprint(const Login& login) {
  if (login.empty()) return "";
  const auto digest =
      net::sha256(fmt::format("{}\n{}\n{}", login.username, login.password, login.identity_token));
  return base64url_encode(digest);
}

}  // namespace muster::agent::image
