/// A container's output as CRI's log format: `2026-11-15T05:40:00.123456789Z stdout F the line`.
///
/// "P" marks a piece of a line that goes on in the next record (long lines, and a last one without
/// newline), so the bytes a container wrote can be read back exactly. A file that has reached
/// kFileMax is renamed to `<path>.<time>` and a new one begun; of the renamed ones the youngest
/// kRotatedMax stay. Readers follow by agent/streams/log_files.h. A container that writes nothing
/// has no file.
#pragma once

#include <string>
#include <string_view>

#include "agent/process/messages.h"

namespace muster::agent::process {

class LogWriter {
 public:
  explicit LogWriter(std::string path) : path_(std::move(path)) {}
  enum Stream { kStdout = 0, kStderr = 1 };
  void write(Stream stream, std::string_view bytes);
  /// Whatever has no newline yet.
  void finish();

 private:
  void append_record(Stream stream, std::string_view line, bool whole, std::string& out);
  void flush(const std::string& records);
  void open_file();
  void rotate();

  const std::string path_;
  Fd file_;
  std::int64_t size_ = 0;
  std::string rest_[2];  // the unfinished line of each stream, at most kPieceMax bytes
};

}  // namespace muster::agent::process
