/// Whom to be at which registry: what pull secrets and the image file say. Pure.
///
/// Keys are hosts with an optional path, `*` for a part of the host's name (`*.example`); the more
/// exact key goes first, and all that match are tried in turn, as a kubelet does.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/image/cri_messages.h"
#include "agent/image/reference.h"
#include "json/json.h"

namespace muster::agent::image {

class Credentials {
 public:
  /// A Secret of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg; others, and what
  /// cannot be read, add nothing. Says what was wrong with it, or nothing.
  std::string add_secret(const json::Value& secret);
  void add(const std::string& key, Login login);
  /// In the order in which they are to be tried.
  [[nodiscard]] std::vector<Login> matching(const Reference& image) const;

 private:
  struct Entry {
    std::string key;
    Login login;
  };
  void add_config(const json::Value& auths);
  std::vector<Entry> entries_;
};

/// Whether a key is meant for the repository ("registry.example:5000/team/train").
bool key_matches(std::string_view key, std::string_view repository);

/// What tells logins apart without telling them.
std::string fingerprint(const Login& login);

}  // namespace muster::agent::image
