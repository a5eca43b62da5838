#include "agent/node/run_directory.h"

#include <fmt/core.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/log.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
constexpr auto kSource = "muster-run";  // how our mounts are told from others in /proc/self/mounts

std::vector<std::string> mounted() {
  std::vector<std::string> out;
  std::ifstream file("/proc/self/mounts");
  for (std::string line; std::getline(file, line);) {
    const auto parts = split(line, ' ');
    if (parts.size() > 2 && parts[0] == kSource && parts[2] == "tmpfs") out.push_back(parts[1]);
  }
  return out;
}

/// Beside a run directory, written before it is mounted and deleted with the owner's folder: agents
/// start beside each other, and only a mount without this mark is nobody's.
std::string mark_of(const std::string& path) { return path + ".owned"; }

}  // namespace

Result<void> prepare_run_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail(Code::kInternal, fmt::format("make \"{}\": {}", path, error.message()));
  if (geteuid() != 0) return {};
  const auto real = fs::canonical(path, error).string();
  for (const auto& one : mounted()) {
    if (one == real) return {};
  }
  if (!std::ofstream(mark_of(path)))
    return fail(Code::kInternal,
                fmt::format("write \"{}\": {}", mark_of(path), std::strerror(errno)));
  if (mount(kSource, path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700") != 0)
    log::warn("agent", "\"{}\" stays on disk: {}", path, std::strerror(errno));
  return {};
}

void remove_run_directory(const std::string& path) {
  if (geteuid() == 0) umount2(path.c_str(), MNT_DETACH);
  std::error_code ignored;
  fs::remove_all(path, ignored);
  fs::remove(mark_of(path), ignored);
}

void remove_orphaned_run_directories() {
  if (geteuid() != 0) return;
  for (const auto& path : mounted()) {
    std::error_code error;
    const auto owner = fs::path(path).parent_path();
    if (fs::exists(mark_of(path), error) || fs::exists(owner / "network.json", error)) continue;
    log::info("agent", "removing \"{}\": its owner is gone", path);
    remove_run_directory(path);
    fs::remove(owner, error);  // empty but for this, or not ours to remove
    fs::remove(owner.parent_path(), error);
  }
}

}  // namespace muster::agent
