#include "base/files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

namespace muster {

Result<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    return fail(Code::kNotFound, fmt::format("cannot read \"{}\": {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

Result<void> write_private(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (file < 0)
    return fail(Code::kInternal,
                fmt::format("cannot write \"{}\": {}", path, std::strerror(errno)));
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote < 0) {
      const int error = errno;
      ::close(file);
      return fail(Code::kInternal,
                  fmt::format("cannot write \"{}\": {}", path, std::strerror(error)));
    }
    done += static_cast<std::size_t>(wrote);
  }
  ::close(file);
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail(Code::kInternal,
                fmt::format("cannot write \"{}\": {}", path, std::strerror(errno)));
  return {};
}

}  // namespace muster
