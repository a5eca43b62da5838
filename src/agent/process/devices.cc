#include "agent/process/devices.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "agent/process/mounts.h"

namespace muster::agent::process {
namespace {

/// Where Kubernetes has a container's last words, unless a pod says otherwise.
constexpr auto kTerminationLog = "/dev/termination-log";

/// False: it cannot be had; errno says why.
bool keep(const std::string& path, const std::string& name, std::vector<DeviceMount>& out) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return false;
  Fd fd(open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (!fd) return false;
  out.push_back({name, S_ISDIR(info.st_mode), std::move(fd)});
  return true;
}

void make_place(int dev, const std::string& name, bool directory) {
  if (directory) {
    mkdirat(dev, name.c_str(), 0755);
  } else {
    const Fd place(openat(dev, name.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
  }
}

}  // namespace

Result<void> make_devices(int root) {
  std::vector<DeviceMount> usual;
  for (const auto* name : {"null", "zero", "full", "random", "urandom", "tty"})
    (void)keep(std::string("/dev/") + name, name, usual);
  // No device made in it by a program works: nodev. Those attached below keep what they are.
  const auto dev = new_filesystem("tmpfs",
                                  {{"mode", "0755"}, {"size", "64k"}},
                                  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
  if (!dev) return fail(dev.error());
  for (const auto& one : usual) make_place(dev->get(), one.name, one.directory);
  make_place(dev->get(), std::strrchr(kTerminationLog, '/') + 1, false);
  for (const auto* name : {"pts", "shm", "mqueue"}) make_place(dev->get(), name, true);
  for (const auto& [link, target] : {std::pair("ptmx", "pts/ptmx"),
                                     {"fd", "/proc/self/fd"},
                                     {"stdin", "/proc/self/fd/0"},
                                     {"stdout", "/proc/self/fd/1"},
                                     {"stderr", "/proc/self/fd/2"}}) {
    if (symlinkat(target, dev->get(), link) != 0)
      return fail(system_error(fmt::format("link /dev/{}", link), errno));
  }
  auto done = attach_at(root, "dev", dev->get());
  for (const auto& one : usual) {
    if (done) done = attach_at(root, "dev/" + one.name, one.fd.get());
  }
  if (done) attach_queues(root);
  return done;
}

void attach_queues(int root) {
  const auto queues = new_filesystem("mqueue", {}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
  if (queues) (void)attach_at(root, "dev/mqueue", queues->get());  // not every kernel has them
}

bool wants_own_devices(const ContainerConfig& config) {
  const auto has_no_place = [](const std::string& target) {
    return target.starts_with("/dev/") && target != kTerminationLog && target != "/dev/shm";
  };
  return !config.devices.empty() || config.tty || has_no_place(config.termination_message_path) ||
         std::any_of(config.mounts.begin(), config.mounts.end(), [&](const Mount& mount) {
           return has_no_place(mount.target);
         });
}

Result<std::vector<DeviceMount>> pod_devices(const std::vector<Device>& given) {
  std::vector<DeviceMount> out;
  for (const std::string name : {"pts", "shm"}) (void)keep("/dev/" + name, name, out);
  for (const auto& device : given) {
    if (!keep(device.source, device.target.substr(std::strlen("/dev/")), out))
      return fail(system_error(fmt::format("device \"{}\"", device.source), errno));
  }
  return out;
}

Result<void> attach_devices(const std::vector<DeviceMount>& devices, bool console) {
  for (const auto& one : devices) {
    const auto path = "/dev/" + one.name;
    const auto folder = make_directories(path.substr(0, path.rfind('/')));
    if (!folder) return folder;
    make_place(AT_FDCWD, path, one.directory);
    if (move_mount(one.fd.get(), "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return fail(system_error(fmt::format("mount \"{}\"", path), errno));
  }
  if (console && symlink("/dev/tty", "/dev/console") != 0 && errno != EEXIST)
    return fail(system_error("link /dev/console", errno));
  return {};
}

}  // namespace muster::agent::process
