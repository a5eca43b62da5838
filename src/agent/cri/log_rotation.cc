#include "agent/cri/log_rotation.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include "agent/streams/log_files.h"

namespace muster::agent::cri {
namespace {

// A kubelet's defaults: containerLogMaxSize 10Mi, containerLogMaxFiles 5.
constexpr off_t kFileMax = 10 * 1024 * 1024;
constexpr std::size_t kRotatedMax = 4;

}  // namespace

bool turn_log_over(const std::string& path) {
  struct stat info{};
  if (stat(path.c_str(), &info) != 0 || info.st_size < kFileMax) return false;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char second[32];
  strftime(second, sizeof second, "%Y%m%d-%H%M%S", &parts);
  if (rename(path.c_str(), fmt::format("{}.{}.{:09}", path, second, now.tv_nsec).c_str()) != 0)
    return false;
  auto files = log_files(path);
  files.pop_back();  // the new one
  for (std::size_t i = 0; i + kRotatedMax < files.size(); ++i) unlink(files[i].c_str());
  return true;
}

}  // namespace muster::agent::cri
