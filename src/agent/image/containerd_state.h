/// Where a containerd that runs pods has its `state`: bundles, sockets and the mounted roots of what runs.
///
/// The root of a pod with users of its own walks the path to its files, so that everybody must be able to
/// pass through it, and the data folder lets nobody pass. Hence it lies in /run, in a folder named after
/// containerd's own, which can be passed through but not be listed. Like the pods it outlives muster.
#pragma once

#include <string>

namespace muster::agent::image {

/// For the containerd of `directory`; made if it is not there. Where that cannot be, or pods of an earlier
/// muster are in the folder itself, it is there.
std::string containerd_state(const std::string& directory);
/// Once nothing runs any more.
void remove_containerd_state(const std::string& directory);
/// Those whose folder is gone.
void remove_orphaned_states();

}  // namespace muster::agent::image
