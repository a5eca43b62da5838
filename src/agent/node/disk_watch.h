/// What pods write to this machine's disk, and the end of those that write more than they may.
///
/// Nothing stops a write to an emptyDir or to a container's own files at its limit, as nothing does
/// under a kubelet: somebody looks from time to time, and a pod over its limit is evicted. A look
/// walks the files of those pods that have a limit, one pod after the other on a worker, and the
/// pause after it is many times as long as it took, so that looking never costs more than a small
/// part of one processor however much there is to see.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/context.h"
#include "agent/pod/pod_worker.h"

namespace muster::agent {

/// Bytes on disk.
struct DiskUsage {
  std::map<std::string, std::int64_t> volumes;     // emptyDir volumes that are not memory
  std::map<std::string, std::int64_t> containers;  // logs and what they changed in their roots
};

/// Whether a look at the pod's files can have a consequence.
bool has_disk_limits(const json::Value& pod);
/// Why the pod must go, in a kubelet's words; empty: it may stay.
std::string disk_excess(const json::Value& pod, const DiskUsage& usage);
/// Blocking; for a worker.
DiskUsage disk_usage(const json::Value& pod, const std::string& pod_directory);
/// What is below `directory`, without following links or leaving its file system.
std::int64_t disk_bytes(const std::string& directory);

class DiskWatch {
 public:
  using Workers = std::function<std::vector<std::shared_ptr<PodWorker>>()>;
  DiskWatch(Context& context, Workers workers)
      : context_(context), workers_(std::move(workers)), wake_(context.loop.make_signal()) {}

  void start() { context_.loop.spawn(run()); }
  /// Returns once nothing of it runs.
  Task<void> stop();

 private:
  Task<void> run();
  Task<void> look();

  Context& context_;
  Workers workers_;
  std::unique_ptr<Signal> wake_;
  bool running_ = false, stopping_ = false;
};

}  // namespace muster::agent
