/// From a request to its answer: path, user, permission, verb. Calls of this process (in_process.h)
/// enter after the path: every call passes authorize(), and every one but streams perform().
#pragma once

#include "apiserver/audit/record.h"
#include "apiserver/rest/rest.h"
#include "apiserver/rest/summary.h"

namespace muster::apiserver {

class Router {
 public:
  explicit Router(Core& core) : core_(core) {}
  Task<void> handle(net::Request request, net::ResponseWriter& socket);

  /// Whether the user of the call may do what it says.
  Result<void> authorize(const Call& call, audit::Record& record) const;
  /// Does what the call says, when it is its turn.
  Task<Result<Reply>> perform(Call& call, Accepted accepted);
  /// One more answer, for /metrics.
  void count(std::string_view method, int status);

 private:
  /// Reads what is asked for and who asks.
  Result<void> identify(Call& call, audit::Record& record) const;
  /// Answers a request that is known by who asks and what they ask for.
  Task<void> serve(Call& call, Sight sight, audit::Trail& writer);
  /// Paths that only our own server has.
  [[nodiscard]] bool is_our_own(const Call& call) const;
  Task<void> serve_our_own(Call& call, audit::Trail& writer);
  /// As authorize(); who may not see the whole object may be allowed its summary.
  Result<Sight> authorize_sight(const Call& call, audit::Record& record) const;
  /// No coroutine of its own: every request passes here, and frames cost.
  Task<Result<Reply>> dispatch(Call& call, Accepted accepted);
  /// POST /muster/v1/reads: several gets and lists in one round trip, each answered as if it had
  /// come alone.
  Task<net::Response> read_many(const Call& call, const std::string& id);
  /// `id`: of the whole request in the audit log.
  Task<net::Response> read_one(const Call& outer, const std::string& id, std::string target);
  Result<void> route(Call& call) const;
  /// The same for a path that is no resource's.
  Result<void> authorize_path(const Call& call, audit::Record& record) const;
  [[nodiscard]] AnswersCall answers_call(Call& call) const;
  /// GET /muster/v1/audit: the newest lines of the audit log.
  [[nodiscard]] net::Response read_audit(const Call& call) const;
  Task<Result<void>> send(const Call& call, net::ResponseWriter& writer, net::Response response);

  Core& core_;
};

}  // namespace muster::apiserver
