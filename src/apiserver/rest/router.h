/// From a request to its answer: path, user, permission, verb.
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

class Router {
 public:
  explicit Router(Core& core) : core_(core) {}
  Task<void> handle(net::Request request, net::ResponseWriter& writer);

 private:
  /// Reads what is asked for and who asks.
  Result<void> identify(Call& call) const;
  /// No coroutine of its own: every request passes here, and frames cost.
  Task<Result<net::Response>> dispatch(Call& call, Accepted accepted);
  /// POST /muster/v1/reads: several gets and lists in one round trip, each answered as if it had
  /// come alone.
  Task<net::Response> read_many(const Call& call);
  Task<net::Response> read_one(const Call& outer, std::string target);
  Result<void> route(Call& call) const;
  Result<void> authorize(const Call& call) const;
  Task<Result<void>> send(const Call& call, net::ResponseWriter& writer, net::Response response);

  Core& core_;
};

}  // namespace muster::apiserver
