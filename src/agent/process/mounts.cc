#include "agent/process/mounts.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <filesystem>

#include "agent/beneath.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

/// Where it really is, links resolved.
std::string path_of(int fd) {
  char path[PATH_MAX] = {};
  const auto size = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), path, sizeof path - 1);
  return size > 0 ? std::string(path, static_cast<std::size_t>(size)) : std::string();
}

/// "c/d" for "/a/b/c/d" below "/a/b"; empty when it is not below, or the same.
std::string below(const std::string& path, const std::string& directory) {
  const auto start = directory == "/" ? directory : directory + "/";
  return path.starts_with(start) ? path.substr(start.size()) : std::string();
}

/// What the mount shows, opened. A directory that a subPath names and that is not there is made
/// like the volume it is in.
Result<Fd> open_source(const Mount& mount) {
  Fd root(open(mount.source.c_str(), O_PATH | O_CLOEXEC));
  if (!root) return fail(system_error(fmt::format("mount source \"{}\"", mount.source), errno));
  const auto checked = check_host_type(root.get(), mount.host_type, mount.source);
  if (!checked) return fail(checked.error());
  if (mount.sub_path.empty()) return root;
  auto opened = open_beneath(root.get(), mount.sub_path);
  if (opened || opened.error().code != Code::kNotFound) return opened;
  struct stat info{};
  if (fstat(root.get(), &info) != 0)
    return fail(system_error(fmt::format("mount source \"{}\"", mount.source), errno));
  return make_directories_beneath(root.get(), mount.sub_path, info.st_mode & 07777);
}

/// A folder or file of a volume and all in it, shifted into the range of the pod's users.
void give_away(int opened, const Owner& owner) {
  std::error_code error;
  const auto shift = [&owner](const std::string& path) {
    struct stat info{};
    if (lstat(path.c_str(), &info) != 0 || info.st_uid >= kRangeSize) return;
    (void)!lchown(path.c_str(), owner.first + info.st_uid, owner.first + info.st_gid % kRangeSize);
  };
  const auto top = fmt::format("/proc/self/fd/{}/", opened);
  struct stat info{};
  if (fstat(opened, &info) != 0) return;
  if (info.st_uid < kRangeSize)
    (void)!fchownat(opened,
                    "",
                    owner.first + info.st_uid,
                    owner.first + info.st_gid % kRangeSize,
                    AT_EMPTY_PATH);
  for (std::filesystem::recursive_directory_iterator item(top, error), end; !error && item != end;
       item.increment(error))
    shift(item->path().string());
}

Result<void> make_target(const std::string& target, bool directory, const Owner& owner) {
  struct stat info{};
  if (stat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) == directory) return {};
    return fail(Code::kInvalid,
                fmt::format("mount path \"{}\": {} is mounted onto {}",
                            target,
                            directory ? "a directory" : "a file",
                            directory ? "a file" : "a directory"));
  }
  if (directory) return make_directories(target, owner);
  const auto made = make_directories(target.substr(0, target.rfind('/')), owner);
  if (!made) return made;
  const Fd file(open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return fail(system_error(fmt::format("make mount point \"{}\"", target), errno));
  return {};
}

}  // namespace

Result<Fd> new_filesystem(const char* type, const MountOptions& options, unsigned attributes) {
  const auto problem = [type] { return fail(system_error(fmt::format("make {}", type), errno)); };
  const Fd context(fsopen(type, FSOPEN_CLOEXEC));
  if (!context) return problem();
  if (fsconfig(context.get(), FSCONFIG_SET_STRING, "source", type, 0) != 0) return problem();
  for (const auto& [key, value] : options) {
    const bool flag = value.empty();
    if (fsconfig(context.get(),
                 flag ? FSCONFIG_SET_FLAG : FSCONFIG_SET_STRING,
                 key,
                 flag ? nullptr : value.c_str(),
                 0) != 0)
      return problem();
  }
  if (fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return problem();
  Fd mount(fsmount(context.get(), FSMOUNT_CLOEXEC, attributes));
  if (!mount) return problem();
  return mount;
}

Result<Fd> copy_mount(const std::string& path) {
  Fd copy(open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (!copy) return fail(system_error(fmt::format("copy mount \"{}\"", path), errno));
  return copy;
}

Result<Fd> copy_mount(int opened) {
  Fd copy(
      open_tree(opened, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE));
  if (!copy) return fail(system_error("copy a mount", errno));
  return copy;
}

Result<void> attach_at(int root, const std::string& path, int mount) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  const Fd target(static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
  if (!target) return fail(system_error(fmt::format("mount point \"{}\"", path), errno));
  if (move_mount(mount, "", target.get(), "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) !=
      0)
    return fail(system_error(fmt::format("mount \"{}\"", path), errno));
  return {};
}

Result<void> restrict_mount(const std::string& path, unsigned attributes, bool everything) {
  mount_attr wanted{};
  wanted.attr_set = attributes;
  if (mount_setattr(
          AT_FDCWD, path.c_str(), everything ? AT_RECURSIVE : 0, &wanted, sizeof wanted) != 0 &&
      errno != EINVAL && errno != ENOENT)
    return fail(system_error(fmt::format("restrict \"{}\"", path), errno));
  return {};
}

Result<void> keep_mounts_apart() {
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) == 0) return {};
  if (errno != EINVAL) return fail(system_error("make mounts private", errno));
  return fail(Code::kInternal,
              "make mounts private: \"/\" is not a mount, as in a plain chroot; before chroot DIR, "
              "mount it onto itself with 'mount --bind DIR DIR'");
}

Result<void> change_root(const std::string& path) {
  if (chdir(path.c_str()) != 0 || syscall(SYS_pivot_root, ".", ".") != 0 ||
      umount2(".", MNT_DETACH) != 0 || chdir("/") != 0)
    return fail(system_error("change root", errno));
  return {};
}

MountsOfCaller::MountsOfCaller()
    : mounts_(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)),
      root_(open("/", O_PATH | O_DIRECTORY | O_CLOEXEC)) {}

bool MountsOfCaller::come_back() const {
  return *this && setns(mounts_.get(), CLONE_NEWNS) == 0 && fchdir(root_.get()) == 0 &&
         chroot(".") == 0;
}

bool show_owners(int mount, const Owner& owner) {
  if (!owner.mapped()) return true;
  mount_attr wanted{};
  wanted.attr_set = MOUNT_ATTR_IDMAP;
  wanted.userns_fd = static_cast<std::uint64_t>(owner.users);
  if (mount_setattr(mount, "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted) == 0)
    return true;
  return mount_setattr(mount, "", AT_EMPTY_PATH, &wanted, sizeof wanted) == 0;
}

Result<void> make_directories(const std::string& path, const Owner& owner) {
  std::string so_far;
  for (const auto& part : split_nonempty(path, '/')) {
    so_far += "/" + part;
    if (mkdir(so_far.c_str(), 0755) == 0) {
      if (owner.mapped() && lchown(so_far.c_str(), owner.first, owner.first) != 0)
        return fail(system_error(fmt::format("give away \"{}\"", so_far), errno));
    } else if (errno != EEXIST) {
      return fail(system_error(fmt::format("make directory \"{}\"", so_far), errno));
    }
  }
  return {};
}

Result<DetachedMount> detach(const Mount& mount, const std::string& hidden, const Owner& owner) {
  const auto source = open_source(mount);
  if (!source) return fail(source.error());
  struct stat info{};
  if (fstat(source->get(), &info) != 0)
    return fail(system_error(fmt::format("mount source \"{}\"", mount.source), errno));
  DetachedMount out;
  out.directory = S_ISDIR(info.st_mode);
  out.mount = &mount;
  if (mount.of_host && !hidden.empty()) {
    const auto real = path_of(source->get());
    if (real == hidden || !below(real, hidden).empty())
      return fail(Code::kForbidden,
                  fmt::format("hostPath \"{}\" is in the data folder of muster, which pods may not "
                              "see",
                              mount.source));
    out.covered = below(hidden, real);
  }
  auto copy = copy_mount(source->get());
  if (!copy) return fail(copy.error());
  out.fd = std::move(*copy);
  if (mount.as_it_is) return out;
  out.owners_hidden = !show_owners(out.fd.get(), owner);
  // Ours to change, unlike a path of the machine; kernels before 6.3 cannot do it for a tmpfs.
  if (out.owners_hidden && !mount.of_host) give_away(source->get(), owner);
  return out;
}

Result<void> attach(const DetachedMount& mount, const Owner& owner) {
  const auto& target = mount.mount->target;
  const auto made = make_target(target, mount.directory, owner);
  if (!made) return made;
  if (move_mount(mount.fd.get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail(
        system_error(fmt::format("mount \"{}\" at \"{}\"", mount.mount->source, target), errno));
  if (!mount.covered.empty()) {
    const auto nothing =
        new_filesystem("tmpfs", {{"mode", "0555"}, {"size", "4k"}}, MOUNT_ATTR_RDONLY);
    if (!nothing) return fail(nothing.error());
    const Fd root(open(target.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto covered = attach_at(root.get(), mount.covered, nothing->get());
    if (!covered && covered.error().code != Code::kNotFound) return covered;
  }
  if (mount.mount->read_only) return restrict_mount(target, MOUNT_ATTR_RDONLY, false);
  return {};
}

Result<Fd> read_only_copy(const std::string& path) {
  auto copy = copy_mount(path);
  if (!copy) return copy;
  mount_attr wanted{};
  wanted.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY;
  if (mount_setattr(copy->get(), "", AT_EMPTY_PATH | AT_RECURSIVE, &wanted, sizeof wanted) != 0)
    return fail(system_error(fmt::format("make \"{}\" read-only", path), errno));
  return copy;
}

}  // namespace muster::agent::process
