#include "agent/process/pod_mounts.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace muster::agent::process {
namespace {

Result<void> mount_terminals(const ShimConfig& config, const Owner& owner) {
  // Terminals of the pod's own: nobody else's are listed, and none of them elsewhere.
  constexpr unsigned kTerminals = 5;  // Debian's group of them, and most others'
  auto options = fmt::format("newinstance,ptmxmode=0666,mode=0620,uid={}", owner.first);
  if (!config.roots.bound) options += fmt::format(",gid={}", owner.first + kTerminals);
  if (::mount("devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, options.c_str()) != 0 &&
      errno != ENOENT)
    return fail(system_error("mount /dev/pts", errno));
  return {};
}

Result<void> make_mounts(const ShimConfig& config, const Owner& owner) {
  if (unshare(CLONE_NEWNS) != 0) return fail(system_error("make a mount namespace", errno));
  const auto apart = keep_mounts_apart();
  if (!apart) return apart;
  const auto terminals = mount_terminals(config, owner);
  if (!terminals || config.sandbox.host_ipc) return terminals;
  if (::mount("shm", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") != 0 &&
      errno != ENOENT)
    return fail(system_error("mount /dev/shm", errno));
  return {};
}

bool is_empty(const char* path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(path), closedir);
  if (!listing) return false;
  errno = 0;
  while (const auto* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") return false;
  }
  return errno == 0;
}

}  // namespace

PodMounts::PodMounts() : table_(open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)) {}

bool PodMounts::machine_changed() const {
  pollfd item{table_.get(), POLLPRI, 0};
  return !table_ || poll(&item, 1, 0) != 0;
}

void PodMounts::make_ahead(const ShimConfig& config, const Owner& owner) {
  // Root of the machine could change what is shared, if only the modes of directories.
  if (ready_ || !owner.mapped()) return;
  (void)machine_changed();  // up to now
  if (make_mounts(config, owner)) ready_.reset(open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC));
  ready_for_ = owner.first;
  if (!machine_.come_back()) ready_.reset();
}

Result<void> PodMounts::enter(const ShimConfig& config, const Owner& owner) {
  const bool good = ready_ && owner.mapped() && owner.first == ready_for_ &&
                    !config.sandbox.host_ipc && !machine_changed();
  inside_ready_ = good && setns(ready_.get(), CLONE_NEWNS) == 0;
  if (inside_ready_) return {};
  ready_.reset();
  return make_mounts(config, owner);
}

bool PodMounts::leave(bool mounted_more) {
  if (!inside_ready_ || mounted_more || !is_empty("/dev/shm")) ready_.reset();
  return machine_.come_back();
}

}  // namespace muster::agent::process
