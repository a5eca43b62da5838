#include "agent/beneath.h"

#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"

namespace muster::agent {
namespace {

/// The kernel gives up (EAGAIN) when somebody renames directories while ".." is resolved; nobody
/// can keep that up for long without being noticed.
constexpr int kTries = 32;

int open_at(int directory, const std::string& path, int flags, mode_t mode = 0) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  for (int i = 0; i < kTries; ++i) {
    const auto fd =
        static_cast<int>(syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how));
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) return fd;
  }
  return -1;
}

Error refusal(const std::string& path, int error_number) {
  if (error_number == EXDEV || error_number == ELOOP) {
    Error error;
    error.code = Code::kForbidden;
    error.message = fmt::format("\"{}\" leads out of the directory it must lie in", path);
    return error;
  }
  return system_error(fmt::format("open \"{}\"", path), error_number);
}

}  // namespace

bool stays_beneath(std::string_view path) {
  if (path.starts_with("/")) return false;
  for (const auto& part : split(path, '/')) {
    if (part == "..") return false;
  }
  return true;
}

Result<Fd> open_beneath(int directory, const std::string& path, int flags) {
  Fd fd(open_at(
      directory, path.empty() ? "." : path, (flags & O_PATH) != 0 ? flags : flags | O_NONBLOCK));
  if (!fd) return fail(refusal(path, errno));
  return fd;
}

Result<Fd> make_directories_beneath(int directory, const std::string& path, mode_t mode) {
  auto here = open_beneath(directory, ".", O_RDONLY | O_DIRECTORY);
  std::string so_far;
  for (const auto& part : split_nonempty(path, '/')) {
    if (!here) return here;
    so_far += so_far.empty() ? part : "/" + part;
    const bool made = mkdirat(here->get(), part.c_str(), mode) == 0;
    if (!made && errno != EEXIST)
      return fail(system_error(fmt::format("make directory \"{}\"", so_far), errno));
    if (made) {
      here = open_beneath(here->get(), part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      if (here) fchmod(here->get(), mode);
    } else {
      // From the top, so that a link on the way may lead anywhere inside.
      here = open_beneath(directory, so_far, O_RDONLY | O_DIRECTORY);
    }
  }
  return here;
}

Result<void> write_beneath(int directory,
                           const std::string& path,
                           std::string_view content,
                           mode_t mode) {
  const Fd file(open_at(directory, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  if (!file) return fail(refusal(path, errno));
  while (!content.empty()) {
    const auto wrote = write(file.get(), content.data(), content.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return fail(system_error(fmt::format("write \"{}\"", path), errno));
    content.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (fchmod(file.get(), mode) != 0)
    return fail(system_error(fmt::format("set the mode of \"{}\"", path), errno));
  return {};
}

Result<void> check_host_type(int fd, const std::string& type, const std::string& path) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return fail(system_error(fmt::format("look at \"{}\"", path), errno));
  struct Kind {
    std::string_view type, alternative;
    mode_t format;
    const char* name;
  };
  for (const auto& kind : {Kind{"Directory", "DirectoryOrCreate", S_IFDIR, "directory"},
                           Kind{"File", "FileOrCreate", S_IFREG, "file"},
                           Kind{"Socket", "", S_IFSOCK, "socket file"},
                           Kind{"CharDevice", "", S_IFCHR, "character device"},
                           Kind{"BlockDevice", "", S_IFBLK, "block device"}}) {
    const bool meant = !type.empty() && (type == kind.type || type == kind.alternative);
    if (meant && (info.st_mode & S_IFMT) != kind.format)
      return fail(Code::kInvalid,
                  fmt::format("hostPath type check failed: {} is not a {}", path, kind.name));
  }
  return {};
}

}  // namespace muster::agent
