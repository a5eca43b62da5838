/// The containers of a pod: configuration, start, hooks, end, back-off and stop of each.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "agent/node/gpu_files.h"
#include "agent/pod/pod_life.h"
#include "agent/pod/pod_sandbox.h"
#include "agent/pod/pod_status_writer.h"

namespace muster::agent {

class PodContainers {
 public:
  PodContainers(PodLife& life, PodSandbox& sandbox, PodStatusWriter& status)
      : life_(life), sandbox_(sandbox), status_(status) {}

  [[nodiscard]] PodLife& life() { return life_; }

  Task<void> start(ContainerRecord& record);
  /// It has ended: when may the next attempt start?
  void ended(ContainerRecord& record);
  /// Asks every running container to end; main ones first, then sidecars. True when none runs.
  bool stop_all(Duration grace);
  void stop_soon(const std::string& name, Duration grace, std::string message);
  [[nodiscard]] bool stopping(const std::string& name) const { return stopping_.contains(name); }

 private:
  Task<Result<ContainerConfig>> make_config(const ContainerRecord& record, const json::Value& spec);
  [[nodiscard]] bool has_real_gpus() const;
  Task<Result<GpuFiles>> files_of(std::vector<int> indices, bool of_image);
  Task<bool> run_hook(ContainerRecord& record, std::string hook_name, Duration limit);
  Task<void> stop(std::shared_ptr<void> keep,
                  std::string name,
                  Duration grace,
                  std::string message);

  PodLife& life_;
  PodSandbox& sandbox_;
  PodStatusWriter& status_;
  std::map<std::string, Duration> stopping_;  // container name -> grace it was given
};

}  // namespace muster::agent
