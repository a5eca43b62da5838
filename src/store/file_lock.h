/// A file that only one process may hold at a time.
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace muster::store {

class FileLock {
 public:
  FileLock() = default;
  FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~FileLock();
  static Result<FileLock> take(const std::string& path);

 private:
  int fd_ = -1;
};

}  // namespace muster::store
