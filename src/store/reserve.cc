#include "store/reserve.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

namespace muster::store {
namespace {

/// The log is carried over into the database every 4 MiB, which grows by as much.
constexpr std::int64_t kBytesMin = 8 << 20;
constexpr std::int64_t kBytesMax = 32 << 20;

class FileReserve final : public Reserve {
 public:
  explicit FileReserve(std::string path) : path_(std::move(path)) {}

  bool hold() override {
    const int file = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return false;
    const bool held = fill(file);
    ::close(file);
    if (!held) release();
    return held;
  }

  void release() override { ::unlink(path_.c_str()); }

 private:
  static bool fill(int file) {
    struct stat status{};
    struct statvfs disk{};
    if (::fstat(file, &status) != 0 || ::fstatvfs(file, &disk) != 0) return false;
    const auto unit = static_cast<std::int64_t>(disk.f_frsize);
    const auto total = unit * static_cast<std::int64_t>(disk.f_blocks);
    const auto free = unit * static_cast<std::int64_t>(disk.f_bavail);
    const std::int64_t wanted = std::clamp(total / 16, kBytesMin, kBytesMax);
    if (status.st_size >= wanted) return true;
    if (free < wanted + wanted / 2) return false;
    return ::posix_fallocate(file, 0, wanted) == 0;
  }

  std::string path_;
};

}  // namespace

std::unique_ptr<Reserve> make_reserve(std::string path) {
  return std::make_unique<FileReserve>(std::move(path));
}

}  // namespace muster::store
