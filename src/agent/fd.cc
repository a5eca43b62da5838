#include "agent/fd.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace muster::agent {

void Fd::reset(int fd) {
  if (fd_ >= 0) close(fd_);
  fd_ = fd;
}

Error system_error(const std::string& what, int error_number) {
  Error error;
  error.code = error_number == ENOENT ? Code::kNotFound : Code::kInternal;
  error.message = fmt::format("{}: {}", what, std::strerror(error_number));
  return error;
}

}  // namespace muster::agent
