#include "apiserver/audit/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/strings.h"

namespace muster::apiserver::audit {
namespace {

namespace fs = std::filesystem;

/// How much of the end of the file is looked at for its last lines.
constexpr off_t kTailBytes = 2 << 20;

/// 2026-11-16T15-04-05.000, in UTC: in the order of time, and without what file names may not have.
std::string stamp(Time time) {
  std::string text = format_micro_time(time).substr(0, 23);
  std::replace(text.begin(), text.end(), ':', '-');
  return text;
}

}  // namespace

File::~File() {
  if (file_ > STDERR_FILENO) ::close(file_);
}

Error File::failed(std::string_view what) const {
  Error error;
  error.message = fmt::format(
      "cannot {} audit log {}: {}", what, muster::quoted(options_.path), std::strerror(errno));
  return error;
}

Result<void> File::open() {
  if (options_.path == "-") {
    file_ = STDOUT_FILENO;
    return {};
  }
  file_ = ::open(options_.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file_ < 0) return fail(failed("open"));
  struct stat status{};
  if (::fstat(file_, &status) == 0) size_ = status.st_size;
  return {};
}

Result<void> File::append(const std::string& lines, Time now) {
  if (file_ < 0) {
    const auto opened = open();
    if (!opened) return opened;
  }
  const auto bytes = static_cast<std::int64_t>(lines.size());
  if (file_ != STDOUT_FILENO && size_ > 0 && size_ + bytes > options_.bytes_max) {
    const auto aside = put_aside(now);
    if (!aside) return aside;
  }
  std::size_t done = 0;
  while (done < lines.size()) {
    const ssize_t wrote = ::write(file_, lines.data() + done, lines.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return fail(failed("write"));
    done += static_cast<std::size_t>(wrote);
  }
  size_ += bytes;
  return {};
}

Result<void> File::put_aside(Time now) {
  ::close(file_);
  file_ = -1;
  size_ = 0;
  const fs::path path(options_.path);
  fs::path aside;
  // Two in one millisecond get two names.
  for (int more = 0; aside.empty() || fs::exists(aside); ++more)
    aside = path.parent_path() / fmt::format("{}-{}{}",
                                             path.stem().string(),
                                             stamp(now + std::chrono::milliseconds(more)),
                                             path.extension().string());
  std::error_code problem;
  fs::rename(path, aside, problem);
  if (problem) {
    errno = problem.value();
    return fail(failed("put aside"));
  }
  const auto opened = open();
  if (opened) prune(now);
  return opened;
}

void File::prune(Time now) const {
  const fs::path path(options_.path);
  const std::string begin = path.stem().string() + "-", end = path.extension().string();
  const std::size_t length = begin.size() + stamp(now).size() + end.size();
  std::vector<std::string> names;
  std::error_code problem;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, problem)) {
    std::string name = entry.path().filename().string();
    if (name.size() == length && name.starts_with(begin) && name.ends_with(end))
      names.push_back(std::move(name));
  }
  std::sort(names.rbegin(), names.rend());
  const std::string oldest =
      options_.age_max > Duration::zero() ? begin + stamp(now - options_.age_max) : "";
  for (std::size_t i = 0; i < names.size(); ++i) {
    const bool many =
        options_.backups_max > 0 && i >= static_cast<std::size_t>(options_.backups_max);
    if (many || names[i] < oldest) fs::remove(folder / names[i], problem);
  }
}

std::vector<std::string> File::tail(std::size_t count) const {
  const int file = ::open(options_.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  if (file < 0 || ::fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    if (file >= 0) ::close(file);
    return {};
  }
  const off_t from = std::max<off_t>(0, status.st_size - kTailBytes);
  std::string text(static_cast<std::size_t>(status.st_size - from), '\0');
  const ssize_t got = ::pread(file, text.data(), text.size(), from);
  ::close(file);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  auto lines = split_nonempty(text, '\n');
  if (from > 0 && !lines.empty()) lines.erase(lines.begin());  // begins in the middle
  if (lines.size() > count) lines.erase(lines.begin(), lines.end() - static_cast<long>(count));
  return lines;
}

}  // namespace muster::apiserver::audit
