/// What network policies mean for the pods of this machine. Pure.
///
/// As Kubernetes has it: a pod that no policy selects is open; one that some select lets pass what
/// any of them allows, in the directions that they speak of. This machine itself (probes, names, the
/// API server, host ports and port-forward) always reaches its pods and is reached by them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/runtime.h"
#include "client/informer.h"

namespace muster::agent {

/// A pod with an address of its own that has not ended.
struct AddressedPod {
  client::ObjectPtr pod;
  std::string address;
};

/// `namespaces` by name. The order of what comes out depends on nothing but what goes in.
std::vector<Fence> fences(const std::vector<client::ObjectPtr>& policies,
                          const std::map<std::string, client::ObjectPtr>& namespaces,
                          const std::vector<AddressedPod>& pods);

/// Networks that together are `network` less each of `except`; nothing where it is not IPv4.
std::vector<std::string> network_without(std::string_view network,
                                         const std::vector<std::string>& except);

}  // namespace muster::agent
