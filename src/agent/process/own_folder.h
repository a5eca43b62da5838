/// The folder on disk that a container has to itself: its /tmp, /var/tmp, /root and /home, and what an
/// overlay over an image needs.
///
/// Making and removing a dozen directories is a large part of what a short pod costs, and on some
/// disks each removal is waited for. So a folder in which a container left nothing serves another. The
/// next one finds it as if it was new; what it cannot see is whether somebody else still holds one of
/// its directories open, and therefore a container that could have handed one on (through a socket in
/// a volume that other pods have, too) takes its folder with it.
#pragma once

#include <sys/types.h>

#include <string>

#include "agent/process/mask.h"
#include "agent/process/user_range.h"
#include "agent/process/wire.h"
#include "base/result.h"

namespace muster::agent::process {

/// Those of the folder's directories that a container of the host sees, where they are in its root.
struct OwnDirectory {
  const char* name;
  const char* target;
  mode_t mode;
};
inline constexpr OwnDirectory kOwnDirectories[] = {{"tmp", "/tmp", 01777},
                                                   {"var-tmp", "/var/tmp", 01777},
                                                   {"root", "/root", 0700},
                                                   {"home", "/home", 0755}};
/// And those that an overlay over an image needs.
inline constexpr const char* kImageDirectories[] = {"upper", "work", "merged"};

enum class FolderKind { kHost, kImage };
/// One in the plan's `ahead` that nobody has taken yet.
Result<std::string> make_folder(const RootPlan& plan, const Owner& owner, FolderKind kind);

/// Where a container's folder is.
std::string folder_of(const ShimConfig& shim, const ContainerConfig& config);
/// Moves a folder there. A restart begins with nothing of the attempt before. False: it is not there
/// any more, since a new agent removes what was made ahead under the one before.
Result<bool> move_in(const std::string& folder,
                     const ShimConfig& shim,
                     const ContainerConfig& config);

/// Whether a container has files together with others, and so a way to hand something on.
bool shares_files(const ShimConfig& shim, const ContainerConfig& config);
/// Moves a container's folder back, if all is over with the container and nothing of it is left in
/// the folder. Its name in the plan's `ahead`; empty: it stays where it is.
std::string take_back(const ShimConfig& shim, const ContainerConfig& config);
/// Makes one that was taken back like one that is new. False: it cannot be used.
bool renew_folder(const std::string& folder, const RootPlan& plan, const Owner& owner);

}  // namespace muster::agent::process
