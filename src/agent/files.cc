#include "agent/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace muster::agent {
namespace {

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const auto wrote = write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

}  // namespace

std::string read_file(const std::string& path, std::size_t bytes_max) {
  std::string out;
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  char buffer[8192];
  while (out.size() < bytes_max) {
    const auto got = read(fd, buffer, std::min(sizeof buffer, bytes_max - out.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    out.append(buffer, static_cast<std::size_t>(got));
  }
  close(fd);
  return out;
}

Result<void> write_file(const std::string& path, std::string_view text, mode_t mode) {
  const auto problem = [&path] {
    return fail(Code::kInternal, fmt::format("write \"{}\": {}", path, std::strerror(errno)));
  };
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return problem();
  const bool written = write_all(fd, text) && fchmod(fd, mode) == 0;
  if (!written) {
    auto failed = problem();
    close(fd);
    return failed;
  }
  if (close(fd) != 0) return problem();
  return {};
}

Result<void> make_directory(const std::string& path) {
  if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return fail(Code::kInternal, fmt::format("make \"{}\": {}", path, error.message()));
  return {};
}

}  // namespace muster::agent
