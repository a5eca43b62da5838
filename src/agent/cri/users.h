/// Users of a pod's own (`hostUsers: false`) under a container runtime: a range of the machine's users
/// that no other pod has, and whether the runtime can do it at all. Containerd below 2.0 ignores the wish
/// or refuses it half-way, and runc below 1.2 cannot show a volume's owners, so the runtime is asked first;
/// nobody is root of the machine who asked not to be. On the loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/image/protobuf.h"
#include "agent/process/address_pool.h"
#include "base/result.h"

namespace muster::agent::cri {

/// An IDMapping: 0 and up of the pod are `first` and up of the machine.
image::MessageWriter id_mapping(std::uint32_t first);
/// A UserNamespace of that range.
image::MessageWriter user_namespace(std::uint32_t first);
/// The range of a UserNamespace that was written so.
std::optional<std::uint32_t> read_user_namespace(std::string_view message);

/// Whether the answer to Status says that the handler gives pods users of their own; empty: the default one.
Result<bool> read_maps_users(std::string_view status_answer, const std::string& handler);

/// The first id of a range, which is another's once nobody holds this. Null: the machine's users.
using UserRange = std::shared_ptr<const std::uint32_t>;

class UserRanges {
 public:
  /// `agent_directory` makes it unlikely that agents of one machine choose the same ones.
  explicit UserRanges(const std::string& agent_directory);
  /// A free one; null: all are taken.
  UserRange take();
  /// One that a pod has had since before this agent was started.
  UserRange hold(std::uint32_t first);

 private:
  UserRange lend(std::uint32_t slot);

  std::shared_ptr<process::AddressPool> slots_;  // whoever holds a range may outlive us
};

}  // namespace muster::agent::cri
