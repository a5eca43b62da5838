/// The cluster's API, as the portal itself and as somebody who is signed in. Acting as others is
/// Kubernetes' impersonation, so the API server decides what they may do, embedded or not.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "client/client.h"
#include "portal/session/user.h"

namespace muster::portal {

class Kube {
 public:
  /// `sign` adds the portal's own credential to a request; null where the transport has it.
  Kube(client::Client& client, std::function<void(net::Request&)> sign)
      : client_(client), sign_(std::move(sign)) {}

  [[nodiscard]] client::Client& own() { return client_; }

  /// A request in that user's name; headers of the given one are kept, but for credentials.
  [[nodiscard]] net::Request request_as(const User& user, net::Request request) const;
  Task<Result<net::Response>> send_as(const User& user, net::Request request);
  /// The answer as JSON; a Status becomes an Error. `body` null: none.
  Task<Result<json::Value>> call_as(const User& user,
                                    std::string method,
                                    std::string target,
                                    json::Value body,
                                    std::string content_type = "application/json");

  /// Whose token this is.
  Task<Result<User>> user_of_token(std::string token);
  /// Somebody who signed in with a token, as they are now; NotFound when the account is gone, or is
  /// another of the same name.
  Task<Result<User>> user_now(User user);
  struct Act {
    std::string verb, group, resource, subresource, ns, name;
  };
  Task<bool> may(User user, Act act);

  [[nodiscard]] net::Client& http() { return client_.http(); }

 private:
  client::Client& client_;
  std::function<void(net::Request&)> sign_;
};

}  // namespace muster::portal
