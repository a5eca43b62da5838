#include "agent/process/container_root.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "agent/process/devices.h"
#include "agent/process/host_root.h"
#include "agent/process/mounts.h"

namespace muster::agent::process {
namespace {

constexpr unsigned kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

/// A mount that has its place in the new root already.
struct Piece {
  std::string target;
  bool directory = true;
  Fd fd;
};

/// For an overlay's options, which are divided by colons and commas.
std::string escaped(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c == ':' || c == ',' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

/// The directory that all layers have in common, and their names from there: the kernel takes one
/// page of options, which the full paths of sixty layers are longer than.
struct ShortLayers {
  std::string parent, names;
};
ShortLayers short_layers(const std::vector<std::string>& layers) {
  ShortLayers out;
  out.parent = layers.front().substr(0, layers.front().rfind('/') + 1);
  for (const auto& layer : layers) {
    while (!layer.starts_with(out.parent))
      out.parent.resize(out.parent.rfind('/', out.parent.size() - 2) + 1);
  }
  for (const auto& layer : layers)
    out.names += (out.names.empty() ? "" : ":") + escaped(layer.substr(out.parent.size()));
  return out;
}

class ContainerRoot {
 public:
  ContainerRoot(const ShimConfig& shim, const ContainerConfig& config, RootWish wish)
      : shim_(shim), config_(config), wish_(std::move(wish)) {}

  Result<void> make() {
    auto done = collect_mounts();
    if (done) done = collect_pieces();
    if (done) done = enter_root();
    if (done) done = attach_pieces();
    if (done) done = mount_proc();
    if (done) done = show_groups();
    for (const auto& mount : detached_) {
      if (done) done = attach(mount, wish_.owner);
    }
    if (done && !config_.working_dir.empty())
      done = make_directories(config_.working_dir, wish_.owner);
    if (done && config_.read_only_root) done = make_read_only();
    return done;
  }

  [[nodiscard]] std::vector<std::string> owners_hidden() const {
    std::vector<std::string> out;
    for (const auto& mount : detached_) {
      if (mount.owners_hidden && mount.mount->of_host) out.push_back(mount.mount->target);
    }
    return out;
  }

 private:
  [[nodiscard]] bool of_image() const { return !config_.layers.empty(); }
  [[nodiscard]] bool of_host() const { return !of_image() && !shim_.roots.place.empty(); }
  [[nodiscard]] std::string base() const { return folder_of(shim_, config_); }

  Result<void> collect_mounts() {
    mounts_ = config_.mounts;
    if (!config_.termination_message_path.empty())
      mounts_.push_back({config_.termination_message_file,
                         config_.termination_message_path,
                         false,
                         "",
                         "",
                         false,
                         false});
    // Parents before children, whatever order the pod lists them in.
    std::sort(mounts_.begin(), mounts_.end(), [](const Mount& a, const Mount& b) {
      return a.target < b.target;
    });
    for (const auto& mount : mounts_) {
      auto one = detach(mount, shim_.roots.hidden, wish_.owner);
      if (!one) return fail(one.error());
      if (one->owners_hidden && mount.of_host && shim_.sandbox.own_users)
        return fail(
            Code::kInvalid,
            fmt::format("hostPath \"{}\": its file system cannot show the owners of files to "
                        "a pod with hostUsers: false",
                        mount.source));
      detached_.push_back(std::move(*one));
    }
    return {};
  }

  Result<void> collect(const std::string& source, const std::string& target, bool directory) {
    auto copy = copy_mount(source);
    if (!copy) return fail(copy.error());
    if (!directory) (void)show_owners(copy->get(), wish_.owner);  // else it can only be read
    pieces_.push_back({target, directory, std::move(*copy)});
    return {};
  }

  Result<void> collect_pieces() {
    Result<void> done;
    if (of_host() || of_image()) done = take_folder();
    const auto& sandbox = shim_.sandbox;
    for (const auto& [source, target] :
         {std::pair(sandbox.hosts_file, "/etc/hosts"),
          {sandbox.resolv_conf_file, "/etc/resolv.conf"},
          {sandbox.host_network ? "" : sandbox.run_directory + "/hostname", "/etc/hostname"}}) {
      if (done && !source.empty() && access(source.c_str(), F_OK) == 0)
        done = collect(source, target, false);
    }
    if (!done) return done;
    if (!config_.privileged) {
      auto devices = pod_devices(config_.devices);
      if (!devices) return fail(devices.error());
      devices_ = std::move(*devices);
    } else {
      done = collect("/dev", "/dev", true);
      if (done) done = collect("/sys", "/sys", true);
    }
    if (done && !wish_.any_processes) done = collect("/proc", "/proc", true);
    if (done && wish_.any_processes) {
      // Now: without root the kernel makes one only where the machine's can be seen.
      constexpr unsigned kFlags = kQuiet | MOUNT_ATTR_NOEXEC;
      auto processes = new_filesystem("proc", {}, kFlags);
      if (!processes) return fail(processes.error());
      pieces_.push_back({"/proc", true, std::move(*processes)});
    }
    for (auto& [name, path] : cgroup::places(
             shim_.cgroups, cgroup::group_name(sandbox.id, config_.name), config_.limits)) {
      if (!done || config_.privileged) break;
      auto copy = copy_mount(path);
      if (!copy) return fail(copy.error());
      groups_.push_back({"/sys/fs/cgroup/" + name, true, std::move(*copy)});
    }
    return done;
  }

  Result<void> take_folder() {
    if (wish_.ready) return {};
    auto folder = of_host() ? make_host_root(shim_.roots, wish_.owner)
                            : make_folder(shim_.roots, wish_.owner, FolderKind::kImage);
    if (!folder) return fail(folder.error());
    const auto moved = move_in(*folder, shim_, config_);
    if (!moved) return fail(moved.error());
    if (!*moved) return fail(Code::kInternal, fmt::format("\"{}\" was removed", *folder));
    return {};
  }

  Result<void> enter_root() {
    if (of_image()) return enter_image();
    if (!of_host()) return {};  // it cannot be done here; said once at start
    if (!wish_.ready) return change_root(shim_.roots.place + "/merged");
    if (setns(wish_.ready.get(), CLONE_NEWNS) != 0)
      return fail(system_error("enter the root", errno));
    return {};
  }

  /// An overlay over the image's directories: they themselves are never changed.
  Result<void> enter_image() {
    for (const auto* name : kImageDirectories) {  // there already unless another kind was expected
      const auto made = make_directories(base() + "/" + name, wish_.owner);
      if (!made) return made;
    }
    const auto merged = base() + "/merged";
    auto lower = short_layers(config_.layers);
    auto floor = shim_.roots.floor;
    if (wish_.owner.mapped()) {
      const auto shown = show_layers(lower, floor);
      if (!shown) return shown;
    }
    const auto options = fmt::format("lowerdir={}{},upperdir={}/upper,workdir={}/work,volatile",
                                     lower.names,
                                     floor.empty() ? "" : ":" + escaped(floor),
                                     escaped(base()),
                                     escaped(base()));
    if (chdir(lower.parent.c_str()) != 0 ||
        ::mount("overlay", merged.c_str(), "overlay", MS_NODEV, options.c_str()) != 0)
      return fail(system_error(
          fmt::format(
              "overlay over {} layers of image \"{}\"", config_.layers.size(), config_.image),
          errno));
    const Fd root(open(merged.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    for (const auto* name : {"dev", "sys", "proc", "etc"}) mkdirat(root.get(), name, 0755);
    // Again, as the umask took some of it.
    if (mkdirat(root.get(), "tmp", 01777) == 0 && fchmodat(root.get(), "tmp", 01777, 0) != 0)
      return fail(system_error("chmod /tmp", errno));
    // The /dev and /sys of a root of the host that was made ahead are as good.
    const auto furnished = furnish_root(root.get(), wish_.ready.get());
    if (!furnished) return furnished;
    return change_root(merged);
  }

  /// The layers belong to the container's own users: seen through a mount that says so.
  Result<void> show_layers(ShortLayers& lower, std::string& floor) const {
    for (auto* path : {&lower.parent, &floor}) {
      if (path->empty()) continue;
      const Fd copy(open_tree(AT_FDCWD, path->c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
      if (!copy) return fail(system_error(fmt::format("copy mount \"{}\"", *path), errno));
      const bool layers = path == &lower.parent;
      if (!show_owners(copy.get(), wish_.owner)) {
        if (!layers) continue;  // only a few folders for mounts
        return fail(Code::kInvalid,
                    fmt::format("the file system of \"{}\" cannot show image \"{}\" to users of a "
                                "pod's own; run muster with --pod-users host",
                                *path,
                                config_.image));
      }
      const auto place = layers ? shim_.roots.place + "/scratch" : below_of(shim_.roots);
      if (move_mount(copy.get(), "", AT_FDCWD, place.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
        return fail(system_error("attach layers", errno));
      *path = place + (layers ? "/" : "");
    }
    return {};
  }

  /// A link in place of a file, as /etc/resolv.conf often is, would lead the mount astray.
  static Result<void> make_file(const std::string& path) {
    struct stat info{};
    if (lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) return {};
    unlink(path.c_str());
    const Fd place(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!place) return fail(system_error(fmt::format("make \"{}\"", path), errno));
    return {};
  }

  static Result<void> attach_piece(const Piece& piece) {
    const auto attached = [&piece] {
      return move_mount(
                 piece.fd.get(), "", AT_FDCWD, piece.target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0;
    };
    auto made = piece.directory ? Result<void>() : make_file(piece.target);
    if (!made || attached()) return made;
    // Directories are there but for odd images.
    if (piece.directory) made = make_directories(piece.target);
    if (!made || attached()) return made;
    return fail(system_error(fmt::format("mount \"{}\"", piece.target), errno));
  }

  Result<void> attach_pieces() {
    for (const auto& piece : pieces_) {
      const auto done = attach_piece(piece);
      if (!done) return done;
    }
    if (of_host()) make_home();
    if (config_.privileged) return {};
    if (!of_image() && !of_host()) return cover_machine();
    return attach_devices(devices_, config_.tty);
  }

  /// A user of the machine has a home here, though not the one there.
  void make_home() const {
    for (const std::string_view item : config_.env) {
      if (!item.starts_with("HOME=/home/")) continue;
      const std::string path(item.substr(5));
      if (!make_directories(path, wish_.owner)) return;
      const auto user = wish_.owner.first + static_cast<uid_t>(config_.user.value_or(0));
      const auto group = wish_.owner.first + static_cast<gid_t>(config_.group.value_or(0));
      if (chown(path.c_str(), user, group) != 0) return;
    }
  }

  /// Settings of the kernel, the pod's network among them, are for privileged containers alone:
  /// file permissions would let any root write them.
  Result<void> mount_proc() const {
    constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (config_.privileged) return {};
    for (const auto* path : {"sys", "bus", "fs", "irq", "sysrq-trigger"}) {
      const auto full = std::string("/proc/") + path;
      if (::mount(full.c_str(), full.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
        if (errno == ENOENT) continue;
        return fail(system_error(fmt::format("make {} read-only", full), errno));
      }
      const auto done = restrict_mount(full, MOUNT_ATTR_RDONLY | kQuiet, true);
      if (!done) return done;
    }
    for (const auto* path : {"kcore",
                             "keys",
                             "latency_stats",
                             "timer_list",
                             "sched_debug",
                             "interrupts",
                             "asound",
                             "acpi",
                             "scsi"}) {
      const auto full = std::string("/proc/") + path;
      struct stat info{};
      if (stat(full.c_str(), &info) != 0) continue;
      const bool hidden =
          S_ISDIR(info.st_mode)
              ? ::mount("tmpfs", full.c_str(), "tmpfs", MS_RDONLY | kFlags, "size=4k,mode=0555") ==
                    0
              : ::mount("/dev/null", full.c_str(), nullptr, MS_BIND, nullptr) == 0;
      if (!hidden) return fail(system_error(fmt::format("hide {}", full), errno));
    }
    return {};
  }

  /// The container's own control groups, to be read: its limits are at the top, as in a control
  /// group namespace.
  Result<void> show_groups() {
    if (config_.privileged) return {};
    for (const auto& group : groups_) {  // read-only with all of /sys
      const auto done = attach_piece(group);
      if (!done) return done;
    }
    return restrict_mount("/sys", MOUNT_ATTR_RDONLY | kQuiet, true);
  }

  /// Where no overlay can be made the container is on the machine's own files, without those that
  /// matter most.
  Result<void> cover_machine() const {
    for (const auto& path : {shim_.roots.hidden, std::string("/root"), std::string("/home")}) {
      if (path.empty() || access(path.c_str(), F_OK) != 0) continue;
      if (::mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") != 0)
        return fail(system_error(fmt::format("hide \"{}\"", path), errno));
    }
    return {};
  }

  Result<void> make_read_only() const {
    auto done = restrict_mount("/", MOUNT_ATTR_RDONLY, false);
    if (!of_host()) return done;
    for (const auto& own : kOwnDirectories) {
      if (done) done = restrict_mount(own.target, MOUNT_ATTR_RDONLY, false);
    }
    return done ? restrict_mount("/run", MOUNT_ATTR_RDONLY, false) : done;
  }

  const ShimConfig& shim_;
  const ContainerConfig& config_;
  RootWish wish_;
  std::vector<Mount> mounts_;  // `detached_` refers to them
  std::vector<DetachedMount> detached_;
  std::vector<Piece> pieces_, groups_;
  std::vector<DeviceMount> devices_;
};

}  // namespace

Result<std::vector<std::string>> prepare_container(const ShimConfig& shim,
                                                   const ContainerConfig& config,
                                                   RootWish wish) {
  ContainerRoot root(shim, config, std::move(wish));
  const auto made = root.make();
  if (!made) return fail(made.error());
  return root.owners_hidden();
}

}  // namespace muster::agent::process
