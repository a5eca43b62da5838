#include "agent/process/landlock.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "agent/fd.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

/// What a file can be asked for, and what only a directory can. Listing is left alone.
constexpr std::uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_READ_FILE;
constexpr std::uint64_t kOfDirectories =
    LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_CHAR |
    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;
/// Newer than the first version, and than some headers.
constexpr std::uint64_t kRefer = 1ULL << 13, kTruncate = 1ULL << 14;
constexpr int kReferSince = 2, kTruncateSince = 3;

int version() {
  return static_cast<int>(syscall(
      SYS_landlock_create_ruleset, nullptr, std::size_t{0}, LANDLOCK_CREATE_RULESET_VERSION));
}

struct Rights {
  std::uint64_t of_files = kOfFiles;
  std::uint64_t of_directories = kOfDirectories;
};

Rights rights_of(int known) {
  Rights out;
  if (known >= kTruncateSince) out.of_files |= kTruncate;
  if (known >= kReferSince) out.of_directories |= kRefer;
  return out;
}

/// One entry of a directory on the way. What cannot be opened is nothing that could be used.
bool allow(int rules, int directory, const char* name, const Rights& rights) {
  const Fd entry(openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!entry || fstat(entry.get(), &info) != 0 || S_ISLNK(info.st_mode)) return true;
  landlock_path_beneath_attr beneath{};
  beneath.parent_fd = entry.get();
  beneath.allowed_access =
      rights.of_files | (S_ISDIR(info.st_mode) ? rights.of_directories : std::uint64_t{0});
  return syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == 0;
}

/// Everything in `directory` but `name`.
Result<void> allow_beside(int rules,
                          const std::string& directory,
                          const std::string& name,
                          const Rights& rights) {
  auto* listing = opendir(directory.c_str());
  if (listing == nullptr) {
    // Nobody's to list: then nothing in it is known, and nothing in it is allowed.
    if (errno == EACCES) return {};
    return fail(system_error(fmt::format("list \"{}\"", directory), errno));
  }
  Result<void> done;
  while (const auto* entry = readdir(listing)) {
    const std::string one = entry->d_name;
    if (!done || one == "." || one == ".." || one == name) continue;
    if (!allow(rules, dirfd(listing), entry->d_name, rights))
      done = fail(system_error(fmt::format("allow \"{}/{}\"", directory, one), errno));
  }
  closedir(listing);
  return done;
}

}  // namespace

std::string no_landlock() { return version() >= 1 ? "" : system_error("Landlock", errno).message; }

Result<void> close_folder(const std::string& folder) {
  const auto rights = rights_of(version());
  landlock_ruleset_attr wanted{};
  wanted.handled_access_fs = rights.of_files | rights.of_directories;
  const Fd rules(static_cast<int>(syscall(
      SYS_landlock_create_ruleset, &wanted, sizeof wanted.handled_access_fs, std::uint32_t{0})));
  if (!rules) return fail(system_error("make rules of Landlock", errno));
  std::string directory = "/";
  for (const auto& name : split_nonempty(folder, '/')) {
    const auto done = allow_beside(rules.get(), directory, name, rights);
    if (!done) return done;
    directory += (directory.size() > 1 ? "/" : "") + name;
  }
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      syscall(SYS_landlock_restrict_self, rules.get(), std::uint32_t{0}) != 0)
    return fail(system_error(fmt::format("close \"{}\"", folder), errno));
  return {};
}

}  // namespace muster::agent::process
