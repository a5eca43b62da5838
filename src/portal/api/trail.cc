#include "portal/api/trail.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "base/time.h"
#include "json/json.h"

namespace muster::portal {
namespace {

void append(const std::string& path, const std::string& line, std::int64_t max) {
  std::error_code ignored;
  if (std::filesystem::exists(path, ignored) &&
      static_cast<std::int64_t>(std::filesystem::file_size(path, ignored)) > max)
    std::filesystem::rename(path, path + ".1", ignored);
  const bool fresh = !std::filesystem::exists(path, ignored);
  std::ofstream file(path, std::ios::app | std::ios::binary);
  if (fresh) ::chmod(path.c_str(), 0600);
  file << line;
  file.flush();
  if (!file) log::warn("portal", "{}: actions are not recorded", path);
}

}  // namespace

void Trail::note(const Deed& deed) {
  std::string line =
      json::dump(json::Value{{"id", fmt::format("portal-{}-{}", env_.now().us, ++count_)},
                             {"at", env_.now().us / 1000},
                             {"user", deed.user},
                             {"from", deed.from},
                             {"verb", deed.verb},
                             {"object", deed.object.substr(0, 300)},
                             {"code", deed.code},
                             {"text", deed.text.substr(0, 300)}});
  line += '\n';
  if (file_.empty()) {
    lines_.push_back(std::move(line));
    if (lines_.size() > kLinesMax) lines_.pop_front();
    return;
  }
  env_.offload([path = file_, line = std::move(line)] { append(path, line, kFileMax); }, [] {});
}

}  // namespace muster::portal
