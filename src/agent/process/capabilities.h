/// What a container's root may do: the set that container runtimes give by default, plus and minus
/// what the pod asks for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::agent::process {

/// As bits, numbered like the kernel's. Names with or without "CAP_", "ALL" for every one; unknown
/// names mean nothing. Drops first, then adds, as Kubernetes has it.
std::uint64_t capability_set(const std::vector<std::string>& add,
                             const std::vector<std::string>& drop);
/// More than the usual set: such a container may change its network, mounts or the machine.
bool beyond_usual(const std::vector<std::string>& add, const std::vector<std::string>& drop);
/// Adds some that only the machine's root has a use for: over its network, clock, memory, devices.
/// Those that the Pod Security Standards' baseline lets anybody add are none of them.
bool needs_machine(const std::vector<std::string>& add);
/// Takes all others from the calling process for good; they are gone after its next execve.
void limit_capabilities(std::uint64_t allowed);

}  // namespace muster::agent::process
