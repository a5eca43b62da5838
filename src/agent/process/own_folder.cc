#include "agent/process/own_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "agent/files.h"
#include "agent/process/mounts.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

/// Directories of a folder by their paths in it, parents first, and places for files among them.
struct Entry {
  mode_t mode = 0755;
  bool may_be_file = false;
};
std::map<std::string, Entry> entries_of(const RootPlan& plan) {
  std::map<std::string, Entry> out;
  for (const auto& own : kOwnDirectories) {
    out[own.name] = {own.mode, false};
    // What is shown of the machine below it has a place there.
    for (const auto& shown : plan.show) {
      const auto inside = std::string(own.target) + "/";
      if (!shown.starts_with(inside)) continue;
      std::string path = own.name;
      for (const auto& part : split_nonempty(shown.substr(inside.size()), '/')) {
        path += "/" + part;
        out.emplace(path, Entry{0755, false});
      }
      out[path].may_be_file = true;
    }
  }
  return out;
}

/// Flags such as "append only" or "encrypted" that belong to what is in it as well, and that of a
/// directory that has grown; -1: this file system has none.
long flags_of(int opened) {
  long flags = 0;
  return ioctl(opened, FS_IOC_GETFLAGS, &flags) == 0 ? flags : -1;
}

Fd open_entry(const std::string& path) {
  return Fd(open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
}

bool holds_only(Fd directory, const std::function<bool(const char*)>& known) {
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(fdopendir(directory.get()), closedir);
  if (!listing) return false;
  (void)directory.release();
  errno = 0;
  while (const auto* entry = readdir(listing.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && !known(entry->d_name)) return false;
  }
  return errno == 0;
}

/// Nothing is there but what was made for the container, as it was made; owners, modes and times are
/// set anew before the next one has it.
bool is_untouched(const std::string& folder, const RootPlan& plan) {
  const auto usual_flags = flags_of(open_entry(plan.ahead).get());
  const auto entries = entries_of(plan);
  const auto in = [&entries](const std::string& parent) {
    return [&entries, parent](const char* name) { return entries.contains(parent + name); };
  };
  if (!holds_only(open_entry(folder), in(""))) return false;
  return std::all_of(entries.begin(), entries.end(), [&](const auto& item) {
    const auto& [name, entry] = item;
    Fd opened = open_entry(folder + "/" + name);
    struct stat info{};
    if (!opened || fstat(opened.get(), &info) != 0) return false;
    if (flistxattr(opened.get(), nullptr, 0) > 0) return false;  // access lists among them
    if (flags_of(opened.get()) != usual_flags) return false;
    if (S_ISREG(info.st_mode)) return entry.may_be_file && info.st_size == 0 && info.st_nlink == 1;
    return S_ISDIR(info.st_mode) && holds_only(std::move(opened), in(name + "/"));
  });
}

bool lies_in(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder + "/");
}

}  // namespace

Result<std::string> make_folder(const RootPlan& plan, const Owner& owner, FolderKind kind) {
  if (plan.ahead.empty()) return fail(Code::kInternal, "there is no place for containers' folders");
  // Not after the process: first processes of containers, which make one too, are all number 1.
  std::string folder = plan.ahead + "/XXXXXX";
  if (mkdtemp(folder.data()) == nullptr || chmod(folder.c_str(), 0755) != 0)
    return fail(system_error(fmt::format("make a folder in \"{}\"", plan.ahead), errno));
  std::vector<std::pair<std::string, mode_t>> wanted;
  if (kind == FolderKind::kHost) {
    for (const auto& own : kOwnDirectories) wanted.emplace_back(folder + "/" + own.name, own.mode);
  } else {
    for (const auto* name : kImageDirectories) wanted.emplace_back(folder + "/" + name, 0755);
  }
  for (const auto& [path, mode] : wanted) {
    // The umask is 022; a sticky bit must be asked for.
    if (mkdir(path.c_str(), mode & 0777) != 0 ||
        ((mode & 07022) != 0 && chmod(path.c_str(), mode) != 0))
      return fail(system_error(fmt::format("make \"{}\"", path), errno));
    if (owner.mapped() && chown(path.c_str(), owner.first, owner.first) != 0)
      return fail(system_error(fmt::format("give away \"{}\"", path), errno));
  }
  return folder;
}

std::string folder_of(const ShimConfig& shim, const ContainerConfig& config) {
  return root_folder(shim.sandbox.directory, config.name);
}

Result<bool> move_in(const std::string& folder,
                     const ShimConfig& shim,
                     const ContainerConfig& config) {
  const auto to = folder_of(shim, config);
  std::error_code ignored;
  std::filesystem::remove_all(to, ignored);
  if (rename(folder.c_str(), to.c_str()) == 0) return true;
  const auto place = make_directories(to.substr(0, to.rfind('/')));  // of the first pod of all
  if (!place) return fail(place.error());
  if (rename(folder.c_str(), to.c_str()) == 0) return true;
  if (errno == ENOENT) return false;
  return fail(system_error(fmt::format("make \"{}\"", to), errno));
}

bool shares_files(const ShimConfig& shim, const ContainerConfig& config) {
  const auto shown = [](const std::string& path) { return path.ends_with(":rw"); };
  return std::any_of(shim.roots.show.begin(), shim.roots.show.end(), shown) ||
         std::any_of(config.mounts.begin(), config.mounts.end(), [&shim](const Mount& mount) {
           return !lies_in(mount.source, shim.sandbox.directory) &&
                  !lies_in(mount.source, shim.sandbox.run_directory);
         });
}

std::string take_back(const ShimConfig& shim, const ContainerConfig& config) {
  const auto& plan = shim.roots;
  const auto folder = folder_of(shim, config);
  if (plan.ahead.empty() || !is_untouched(folder, plan)) return "";
  const auto to = fmt::format("{}/{}_{}", plan.ahead, shim.sandbox.id, config.name);
  return rename(folder.c_str(), to.c_str()) == 0 ? to : "";
}

bool renew_folder(const std::string& folder, const RootPlan& plan, const Owner& owner) {
  const auto entries = entries_of(plan);
  return std::all_of(entries.begin(), entries.end(), [&](const auto& item) {
    const auto path = folder + "/" + item.first;
    return chown(path.c_str(), owner.first, owner.first) == 0 &&
           chmod(path.c_str(), item.second.mode) == 0 &&
           utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
  });
}

}  // namespace muster::agent::process
