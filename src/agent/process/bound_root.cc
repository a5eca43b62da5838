#include "agent/process/bound_root.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <string_view>

#include "agent/process/mounts.h"

namespace muster::agent::process {
namespace {

constexpr unsigned kQuiet = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;

template <std::size_t N>
bool among(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// A container has these of its own; only their places are made.
constexpr std::array<std::string_view, 11> kEmpty = {
    "proc", "sys", "dev", "run", "tmp", "root", "home", "boot", "mnt", "media", "lost+found"};
/// Programs that are root expect to be able to put something there.
constexpr std::array<std::string_view, 4> kLayered = {"etc", "opt", "srv", "var"};
constexpr std::array<std::string_view, 4> kLayeredDeeper = {
    "var/lib", "var/cache", "var/log", "var/opt"};

/// The machine's directory with a layer of the container's own above it. Not every one can be: what
/// is mounted below it would be uncovered.
bool layer(const std::string& name, const std::string& scratch, const std::string& target) {
  auto work = scratch + "/work-" + name;
  std::replace(
      work.begin() + static_cast<std::ptrdiff_t>(scratch.size()) + 1, work.end(), '/', '-');
  const auto upper = scratch + "/upper/" + name;
  if ((mkdir(upper.c_str(), 0755) != 0 && errno != EEXIST) || mkdir(work.c_str(), 0755) != 0)
    return false;
  for (const auto view : kLayeredDeeper) {
    const std::string deeper(view);
    struct stat info{};
    if (deeper.starts_with(name + "/") && lstat(("/" + deeper).c_str(), &info) == 0 &&
        S_ISDIR(info.st_mode))
      mkdir((scratch + "/upper/" + deeper).c_str(), 0755);
  }
  const auto options =
      fmt::format("lowerdir=/{},upperdir={},workdir={},userxattr", name, upper, work);
  return ::mount("overlay", target.c_str(), "overlay", MS_NOSUID | MS_NODEV, options.c_str()) == 0;
}

Result<void> show_all(const std::string& folder,
                      const std::string& scratch,
                      const std::string& merged);

/// `name` is a path below "/".
Result<void> show(const std::string& name, const std::string& scratch, const std::string& merged) {
  const auto path = "/" + name, target = merged + path;
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0) return {};
  if (S_ISLNK(info.st_mode)) {
    char link[PATH_MAX] = {};
    if (readlink(path.c_str(), link, sizeof link - 1) <= 0 || symlink(link, target.c_str()) != 0)
      return fail(system_error(fmt::format("link \"{}\"", path), errno));
    return {};
  }
  const bool directory = S_ISDIR(info.st_mode);
  if (!directory && !S_ISREG(info.st_mode)) return {};
  if (directory ? mkdir(target.c_str(), 0755) != 0
                : !Fd(open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644)))
    return fail(system_error(fmt::format("make a place for \"{}\"", path), errno));
  if (among(kEmpty, name)) return {};
  if (access(path.c_str(), directory ? X_OK : R_OK) != 0) return {};
  if (directory && (among(kLayered, name) || among(kLayeredDeeper, name))) {
    if (layer(name, scratch, target)) return {};
    // Something is mounted in it. New files can be made all the same, beside what is there.
    if (access(path.c_str(), R_OK) == 0) return show_all(name + "/", scratch, merged);
  }
  const auto copy = read_only_copy(path);
  if (!copy) return fail(copy.error());
  if (move_mount(copy->get(), "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH) != 0)
    return fail(system_error(fmt::format("show \"{}\"", path), errno));
  return {};
}

/// Whatever is in a folder of the machine: "" or a path below "/" that ends with a slash.
Result<void> show_all(const std::string& folder,
                      const std::string& scratch,
                      const std::string& merged) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir(("/" + folder).c_str()), closedir);
  if (!listing) return fail(system_error(fmt::format("list \"/{}\"", folder), errno));
  Result<void> done;
  while (const auto* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (done && name != "." && name != "..")
      done = show(fmt::format("{}{}", folder, name), scratch, merged);
  }
  return done;
}

}  // namespace

Result<void> make_bound_root(const RootPlan& plan,
                             const std::string& scratch,
                             const std::string& merged) {
  if (::mount("tmpfs", merged.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=64m") != 0)
    return fail(system_error("mount a root", errno));
  const auto done = show_all("", scratch, merged);
  if (!done) return done;
  const Fd root(open(merged.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  for (const auto& path : plan.covered) {
    const auto nothing = new_filesystem("tmpfs",
                                        {{"mode", "0755"}, {"size", "4k"}},
                                        kQuiet | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
    if (!nothing) return fail(nothing.error());
    const auto covered = attach_at(root.get(), path, nothing->get());
    if (!covered && covered.error().code != Code::kNotFound) return covered;
  }
  return {};
}

}  // namespace muster::agent::process
