#include "apiserver/audit/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "apiserver/audit/block.h"
#include "base/strings.h"

namespace muster::apiserver::audit {
namespace {

namespace fs = std::filesystem;

/// How much of the end of the file is looked at for its last lines.
constexpr off_t kTailBytes = 2 << 20;
/// Lines that come so many at once are written past the page cache: that costs half as much, and a
/// fifth where pages have to be fetched from the host of a virtual machine first. Fewer are not
/// worth a write of their own to the disk, and more are there at once only if the disk is slower
/// than requests come; the page cache takes those.
constexpr std::size_t kDirectMin = 256 << 10, kDirectMax = 4 << 20;

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
  direct_ = false;
  can_direct_ = S_ISREG(status.st_mode);
  return {};
}

void File::set_direct(bool direct) {
  if (direct == direct_) return;
  if (::fcntl(file_, F_SETFL, O_APPEND | (direct ? O_DIRECT : 0)) == 0)
    direct_ = direct;
  else
    can_direct_ = false;
}

Result<void> File::append(Block& lines, Time now) {
  if (file_ < 0) {
    const auto opened = open();
    if (!opened) return opened;
  }
  constexpr auto kAlignment = static_cast<std::int64_t>(Block::kAlignment);
  const bool many = can_direct_ && lines.size() >= kDirectMin && lines.size() <= kDirectMax;
  const auto bytes = static_cast<std::int64_t>(lines.size()) + (many ? kAlignment : 0);
  if (file_ != STDOUT_FILENO && size_ > 0 && size_ + bytes > options_.bytes_max) {
    const auto aside = put_aside(now);
    if (!aside) return aside;
  }
  set_direct(many && size_ % kAlignment == 0);
  if (many) {
    const std::int64_t over = (size_ + static_cast<std::int64_t>(lines.size())) % kAlignment;
    if (over > 0) lines.lengthen(static_cast<std::size_t>(kAlignment - over));
  }
  return write(lines.view());
}

Result<void> File::write(std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file_, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno == EINVAL && direct_) {
      // Blocks of this disk are larger, or some of it was written and no block ends there.
      set_direct(false);
      can_direct_ = false;
      continue;
    }
    if (wrote < 0) return fail(failed("write"));
    text.remove_prefix(static_cast<std::size_t>(wrote));
    size_ += wrote;
  }
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
