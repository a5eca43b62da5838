/// From a request to its answer: path, user, permission, verb.
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

class Router {
 public:
  explicit Router(Core& core) : core_(core) {}
  Task<void> handle(net::Request request, net::ResponseWriter& writer);

 private:
  Task<void> serve(Call& call, net::ResponseWriter& writer);
  Task<Result<net::Response>> dispatch(Call& call, Accepted accepted);
  Result<void> route(Call& call) const;
  Result<User> impersonated(const net::Request& request, User user) const;
  Result<void> authorize(const Call& call) const;
  Task<void> send(const Call& call, net::ResponseWriter& writer, net::Response response);

  Core& core_;
};

}  // namespace muster::apiserver
