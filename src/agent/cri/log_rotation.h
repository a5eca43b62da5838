/// Logs that a container runtime writes, turned over by us as a kubelet does: a file that is too
/// long is renamed, and the runtime is told to open another.
#pragma once

#include <string>

namespace muster::agent::cri {

/// True: it was renamed, and the oldest beyond the fifth removed; the runtime has to be told.
/// Blocking.
bool turn_log_over(const std::string& path);

}  // namespace muster::agent::cri
