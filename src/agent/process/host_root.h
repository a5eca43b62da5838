/// The root of a container that runs on this machine's own files.
///
///     what the container writes        tmpfs of its own, gone with it
///     the mask (mask.h)                what it shall not see
///     "/" of the machine               never changed
///
/// with a /dev, /sys and /run of its own. Roots are all alike until a container moves in, so that
/// they can be made ahead: a root is a tree of mounts that is attached nowhere yet.
#pragma once

#include "agent/fd.h"
#include "agent/process/mask.h"
#include "base/result.h"

namespace muster::agent::process {

/// In a mount namespace of the caller's own whose mounts reach nobody else. Sees /dev/pts, /dev/shm
/// and the network of the caller.
Result<Fd> make_host_root(const RootPlan& plan);
/// The same from any process with one thread, in a namespace that is left again.
Result<Fd> make_host_root_apart(const RootPlan& plan);

/// /sys and /dev of a container's own, in any root.
Result<void> furnish_root(int root);

}  // namespace muster::agent::process
