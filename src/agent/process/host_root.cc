#include "agent/process/host_root.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "agent/files.h"
#include "agent/process/bound_root.h"
#include "agent/process/devices.h"
#include "agent/process/mounts.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

constexpr unsigned kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
/// What a container changes outside of its own directories is small; it counts as its memory.
constexpr auto kScratch = "mode=0755,size=256m";

/// An overlay of "/" does not contain what is mounted below it. Programs and libraries may be: a
/// driver as a file system of its own, for one.
std::vector<std::string> program_mounts() {
  std::vector<std::string> out;
  for (const auto& line : split_nonempty(read_file("/proc/self/mounts"), '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 3) continue;
    for (const auto* place : {"/usr", "/opt", "/nix", "/lib", "/lib64", "/bin", "/sbin"}) {
      if (words[1] == place || words[1].starts_with(std::string(place) + "/")) {
        out.push_back(words[1]);
        break;
      }
    }
  }
  return out;
}

Result<void> put(int root, const char* path, Result<Fd> mount) {
  if (!mount) return fail(mount.error());
  return attach_at(root, path, mount->get());
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

/// What `shown`, a file or a directory, can be mounted at.
Result<void> make_place(const std::string& place, int shown, const Owner& owner) {
  struct stat info{};
  if (fstat(shown, &info) != 0) return fail(system_error(fmt::format("show \"{}\"", place), errno));
  const bool directory = S_ISDIR(info.st_mode);
  const auto made = make_directories(directory ? place : place.substr(0, place.rfind('/')), owner);
  if (!made || directory) return made;
  const Fd file(open(place.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  if (!file) return fail(system_error(fmt::format("make \"{}\"", place), errno));
  return {};
}

/// The container's own directories, and in them, or beside them, what of the machine it is shown.
Result<void> bind_own(int root,
                      const std::string& merged,
                      const RootPlan& plan,
                      const std::string& folder,
                      const Owner& owner) {
  for (const auto& own : kOwnDirectories) {
    const auto done = put(root, own.target, copy_mount(folder + "/" + own.name));
    if (!done && done.error().code != Code::kNotFound) return done;
    if (done) continue;
    const auto made = make_directories(merged + own.target, owner);
    if (!made) return made;
    const auto again = put(root, own.target, copy_mount(folder + "/" + own.name));
    if (!again) return again;
  }
  for (const auto& shown : plan.show) {
    const bool writable = shown.ends_with(":rw");
    const auto path = shown.substr(0, shown.size() - (writable ? 3 : 0));
    // Whatever is shown, the data folder with the cluster's keys is not.
    if (!plan.hidden.empty() && lies_in(path, plan.hidden)) continue;
    const auto copy = writable ? copy_mount(path) : read_only_copy(path);
    if (!copy && copy.error().code == Code::kNotFound) continue;  // gone since muster was started
    if (!copy) return fail(copy.error());
    (void)show_owners(copy->get(), owner);  // else it shows what is readable for all
    auto done = attach_at(root, path, copy->get());
    // Only a folder that served before has the place.
    if (!done && done.error().code == Code::kNotFound) {
      done = make_place(merged + path, copy->get(), owner);
      if (done) done = attach_at(root, path, copy->get());
    }
    if (!done) return done;
    if (plan.hidden.empty() || !lies_in(plan.hidden, path)) continue;
    const auto covered = put(root,
                             plan.hidden.c_str(),
                             new_filesystem("tmpfs",
                                            {{"mode", "0555"}, {"size", "4k"}},
                                            kQuiet | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY));
    if (!covered) return covered;
  }
  return {};
}

Result<void> make_run(int root, const Owner& owner) {
  const auto id = std::to_string(owner.first);
  auto made = new_filesystem(
      "tmpfs", {{"mode", "0755"}, {"size", "64m"}, {"uid", id}, {"gid", id}}, kQuiet);
  if (!made) return fail(made.error());
  // sshd wants the first, many programs the second; an image would bring them.
  if (mkdirat(made->get(), "sshd", 0755) == 0 && owner.mapped())
    (void)!fchownat(made->get(), "sshd", owner.first, owner.first, 0);
  // Again, as the umask took some of it.
  if (mkdirat(made->get(), "lock", 01777) == 0 && fchmodat(made->get(), "lock", 01777, 0) != 0)
    return fail(system_error("chmod /run/lock", errno));
  return attach_at(root, "run", made->get());
}

/// Shows the plan's places to the container as its own, above the mask. False: this kernel cannot.
bool show_places(const RootPlan& plan, const Owner& owner) {
  if (plan.places.empty()) return false;
  const Fd copy(open_tree(AT_FDCWD, plan.places.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  return copy && show_owners(copy.get(), owner) &&
         move_mount(copy.get(), "", AT_FDCWD, below_of(plan).c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

/// Read-only, and without what tells of the machine more than a program needs.
Result<void> make_sys(int root) {
  constexpr unsigned kFlags = kQuiet | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY;
  auto done = put(root, "sys", new_filesystem("sysfs", {}, kFlags));
  if (!done) done = put(root, "sys", read_only_copy("/sys"));  // it is another's to show
  for (const auto* path : {"sys/firmware", "sys/devices/virtual/powercap"}) {
    if (!done) return done;
    done = put(root, path, new_filesystem("tmpfs", {{"mode", "0555"}, {"size", "4k"}}, kFlags));
    if (!done && done.error().code == Code::kNotFound) done = {};
  }
  if (!done) return done;
  // The container's own groups are shown in it.
  auto groups = new_filesystem("tmpfs", {{"mode", "0755"}, {"size", "64k"}}, kQuiet);
  if (!groups) return fail(groups.error());
  for (const auto* name : {"cpu", "cpuacct", "memory", "pids"}) mkdirat(groups->get(), name, 0755);
  return put(root, "sys/fs/cgroup", std::move(groups));
}

Result<void> take_furniture(int root, int furniture) {
  const MountsOfCaller here;
  if (!here || setns(furniture, CLONE_NEWNS) != 0)
    return fail(system_error("enter what was made ahead", errno));
  auto dev = copy_mount("/dev"), sys = copy_mount("/sys");
  if (!here.come_back()) return fail(system_error("leave what was made ahead", errno));
  auto done = put(root, "dev", std::move(dev));
  if (done) done = put(root, "sys", std::move(sys));
  if (done) attach_queues(root);
  return done;
}

}  // namespace

Result<void> furnish_root(int root, int furniture) {
  if (furniture >= 0) return take_furniture(root, furniture);
  const auto done = make_sys(root);
  return done ? make_devices(root) : done;
}

namespace {

/// What every root has, whichever way it was made.
Result<std::string> furnish_host_root(const RootPlan& plan,
                                      const Owner& owner,
                                      const std::vector<std::string>& programs,
                                      const Parts& parts) {
  const auto merged = plan.place + "/merged";
  const Fd root(open(merged.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto& path : programs) {
    const auto copy = read_only_copy(path);
    if (!copy) return fail(copy.error());
    const auto attached = attach_at(root.get(), path, copy->get());
    if (!attached && attached.error().code != Code::kNotFound) return fail(attached.error());
  }
  auto furnished = make_run(root.get(), owner);
  if (furnished) furnished = furnish_root(root.get(), parts.furniture);
  if (!furnished) return fail(furnished.error());
  const bool again = !parts.used.empty() && renew_folder(parts.used, plan, owner);
  auto folder = again ? parts.used : make_folder(plan, owner, FolderKind::kHost);
  if (!folder) return fail(folder.error());
  const auto bound = bind_own(root.get(), merged, plan, *folder, owner);
  if (!bound) return fail(bound.error());
  return folder;
}

}  // namespace

Result<std::string> make_host_root(const RootPlan& plan, const Owner& owner, const Parts& parts) {
  const auto programs = program_mounts();
  const auto scratch = plan.place + "/scratch", merged = plan.place + "/merged";
  if (::mount("tmpfs", scratch.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, kScratch) != 0)
    return fail(system_error("mount what a container may write", errno));
  const auto upper = scratch + "/upper";
  mkdir(upper.c_str(), 0755);
  mkdir((scratch + "/work").c_str(), 0755);
  if (plan.bound) {
    const auto made = make_bound_root(plan, scratch, merged);
    if (!made) return fail(made.error());
    return furnish_host_root(plan, owner, {}, parts);
  }
  std::string above;
  if (owner.mapped()) {
    // The machine's: only what is in it can be the container's.
    mkdir((upper + "/usr").c_str(), 0755);
    if (show_places(plan, owner))
      above = below_of(plan) + ":";
    else
      make_own_places(upper, owner.first);
    if (chown(upper.c_str(), owner.first, owner.first) != 0)
      return fail(system_error("give away a root", errno));
  }
  const auto options = fmt::format(
      "lowerdir={}{}:/,upperdir={},workdir={}/work,volatile", above, plan.mask, upper, scratch);
  if (::mount("overlay", merged.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return fail(system_error("overlay of \"/\"", errno));
  return furnish_host_root(plan, owner, programs, parts);
}

namespace {

/// A namespace of which only what `make` mounts at the plan's "merged" is left.
Result<Fd> make_apart(const RootPlan& plan, const std::function<Result<void>()>& make) {
  const MountsOfCaller here;
  if (!here || unshare(CLONE_NEWNS) != 0)
    return fail(system_error("make a mount namespace", errno));
  Fd mounts(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  Result<void> done;
  if (!mounts) done = fail(system_error("open a mount namespace", errno));
  if (done) done = keep_mounts_apart();
  if (done) done = make();
  if (done) done = change_root(plan.place + "/merged");
  if (!here.come_back()) return fail(system_error("leave a mount namespace", errno));
  if (!done) return fail(done.error());
  return mounts;
}

}  // namespace

Result<HostRoot> make_host_root_apart(const RootPlan& plan,
                                      const Owner& owner,
                                      const Parts& parts) {
  HostRoot made;
  auto mounts = make_apart(plan, [&]() -> Result<void> {
    auto folder = make_host_root(plan, owner, parts);
    if (!folder) return fail(folder.error());
    made.folder = std::move(*folder);
    return {};
  });
  if (!mounts) return fail(mounts.error());
  made.mounts = std::move(*mounts);
  return made;
}

Result<Fd> make_furniture_apart(const RootPlan& plan, bool shared) {
  return make_apart(plan, [&]() -> Result<void> {
    const auto merged = plan.place + "/merged";
    if (::mount("tmpfs", merged.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64k") != 0)
      return fail(system_error("mount a place for /dev and /sys", errno));
    const Fd root(open(merged.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const auto* name : {"dev", "sys"}) mkdirat(root.get(), name, 0755);
    auto done = furnish_root(root.get());
    if (done && shared) done = restrict_mount(merged + "/dev", MOUNT_ATTR_RDONLY, false);
    if (done && shared) done = restrict_mount(merged + "/sys", MOUNT_ATTR_RDONLY, true);
    return done;
  });
}

Result<HostRoot> make_image_parts_apart(const RootPlan& plan, const Owner& owner, int furniture) {
  HostRoot made;
  made.kind = FolderKind::kImage;
  auto mounts = furniture < 0 ? make_furniture_apart(plan, /*shared=*/false)
                              : Result<Fd>(Fd(fcntl(furniture, F_DUPFD_CLOEXEC, 0)));
  if (!mounts) return fail(mounts.error());
  auto folder = make_folder(plan, owner, FolderKind::kImage);
  if (!folder) return fail(folder.error());
  made.mounts = std::move(*mounts);
  made.folder = std::move(*folder);
  return made;
}

}  // namespace muster::agent::process
