/// Reads logs in CRI's format back into what `kubectl logs` shows.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

namespace muster::agent {

struct LogOptions {
  bool timestamps = false;
  Time since;                     // zero: all
  std::int64_t tail_lines = -1;   // -1: all
  std::int64_t limit_bytes = -1;  // -1: no limit
  std::string stream;             // "Stdout" or "Stderr" only; empty: both
};

/// Turns complete records of a log file into text; keeps an unfinished record for the next call.
class LogDecoder {
 public:
  explicit LogDecoder(LogOptions options) : options_(std::move(options)) {}
  /// Returns what `bytes` (the next of the file) add to the output.
  std::string feed(std::string_view bytes);

 private:
  void record(std::string_view line, std::string& out);
  LogOptions options_;
  std::string rest_;
  bool inside_line_ = false;  // the last record was a piece ("P")
};

/// Where the last `lines` lines of a log file begin. Reads backwards in blocks: cost does not grow
/// with the file.
std::int64_t tail_offset(int fd, std::int64_t lines);
/// Whole lines ("F" records) of the file; leaves its offset at the end.
std::int64_t count_lines(int fd);
/// The whole of a finished log (blocking; small uses and tests).
std::string read_log(const std::string& path, const LogOptions& options);

}  // namespace muster::agent
