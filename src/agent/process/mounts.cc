#include "agent/process/mounts.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

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

Result<void> make_target(const std::string& target, bool directory) {
  struct stat info{};
  if (stat(target.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode) == directory) return {};
    return fail(Code::kInvalid,
                fmt::format("mount path \"{}\": {} is mounted onto {}",
                            target,
                            directory ? "a directory" : "a file",
                            directory ? "a file" : "a directory"));
  }
  if (directory) return make_directories(target);
  const auto made = make_directories(target.substr(0, target.rfind('/')));
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

Result<void> make_directories(const std::string& path) {
  std::string so_far;
  for (const auto& part : split_nonempty(path, '/')) {
    so_far += "/" + part;
    if (mkdir(so_far.c_str(), 0755) != 0 && errno != EEXIST)
      return fail(system_error(fmt::format("make directory \"{}\"", so_far), errno));
  }
  return {};
}

Result<DetachedMount> detach(const Mount& mount, const std::string& hidden) {
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
  return out;
}

Result<void> attach(const DetachedMount& mount) {
  const auto& target = mount.mount->target;
  const auto made = make_target(target, mount.directory);
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

}  // namespace muster::agent::process
