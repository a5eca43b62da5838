/// PodDisruptionBudgets: whether an eviction is allowed now, and status.disruptionsAllowed.
#pragma once

#include <set>
#include <string>

#include "apiserver/core.h"

namespace muster::apiserver {

class Disruption {
 public:
  explicit Disruption(Core& core) : core_(core) {}
  void start();
  void observe(Collection& collection, const Change& change);
  /// TooManyRequests when evicting the pod now would break a budget of its namespace.
  Result<void> check(const json::Value& pod) const;

 private:
  struct Counts {
    std::int64_t expected = 0, healthy = 0, desired = 0;
    [[nodiscard]] std::int64_t allowed() const { return healthy > desired ? healthy - desired : 0; }
  };
  [[nodiscard]] Counts count(const Stored& budget) const;
  Task<void> write_status();

  Core& core_;
  std::set<std::string> dirty_;  // namespaces
  std::unique_ptr<Signal> wake_;
};

}  // namespace muster::apiserver
