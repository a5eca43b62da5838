#include "agent/process/log_writer.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "agent/files.h"
#include "agent/streams/log_files.h"

namespace muster::agent::process {
namespace {

constexpr std::size_t kPieceMax = 16 * 1024;
// A kubelet's defaults: containerLogMaxSize 10Mi, containerLogMaxFiles 5.
constexpr std::int64_t kFileMax = 10 * 1024 * 1024;
constexpr std::size_t kRotatedMax = 4;

void append_time(std::string& out) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  static time_t cached_second = 0;
  static char cached_text[32];
  if (now.tv_sec != cached_second) {
    tm parts{};
    gmtime_r(&now.tv_sec, &parts);
    strftime(cached_text, sizeof cached_text, "%Y-%m-%dT%H:%M:%S", &parts);
    cached_second = now.tv_sec;
  }
  out += fmt::format("{}.{:09}Z", cached_text, now.tv_nsec);
}

}  // namespace

void LogWriter::open_file() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  file_.reset(open(path_.c_str(), kFlags, 0640));
  if (!file_ && errno == ENOENT && make_directory(path_.substr(0, path_.rfind('/'))))
    file_.reset(open(path_.c_str(), kFlags, 0640));
  if (file_) size_ = lseek(file_.get(), 0, SEEK_END);
}

void LogWriter::rotate() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char second[32];
  strftime(second, sizeof second, "%Y%m%d-%H%M%S", &parts);
  if (rename(path_.c_str(), fmt::format("{}.{}.{:09}", path_, second, now.tv_nsec).c_str()) != 0)
    return;
  file_.reset(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
  size_ = 0;
  auto files = log_files(path_);
  files.pop_back();  // the new one
  for (std::size_t i = 0; i + kRotatedMax < files.size(); ++i) unlink(files[i].c_str());
}

void LogWriter::append_record(Stream stream, std::string_view line, bool whole, std::string& out) {
  append_time(out);
  out += stream == kStdout ? " stdout " : " stderr ";
  out += whole ? "F " : "P ";
  out += line;
  out += '\n';
}

void LogWriter::write(Stream stream, std::string_view bytes) {
  std::string records;
  auto& rest = rest_[stream];
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    const auto piece = bytes.substr(0, newline == std::string_view::npos ? bytes.size() : newline);
    const auto room = kPieceMax - rest.size();
    if (piece.size() >= room && !(newline != std::string_view::npos && piece.size() == room)) {
      rest += piece.substr(0, room);
      append_record(stream, rest, false, records);
      rest.clear();
      bytes.remove_prefix(room);
      continue;
    }
    rest += piece;
    bytes.remove_prefix(piece.size());
    if (newline == std::string_view::npos) break;
    bytes.remove_prefix(1);
    append_record(stream, rest, true, records);
    rest.clear();
  }
  flush(records);
}

void LogWriter::finish() {
  std::string records;
  for (const auto stream : {kStdout, kStderr}) {
    if (!rest_[stream].empty()) append_record(stream, rest_[stream], false, records);
    rest_[stream].clear();
  }
  flush(records);
}

void LogWriter::flush(const std::string& records) {
  if (records.empty()) return;
  if (!file_) open_file();
  std::size_t done = 0;
  while (file_ && done < records.size()) {
    const auto wrote = ::write(file_.get(), records.data() + done, records.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // a full disk loses log lines, not the pod
    done += static_cast<std::size_t>(wrote);
  }
  size_ += static_cast<std::int64_t>(done);
  if (size_ >= kFileMax) rotate();
}

}  // namespace muster::agent::process
