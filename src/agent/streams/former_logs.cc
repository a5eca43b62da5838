#include "agent/streams/former_logs.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <vector>

#include "agent/files.h"
#include "agent/pod/container_spec.h"
#include "agent/streams/log_files.h"
#include "agent/streams/log_reader.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

/// A uid becomes the name of a folder.
bool is_uid(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
  });
}

std::uintmax_t size_of(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code one;
    const auto size = item->file_size(one);
    if (!one) bytes += size;
  }
  return bytes;
}

}  // namespace

void FormerLogs::keep(const std::string& pod_directory, const std::string& uid) const {
  if (!is_uid(uid)) return;
  const fs::path place = fs::path(directory_) / uid;
  std::error_code error;
  fs::remove_all(place, error);
  if (!make_directory(place.string())) return;
  for (fs::directory_iterator item(pod_directory, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code one;
    if (item->is_regular_file(one) &&
        item->path().filename().string().find(".log") != std::string::npos)
      fs::rename(item->path(), place / item->path().filename(), one);
  }
  if (std::hash<std::string>{}(uid) % limits_.checked_every == 0) forget_oldest();
}

void FormerLogs::forget_oldest() const {
  struct Kept {
    fs::file_time_type when;
    fs::path path;
  };
  std::vector<Kept> all;
  std::error_code error;
  for (fs::directory_iterator item(directory_, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code one;
    all.push_back({item->last_write_time(one), item->path()});
  }
  std::sort(all.begin(), all.end(), [](const Kept& a, const Kept& b) { return a.when > b.when; });
  const auto oldest = fs::file_time_type::clock::now() - limits_.age_max;
  std::uintmax_t bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    bytes += size_of(all[i].path);
    std::error_code one;
    if (i >= limits_.pods_max || bytes > limits_.bytes_max || all[i].when < oldest)
      fs::remove_all(all[i].path, one);
  }
}

std::optional<std::string> FormerLogs::read(std::string_view uid,
                                            const std::string& container,
                                            std::size_t bytes_max) const {
  if (!is_uid(uid)) return std::nullopt;
  const std::string path = log_path(fmt::format("{}/{}", directory_, uid), container, 0);
  std::error_code none;
  if (!fs::exists(fs::path(directory_) / uid, none)) return std::nullopt;
  const auto files = log_files(path);
  std::string text;  // one that wrote nothing has no file
  for (auto file = files.rbegin(); file != files.rend() && text.size() < bytes_max; ++file)
    text.insert(0, read_log(*file, {}));
  if (text.size() > bytes_max) text.erase(0, text.size() - bytes_max);
  return text;
}

}  // namespace muster::agent
