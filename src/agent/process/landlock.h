/// A folder that a process and everything it starts cannot open, read, write or empty any more: what
/// is left to hide the data folder from pods where neither root nor user namespaces are to be had.
///
/// The kernel's Landlock knows only what is allowed. So everything beside the way to the folder is
/// allowed, as it is at that moment:
///
///     /home/ann/.muster     allowed: all of "/" but home, all of /home but ann, all of /home/ann but
///                           .muster; of "/", /home and /home/ann themselves, nothing
///
/// Directories on the way can be listed, but nothing new can be made in them. Sockets in the folder
/// can still be connected to; they ask for a key (wire.h) or a credential.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::agent::process {

/// Why it cannot be done here; empty: it can.
std::string no_landlock();
/// From here on. Programs that are setuid give no rights any more.
Result<void> close_folder(const std::string& folder);

}  // namespace muster::agent::process
