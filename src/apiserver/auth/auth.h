/// Who is asking: client certificate, the kubeconfig's token, service-account tokens, or Muster's
/// own components.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "apiserver/core.h"

namespace muster::apiserver {

struct TokenSubject {
  std::string ns, account, account_uid;
  /// Bound to an object, when set: the token is good while that very object is there.
  std::string bound_kind;  // "pod", "secret", "node"
  std::string bound_name, bound_uid;
  std::vector<std::string> audiences;
  std::int64_t lifetime_s = 3600;
};

/// UserInfo of authentication.k8s.io.
json::Value user_info(const User& user);
/// One of Muster's own components, which needs no credential.
User component_user(std::string name);

class Authenticator {
 public:
  explicit Authenticator(Core& core) : core_(core) {}
  /// Unauthorized without a good credential.
  Result<User> authenticate(const net::Request& request, Time now);
  /// The user behind a bearer token, and the audiences it holds for.
  Result<User> user_of_token(const std::string& token,
                             Time now,
                             std::vector<std::string>* audiences);
  /// A signed service-account token; `expires` receives its end.
  Result<std::string> issue(const TokenSubject& subject, Time* expires);

 private:
  struct Known {
    User user;
    std::vector<std::string> audiences;
    std::int64_t not_before_s = 0, expires_s = 0;
    /// The collection, key and uid of what the token is bound to; empty if to nothing.
    std::string bound_storage, bound_key, bound_uid;
    std::string account_key, account_uid;
  };
  Core& core_;
  /// Signatures that held: checking one costs far more than finding it. Bounded.
  std::unordered_map<std::string, Known> known_;
  std::uint64_t identities_ = 0;
};

}  // namespace muster::apiserver
