#include "agent/cri/staging.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "agent/fd.h"
#include "agent/files.h"
#include "agent/process/mounts.h"
#include "base/strings.h"

namespace muster::agent::cri {
namespace {

namespace fs = std::filesystem;

Result<void> mount_tmpfs(const std::string& path, const std::string& options) {
  const auto made = make_directory(path);
  if (!made) return made;
  if (mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return fail(system_error(fmt::format("mount a tmpfs at \"{}\"", path), errno));
  return {};
}

}  // namespace

void unmount_below(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& line : split_nonempty(read_file("/proc/self/mountinfo"), '\n')) {
    const auto fields = split_nonempty(line, ' ');
    if (fields.size() < 5) continue;
    const auto& place = fields[4];
    if (place == folder || place.starts_with(folder + "/")) found.push_back(place);
  }
  // What was mounted later lies above.
  std::reverse(found.begin(), found.end());
  for (const auto& place : found) (void)umount2(place.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

Staging::Staging(std::string run_directory, std::string hidden)
    : place_(std::move(run_directory) + "/mounts"), hidden_(std::move(hidden)) {}

Result<void> Staging::mount_memory(const std::vector<MemoryVolume>& volumes) const {
  const auto shared = mount_tmpfs(shared_memory(), "mode=1777");
  if (!shared) return shared;
  for (const auto& volume : volumes) {
    auto options = volume.group >= 0 ? fmt::format("mode=2775,gid={}", volume.group)
                                     : std::string("mode=1777");
    if (volume.size_bytes > 0) options += fmt::format(",size={}", volume.size_bytes);
    const auto mounted = mount_tmpfs(volume.path, options);
    if (!mounted) return mounted;
  }
  return {};
}

Result<std::vector<Mount>> Staging::prepare(const std::string& container,
                                            const std::vector<Mount>& mounts) const {
  std::vector<Mount> out;
  for (const auto& one : mounts) {
    if (!one.of_host && one.sub_path.empty()) {
      out.push_back(one);
      continue;
    }
    auto staged = one;
    staged.target = fmt::format("{}/{}/{}", place_, container, out.size());
    auto held = process::detach(staged, hidden_, process::Owner());
    if (!held) return fail(held.error());
    const auto place = make_directory(fmt::format("{}/{}", place_, container));
    if (!place) return fail(place.error());
    const auto attached = process::attach(*held, process::Owner());
    if (!attached) return fail(attached.error());
    Mount bound;
    bound.source = staged.target;
    bound.target = one.target;
    bound.read_only = one.read_only;
    out.push_back(std::move(bound));
  }
  return out;
}

void Staging::clear(const std::string& pod_directory) const {
  unmount_below(place_);
  unmount_below(pod_directory);
  std::error_code ignored;
  fs::remove_all(place_, ignored);
}

}  // namespace muster::agent::cri
