/// The root of a container where muster is not root.
///
/// Inside a user namespace the kernel allows no overlay of "/", but binds of what is in it: a tmpfs
/// of the container's own, in it the machine's directories read-only, those that programs like to
/// write to (/etc, /opt, /srv, /var) under layers of their own, and nothing where secrets would be.
/// The container's root is the person who started muster: what they cannot read or write, it cannot.
#pragma once

#include <string>

#include "agent/process/mask.h"
#include "base/result.h"

namespace muster::agent::process {

/// Mounted at `merged`; `scratch` is the tmpfs that layers lie in.
Result<void> make_bound_root(const RootPlan& plan,
                             const std::string& scratch,
                             const std::string& merged);

}  // namespace muster::agent::process
