/// The root of a container that runs on this machine's own files.
///
///     what the container writes        tmpfs of its own, gone with it
///     the mask (mask.h)                what it shall not see
///     "/" of the machine               never changed
///
/// with a /dev, /sys and /run of its own, and a folder on disk that holds its /tmp, /var/tmp, /root
/// and /home: what is large, such as temporary files and caches, must not count as memory. Roots are
/// all alike until a container moves in, so that they can be made ahead: a root is a mount namespace
/// of which it is all that is left, and its folder is moved to the container's place.
#pragma once

#include <string>

#include "agent/fd.h"
#include "agent/process/mask.h"
#include "agent/process/own_folder.h"
#include "agent/process/user_range.h"
#include "base/result.h"

namespace muster::agent::process {

struct HostRoot {
  Fd mounts;           // the namespace
  std::string folder;  // in the plan's `ahead`; the taker moves it
  /// For a container of an image: of the root there is only the /dev and /sys.
  FolderKind kind = FolderKind::kHost;
};

/// What is there already when a root is made.
struct Parts {
  std::string used;    // a folder that was taken back (own_folder.h); empty: none
  int furniture = -1;  // not owned
};

/// In a mount namespace of the caller's own whose mounts reach nobody else, at the plan's "merged".
/// Sees the network of the caller. The root's folder, in the plan's `ahead`: a new one, or that of
/// `parts`, if it is any good.
Result<std::string> make_host_root(const RootPlan& plan,
                                   const Owner& owner,
                                   const Parts& parts = {});
/// The same ahead, by any process with one thread, in a namespace that it leaves again.
Result<HostRoot> make_host_root_apart(const RootPlan& plan,
                                      const Owner& owner,
                                      const Parts& parts = {});
/// And what a container of an image can be given ahead.
Result<HostRoot> make_image_parts_apart(const RootPlan& plan, const Owner& owner, int furniture);

/// The /dev and /sys that all containers of the caller's network can have, one after the other, in a
/// mount namespace of which they are all that is left. `shared` ones are read-only: who wants devices
/// besides, or is root of the machine and would expect to change its /dev, has some of its own.
Result<Fd> make_furniture_apart(const RootPlan& plan, bool shared);
/// /sys and /dev for any root: those of this namespace, or of the container's own.
Result<void> furnish_root(int root, int furniture = -1);

}  // namespace muster::agent::process
