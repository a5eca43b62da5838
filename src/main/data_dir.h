/// The data folder of an embedded cluster: its lock, its process id, its log.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace muster {

/// $MUSTER_HOME, else ~/.muster.
std::string default_data_dir();

/// The command that stops the cluster of this folder, and no other.
std::string down_command(const std::string& directory);

/// Held for as long as the process lives, so that two never share a folder.
class DataLock {
 public:
  /// Makes the folder (0700) and locks it; fails when another process holds it. Once it is ours,
  /// nothing in it stays readable for others.
  static Result<DataLock> take(const std::string& directory);
  DataLock(DataLock&& other) noexcept
      : file_(other.file_), directory_(std::move(other.directory_)) {
    other.file_ = -1;
  }
  DataLock& operator=(DataLock&&) = delete;
  ~DataLock();
  /// Writes the process id and address for `status` and `down`.
  Result<void> publish(const std::string& address) const;

 private:
  DataLock(int file, std::string directory) : file_(file), directory_(std::move(directory)) {}
  int file_ = -1;
  std::string directory_;
};

struct Running {
  pid_t pid = 0;  // 0: nobody
  std::string address;
};
/// Who holds the folder now.
Running find_running(const std::string& directory);

}  // namespace muster
