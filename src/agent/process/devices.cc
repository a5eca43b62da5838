#include "agent/process/devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "agent/process/messages.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

/// A copy of the mount (or of the file) at `path`, to be attached to the new /dev.
struct Kept {
  std::string name;
  bool directory = false;
  Fd fd;
};

void keep(const std::string& name, std::vector<Kept>& out) {
  const auto path = "/dev/" + name;
  struct stat info{};
  if (stat(path.c_str(), &info) != 0) return;
  Fd fd(open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  if (fd) out.push_back({name, S_ISDIR(info.st_mode), std::move(fd)});
}

/// "3" of "nvidia3"; -1: not one GPU's file.
int gpu_index(const std::string& name) {
  if (!name.starts_with("nvidia")) return -1;
  return static_cast<int>(parse_int(name.substr(6)).value_or(-1));
}

std::vector<std::string> entries(const char* directory) {
  std::vector<std::string> out;
  auto* listing = opendir(directory);
  if (listing == nullptr) return out;
  while (const auto* entry = readdir(listing)) out.emplace_back(entry->d_name);
  closedir(listing);
  return out;
}

}  // namespace

bool machine_has_gpus() { return access("/dev/nvidiactl", F_OK) == 0; }

Result<void> mount_devices(const std::vector<int>& gpus, bool console) {
  std::vector<Kept> kept;
  for (const auto* name :
       {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "fuse"})
    keep(name, kept);
  if (!gpus.empty()) {  // the driver's own files are of use only with a GPU
    for (const auto& name : entries("/dev")) {
      const int index = gpu_index(name);
      bool given = index < 0 && name.starts_with("nvidia");
      for (const auto one : gpus) given = given || one == index;
      if (given) keep(name, kept);
    }
  }
  // No device made in it by a program works: nodev. Those attached below keep what they are.
  if (::mount("dev", "/dev", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=755,size=64k") != 0)
    return fail(system_error("mount /dev", errno));
  for (const auto& one : kept) {
    const auto path = "/dev/" + one.name;
    if (one.directory) {
      mkdir(path.c_str(), 0755);
    } else {
      const Fd place(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    }
    if (move_mount(one.fd.get(), "", AT_FDCWD, path.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
      return fail(system_error(fmt::format("mount \"{}\"", path), errno));
  }
  for (const auto& [link, target] : {std::pair("/dev/ptmx", "pts/ptmx"),
                                     {"/dev/fd", "/proc/self/fd"},
                                     {"/dev/stdin", "/proc/self/fd/0"},
                                     {"/dev/stdout", "/proc/self/fd/1"},
                                     {"/dev/stderr", "/proc/self/fd/2"}}) {
    if (symlink(target, link) != 0 && errno != EEXIST)
      return fail(system_error(fmt::format("link \"{}\"", link), errno));
  }
  if (console && symlink("/dev/tty", "/dev/console") != 0 && errno != EEXIST)
    return fail(system_error("link /dev/console", errno));
  return {};
}

}  // namespace muster::agent::process
