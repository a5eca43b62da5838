#include "agent/streams/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace muster::agent {

void LogDecoder::record(std::string_view line, std::string& out) {
  const auto first = line.find(' ');
  if (first == std::string_view::npos) return;
  const auto second = line.find(' ', first + 1);
  if (second == std::string_view::npos || line.size() < second + 3) return;
  const auto time = line.substr(0, first);
  const auto stream = line.substr(first + 1, second - first - 1);
  const bool whole = line[second + 1] == 'F';
  const auto content = line.substr(second + 3);
  if (!options_.stream.empty() && options_.stream != "All" &&
      (options_.stream == "Stderr") != (stream == "stderr"))
    return;
  if (options_.since) {
    const auto parsed = parse_time(time);
    if (parsed && *parsed < options_.since) return;
  }
  if (options_.timestamps && !inside_line_) {
    out += time;
    out += ' ';
  }
  out += content;
  if (whole) out += '\n';
  inside_line_ = !whole;
}

std::string LogDecoder::feed(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const auto newline = bytes.find('\n');
    if (newline == std::string_view::npos) {
      rest_ += bytes;
      break;
    }
    if (rest_.empty()) {
      record(bytes.substr(0, newline), out);
    } else {
      rest_ += bytes.substr(0, newline);
      record(rest_, out);
      rest_.clear();
    }
    bytes.remove_prefix(newline + 1);
  }
  return out;
}

std::int64_t tail_offset(int fd, std::int64_t lines) {
  const auto size = lseek(fd, 0, SEEK_END);
  if (lines <= 0 || size <= 0) return size;
  // Records, not lines, are counted from the end; a piece ("P") belongs to the line that follows
  // it, so pieces found on the way are not counted.
  constexpr std::int64_t kBlock = 64 * 1024;
  std::string tail;
  std::int64_t begin = size;
  while (begin > 0) {
    const auto from = std::max<std::int64_t>(0, begin - kBlock);
    std::string block(static_cast<std::size_t>(begin - from), '\0');
    const auto got = pread(fd, block.data(), block.size(), from);
    if (got <= 0) break;
    block.resize(static_cast<std::size_t>(got));
    tail.insert(0, block);
    begin = from;
    // Count whole records after the first newline of what we have.
    std::int64_t found = 0;
    std::size_t end = tail.size();
    bool last = true;
    while (end > 0) {
      const auto previous = end >= 2 ? tail.rfind('\n', end - 2) : std::string::npos;
      if (previous == std::string::npos && begin > 0) break;
      const auto start = previous == std::string::npos ? 0 : previous + 1;
      const auto line = std::string_view(tail).substr(start, end - start);
      const auto tag = line.find(" F ");
      const auto piece = line.find(" P ");
      const bool whole =
          tag != std::string_view::npos && (piece == std::string_view::npos || tag < piece);
      // An unfinished last line counts as one, too.
      if (whole || last) {
        if (found == lines) return begin + static_cast<std::int64_t>(end);
        ++found;
      }
      last = false;
      end = start;
    }
  }
  return 0;
}

std::int64_t count_lines(int fd) {
  std::int64_t lines = 0;
  std::string rest, block(64 * 1024, '\0');
  lseek(fd, 0, SEEK_SET);
  for (ssize_t got; (got = read(fd, block.data(), block.size())) > 0;) {
    rest.append(block, 0, static_cast<std::size_t>(got));
    std::size_t begin = 0;
    for (std::size_t end; (end = rest.find('\n', begin)) != std::string::npos; begin = end + 1) {
      // "<time> stdout F ": the tag is the third word.
      const auto stream = rest.find(' ', begin);
      const auto tag = stream < end ? rest.find(' ', stream + 1) : std::string::npos;
      if (tag < end && rest.compare(tag, 3, " F ") == 0) ++lines;
    }
    rest.erase(0, begin);
  }
  return lines;
}

std::string read_log(const std::string& path, const LogOptions& options) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  if (options.tail_lines >= 0) {
    lseek(fd, tail_offset(fd, options.tail_lines), SEEK_SET);
  } else {
    lseek(fd, 0, SEEK_SET);
  }
  LogDecoder decoder(options);
  std::string out, block(64 * 1024, '\0');
  for (ssize_t got; (got = read(fd, block.data(), block.size())) > 0;)
    out += decoder.feed(std::string_view(block).substr(0, static_cast<std::size_t>(got)));
  close(fd);
  if (options.limit_bytes >= 0 && out.size() > static_cast<std::size_t>(options.limit_bytes))
    out.resize(static_cast<std::size_t>(options.limit_bytes));
  return out;
}

}  // namespace muster::agent
