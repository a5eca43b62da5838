/// A file that lines are added to and that is put aside when it is full:
/// audit.log, audit-2026-11-16T15-04-05.000.log, … Used on one worker at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::apiserver::audit {

struct FileOptions {
  std::string path;  // "-": standard output, which is never put aside
  std::int64_t bytes_max = 100 << 20;
  Duration age_max{};   // of files put aside; zero: any
  int backups_max = 0;  // files put aside that are kept; 0: all
};

class File {
 public:
  explicit File(FileOptions options) : options_(std::move(options)) {}
  File(const File&) = delete;
  ~File();
  /// For writing at its end, mode 0600; made if it is not there.
  Result<void> open();
  /// Whole lines, with their ends.
  Result<void> append(const std::string& lines, Time now);
  /// The last lines of what was written before, at most `count`.
  [[nodiscard]] std::vector<std::string> tail(std::size_t count) const;

 private:
  Result<void> put_aside(Time now);
  void prune(Time now) const;
  [[nodiscard]] Error failed(std::string_view what) const;

  const FileOptions options_;
  int file_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace muster::apiserver::audit
