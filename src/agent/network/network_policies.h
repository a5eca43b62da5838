/// Follows NetworkPolicies, and has the runtime fence pods as they say.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "agent/context.h"
#include "agent/network/fences.h"

namespace muster::agent {

class NetworkPolicies {
 public:
  /// `pods`: those that have an address now.
  NetworkPolicies(Context& context, std::function<std::vector<AddressedPod>()> pods);
  /// Adds its handlers; before the informers start.
  void follow();
  /// All that there is was seen: nothing is written before.
  void begin();
  /// A pod got or lost an address, or its labels changed. Cheap: many changes become one update,
  /// and without policies there is nothing to do.
  void changed();
  /// Until what holds now is in force.
  Task<Result<void>> in_force();
  void stop();

 private:
  struct Written {
    std::vector<Fence> fences;
    std::vector<std::string> addresses;  // a new link on the bridge is fenced as well
    bool operator==(const Written&) const = default;
  };
  Written wanted() const;
  Task<void> apply(std::shared_ptr<bool> alive);

  Context& context_;
  std::function<std::vector<AddressedPod>()> pods_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Signal> applied_;
  std::uint64_t asked_ = 0, done_ = 0;
  bool begun_ = false;
  bool applying_ = false;
  Result<void> last_;
  std::optional<Written> written_;
};

/// As the API server has them.
kube::Resource network_policy_resource();

}  // namespace muster::agent
