#include "agent/node/disk_watch.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "agent/beneath.h"
#include "base/quantity.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;
using std::chrono::seconds;

constexpr Duration kPause = seconds(10);  // a kubelet's
constexpr int kPausePerWork = 20;
constexpr auto kStorage = "ephemeral-storage";

std::int64_t bytes_of(const json::Value& quantity) {
  if (quantity.is_null()) return 0;
  const auto parsed = parse_quantity(json::as_string(quantity));
  return parsed ? parsed->units() : 0;
}

bool on_disk(const json::Value& volume) {
  const auto& empty = at(volume, "emptyDir");
  return !empty.is_null() && json::string_at(empty, "medium") != "Memory";
}

std::int64_t storage_limit(const json::Value& container) {
  return bytes_of(at(container, "resources", "limits", kStorage));
}

/// Of all attempts, and what was rotated away.
std::int64_t log_bytes(const std::string& pod_directory, const std::string& container) {
  std::int64_t bytes = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator item(pod_directory, error), end; !error && item != end;
       item.increment(error)) {
    struct stat info{};
    if (item->path().filename().string().starts_with(container + "_") &&
        lstat(item->path().c_str(), &info) == 0)
      bytes += info.st_blocks * 512;
  }
  return bytes;
}

/// Calls `see` with each container of the pod's spec.
template <typename See>
void each_container(const json::Value& pod, See see) {
  for (const auto* list : {"initContainers", "containers"}) {
    for (const auto& one : json::array_at(pod, "spec", list)) see(one);
  }
}

}  // namespace

std::int64_t disk_bytes(const std::string& directory) {
  const Fd root(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat top{};
  if (!root || fstat(root.get(), &top) != 0) return 0;
  std::int64_t bytes = 0;
  // By path from the top, one directory open at a time: a pod can nest them deeper than there are
  // descriptors.
  std::vector<std::string> left{"."};
  while (!left.empty()) {
    const auto path = std::move(left.back());
    left.pop_back();
    auto opened = open_beneath(root.get(), path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (!opened) continue;  // gone meanwhile
    auto* listing = fdopendir(opened->get());
    if (listing == nullptr) continue;
    opened->release();
    while (const auto* entry = readdir(listing)) {
      const std::string name = entry->d_name;
      struct stat info{};
      if (name == "." || name == ".." ||
          fstatat(dirfd(listing), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
          info.st_dev != top.st_dev)
        continue;
      const bool folder = S_ISDIR(info.st_mode);
      const auto names =
          folder ? 1 : std::max<std::int64_t>(1, static_cast<std::int64_t>(info.st_nlink));
      bytes += info.st_blocks * 512 / names;
      if (folder) left.push_back(path + "/" + name);
    }
    closedir(listing);
  }
  return bytes;
}

bool has_disk_limits(const json::Value& pod) {
  bool found = false;
  for (const auto& volume : json::array_at(pod, "spec", "volumes"))
    found = found || (on_disk(volume) && bytes_of(at(volume, "emptyDir", "sizeLimit")) > 0);
  each_container(pod,
                 [&found](const json::Value& one) { found = found || storage_limit(one) > 0; });
  return found;
}

DiskUsage disk_usage(const json::Value& pod, const std::string& pod_directory) {
  DiskUsage usage;
  for (const auto& volume : json::array_at(pod, "spec", "volumes")) {
    const auto name = text(at(volume, "name"));
    if (on_disk(volume)) usage.volumes[name] = disk_bytes(pod_directory + "/volumes/" + name);
  }
  each_container(pod, [&](const json::Value& one) {
    const auto name = text(at(one, "name"));
    usage.containers[name] =
        disk_bytes(root_folder(pod_directory, name)) + log_bytes(pod_directory, name);
  });
  return usage;
}

std::string disk_excess(const json::Value& pod, const DiskUsage& usage) {
  std::int64_t used = 0;
  for (const auto& volume : json::array_at(pod, "spec", "volumes")) {
    const auto name = text(at(volume, "name"));
    const auto found = usage.volumes.find(name);
    if (found == usage.volumes.end()) continue;
    used += found->second;
    const auto& limit = at(volume, "emptyDir", "sizeLimit");
    if (bytes_of(limit) > 0 && found->second > bytes_of(limit))
      return fmt::format("Usage of EmptyDir volume \"{}\" exceeds the limit \"{}\". ",
                         name,
                         json::as_string(limit));
  }
  for (const auto& [name, bytes] : usage.containers) used += bytes;
  const auto limits = kube::pod_limits(pod);
  const auto total = limits.find(kStorage);
  if (total != limits.end() && total->second > 0 && used > total->second)
    return fmt::format(
        "Pod ephemeral local storage usage exceeds the total limit of containers {}. ",
        Quantity::from_units(total->second, QuantityFormat::kBinarySi).text());
  std::string out;
  each_container(pod, [&](const json::Value& one) {
    const auto name = text(at(one, "name"));
    const auto found = usage.containers.find(name);
    const auto& limit = at(one, "resources", "limits", kStorage);
    if (out.empty() && storage_limit(one) > 0 && found != usage.containers.end() &&
        found->second > storage_limit(one))
      out = fmt::format("Container {} exceeded its local ephemeral storage limit \"{}\". ",
                        name,
                        json::as_string(limit));
  });
  return out;
}

Task<void> DiskWatch::run() {
  running_ = true;
  Duration pause = kPause;
  while (!stopping_) {
    co_await wake_->wait(pause);
    if (stopping_) break;
    const auto begun = context_.loop.monotonic();
    co_await look();
    pause = std::max<Duration>(kPause, kPausePerWork * (context_.loop.monotonic() - begun));
  }
  running_ = false;
  wake_->notify();
}

Task<void> DiskWatch::look() {
  for (const auto& worker : workers_()) {
    if (stopping_) co_return;
    const auto pod = worker->pod();
    if (worker->ended() || !has_disk_limits(*pod)) continue;
    DiskUsage usage;
    const auto directory = worker->places().disk;
    const auto work = [&usage, pod, directory] { usage = disk_usage(*pod, directory); };
    co_await context_.loop.run_on_worker(work);
    const auto excess = disk_excess(*pod, usage);
    if (!excess.empty() && !stopping_) worker->evict(excess);
  }
}

Task<void> DiskWatch::stop() {
  stopping_ = true;
  wake_->notify();
  while (running_) co_await wake_->wait(Duration::zero());
}

}  // namespace muster::agent
