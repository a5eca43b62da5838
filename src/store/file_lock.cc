#include "store/file_lock.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::store {

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<FileLock> FileLock::take(const std::string& path) {
  FileLock lock;
  lock.fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock.fd_ < 0)
    return fail(Code::kInternal,
                fmt::format("store: cannot open \"{}\": {}", path, std::strerror(errno)));
  if (::flock(lock.fd_, LOCK_EX | LOCK_NB) != 0)
    return fail(Code::kConflict,
                fmt::format("store: \"{}\" is held by another process, stop it first", path));
  return lock;
}

}  // namespace muster::store
