/// ResourceQuota: what a namespace may hold at once.
///
/// Usage is kept per quota and follows each published change; what is being written now is counted
/// as well, so concurrent creates cannot pass a limit together. status.used follows shortly after.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "apiserver/core.h"
#include "base/quantity.h"

namespace muster::apiserver {

class Quota {
 public:
  using Amounts = std::map<std::string, Quantity>;
  struct Charge {
    std::vector<std::pair<std::string, Amounts>> pending;  // by quota key
  };

  explicit Quota(Core& core) : core_(core) {}
  void start();
  void observe(Collection& collection, const Change& change);

  /// Forbidden with Kubernetes' text when a quota of the namespace would be exceeded.
  Result<Charge> charge(const Resource& resource,
                        const std::string& ns,
                        const json::Value& object,
                        bool dry_run);
  /// The write has ended, one way or the other.
  void settle(const Charge& charge);

 private:
  struct Usage {
    StoredPtr quota;
    Amounts used, pending;
  };
  void rebuild(const StoredPtr& quota);
  void account(Collection& collection, const json::Value& object, std::string_view ns, bool add);
  void mark_dirty(const std::string& key);
  Task<void> write_status();

  Core& core_;
  std::map<std::string, Usage> usage_;  // "ns/quota"
  std::set<std::string> dirty_;
  std::unique_ptr<Signal> wake_;
};

}  // namespace muster::apiserver
