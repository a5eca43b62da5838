/// Groups whose members must be near each other. A domain is one value of a node label (a HyperNode
/// of one tier, a rack).
#pragma once

#include <string>
#include <vector>

#include "engine/volcano/snapshot.h"

namespace muster::engine::volcano {

/// The domains of the label that hold every member that is placed already, by value.
[[nodiscard]] std::vector<std::vector<NodeId>> domains_of(const Snapshot& snapshot,
                                                          JobIx job,
                                                          const std::string& key);

/// How full the domain is in what the group asks for, in millionths summed over the dimensions.
[[nodiscard]] Wide domain_fill(const Snapshot& snapshot,
                               JobIx job,
                               const std::vector<NodeId>& nodes);

}  // namespace muster::engine::volcano
