#include "agent/image/containerd_state.h"

#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <vector>

#include "agent/files.h"
#include "agent/image/containerd.h"
#include "base/strings.h"

namespace muster::agent::image {
namespace {

namespace fs = std::filesystem;

constexpr auto kPlace = "/run";
constexpr auto kName = "muster-containerd-";
constexpr auto kOwner = "of";  // a link to whose it is

std::string place_of(const std::string& directory) {
  return fmt::format("{}/{}{:016x}", kPlace, kName, std::hash<std::string>{}(directory));
}

void remove_place(const std::string& place) {
  std::vector<std::string> mounted;
  for (const auto& line : split_nonempty(read_file("/proc/self/mounts"), '\n')) {
    const auto words = split(line, ' ');
    if (words.size() > 1 && words[1].starts_with(place + "/")) mounted.push_back(words[1]);
  }
  std::reverse(mounted.begin(), mounted.end());  // what was mounted later lies above
  for (const auto& path : mounted) (void)umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  std::error_code ignored;
  fs::remove_all(place, ignored);
}

}  // namespace

std::string containerd_state(const std::string& directory) {
  auto own = directory + "/state";
  std::error_code error;
  const auto tasks = fmt::format("{}/io.containerd.runtime.v2.task/{}", own, kContainerdNamespace);
  if (fs::exists(tasks, error) && !fs::is_empty(tasks, error)) return own;
  const auto place = place_of(directory);
  const auto link = fmt::format("{}/{}", place, kOwner);
  if (mkdir(place.c_str(), 0711) != 0 && errno != EEXIST) return own;
  const bool ours =
      chmod(place.c_str(), 0711) == 0 &&  // whatever the umask
      (symlink(directory.c_str(), link.c_str()) == 0 || fs::read_symlink(link, error) == directory);
  return ours ? place + "/state" : own;
}

void remove_containerd_state(const std::string& directory) { remove_place(place_of(directory)); }

void remove_orphaned_states() {
  std::error_code error;
  for (fs::directory_iterator item(kPlace, error), end; !error && item != end;
       item.increment(error)) {
    if (!item->path().filename().string().starts_with(kName)) continue;
    std::error_code unread, absent;
    const auto owner = fs::read_symlink(item->path() / kOwner, unread);
    if (!unread && !fs::exists(owner, absent) && !absent) remove_place(item->path().string());
  }
}

}  // namespace muster::agent::image
