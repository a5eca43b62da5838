#include "agent/streams/log_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

namespace muster::agent {

namespace fs = std::filesystem;

std::vector<std::string> log_files(const std::string& path) {
  std::vector<std::string> out;
  std::error_code error;
  const auto start = fs::path(path).filename().string() + ".";
  for (fs::directory_iterator item(fs::path(path).parent_path(), error), end; !error && item != end;
       item.increment(error)) {
    if (item->path().filename().string().starts_with(start)) out.push_back(item->path().string());
  }
  std::sort(out.begin(), out.end());
  out.push_back(path);
  return out;
}

std::string next_log_file(const std::string& path, int fd) {
  struct stat own{};
  if (fstat(fd, &own) != 0) return "";
  const auto files = log_files(path);
  for (std::size_t i = 0; i < files.size(); ++i) {
    struct stat other{};
    if (stat(files[i].c_str(), &other) != 0 || other.st_ino != own.st_ino) continue;
    if (i + 1 == files.size()) return "";
    // Until the writer has begun the next one it may still write to this one: a container runtime
    // is told of the new name only after this one was renamed.
    const bool begun = stat(files[i + 1].c_str(), &other) == 0 && other.st_size > 0;
    return begun ? files[i + 1] : "";
  }
  return files.front();  // ours was the oldest and is gone
}

}  // namespace muster::agent
