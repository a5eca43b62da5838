/// The kernel's mount calls as small functions. A mount is made or copied first, held by a
/// descriptor while the root changes, and attached afterwards: what is attached is what was opened,
/// whatever names stand for by then.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/fd.h"
#include "agent/process/user_range.h"
#include "agent/runtime.h"
#include "base/result.h"

namespace muster::agent::process {

using MountOptions = std::vector<std::pair<const char*, std::string>>;
/// A file system of its own, attached nowhere. `attributes`: MOUNT_ATTR_….
Result<Fd> new_filesystem(const char* type, const MountOptions& options, unsigned attributes);
/// A copy of what is mounted at `path`, with everything below it, attached nowhere.
Result<Fd> copy_mount(const std::string& path);
Result<Fd> copy_mount(int opened);
/// Also of what is mounted below it; nobody can write there.
Result<Fd> read_only_copy(const std::string& path);

/// Attaches it at `path` as the root that `root` is open on sees it: links lead nowhere else.
Result<void> attach_at(int root, const std::string& path, int mount);
/// Sets attributes of what is mounted at `path`; `everything`: and below it. A path that is not
/// there, or no mount, is fine.
Result<void> restrict_mount(const std::string& path, unsigned attributes, bool everything);

/// What is mounted from here on is not seen outside of this mount namespace.
Result<void> keep_mounts_apart();

/// Makes what is mounted at `path` the root of the caller and of its mount namespace, in which nothing
/// else is left.
Result<void> change_root(const std::string& path);

/// The way back to the mounts and the root that a process with one thread has now. A mount namespace
/// is entered at its top, which need not be the root that one had.
class MountsOfCaller {
 public:
  MountsOfCaller();
  explicit operator bool() const { return mounts_ && root_; }
  [[nodiscard]] bool come_back() const;

 private:
  Fd mounts_, root_;
};

/// Shows the files of a mount that is attached nowhere with the owners that they have on disk, as
/// `owner`'s namespace counts them. Nothing to do for the machine's own users. False: this file
/// system cannot. What is mounted below is left as it is where that cannot.
bool show_owners(int mount, const Owner& owner);

/// Makes missing directories down to `path`; they belong to `owner`.
Result<void> make_directories(const std::string& path, const Owner& owner = {});

/// A copy of a container's mount, to be attached once the root has changed.
struct DetachedMount {
  Fd fd;
  bool directory = true;
  const Mount* mount = nullptr;
  /// Where `hidden` lies below what is mounted; empty: it does not.
  std::string covered;
  bool owners_hidden = false;  // its file system cannot show them, and all are nobody's
};
/// `hidden`: the data folder. What lies in it cannot be mounted as a hostPath, and where it lies in
/// a hostPath it will be covered.
Result<DetachedMount> detach(const Mount& mount, const std::string& hidden, const Owner& owner);
Result<void> attach(const DetachedMount& mount, const Owner& owner);

}  // namespace muster::agent::process
