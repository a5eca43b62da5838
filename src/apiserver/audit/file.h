/// A file that lines are added to and that is put aside when it is full:
/// audit.log, audit-2026-11-16T15-04-05.000.log, … Used on one worker at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

namespace muster::apiserver::audit {

class Block;

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
  /// Whole lines, with their ends. Many at once get spaces before the last end, so that the file ends
  /// with a block of the disk; what comes after that is written past the page cache if it is many
  /// lines, too.
  Result<void> append(Block& lines, Time now);
  /// The last lines of what was written before, at most `count`.
  [[nodiscard]] std::vector<std::string> tail(std::size_t count) const;

 private:
  Result<void> put_aside(Time now);
  Result<void> write(std::string_view text);
  void set_direct(bool direct);
  void prune(Time now) const;
  [[nodiscard]] Error failed(std::string_view what) const;

  const FileOptions options_;
  int file_ = -1;
  std::int64_t size_ = 0;
  bool direct_ = false;      // writes go past the page cache
  bool can_direct_ = false;  // and may: it is a file of a kind that can
};

}  // namespace muster::apiserver::audit
