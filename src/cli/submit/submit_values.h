/// The flags of a submission, checked and in the form that the objects need.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/submit/submit.h"

namespace muster::cli {

using Pairs = std::vector<std::pair<std::string, std::string>>;

struct ConfigFile {
  std::string directory;  // in the container
  std::string file;       // name in that directory
  std::string content;
};

struct Mount {
  std::string volume, source, path;  // source: the claim's name or the host's path
};

struct SubmitValues {
  std::string name, image, command, shell;
  int gpus = 0, workers = 1, retry = 0;
  Pairs devices, env, annotations, labels, selectors;
  std::vector<Mount> claims, host_paths;
  json::Array tolerations;
  std::vector<ConfigFile> files;
  std::vector<std::string> pull_secrets;
  std::string working_dir, pull_policy, priority, scheduler, queue, on_preempt;
  bool queued = false, gang = false, rdma = false, host_network = false, host_ipc = false,
       host_pid = false;
  bool gpu_topology = false, mounts_on_launcher = false;
  std::string sync_mode, sync_source, sync_image;
  bool tensorboard = false;
  std::string tensorboard_image, logdir;
  std::string cpu, memory, share_memory, clean_policy, nproc_per_node;
  std::optional<std::int64_t> running_timeout_s, starting_timeout_s, ttl_s;
  std::string model_name, model_source;
  bool eni = false;
};

/// Checks in arena's order; the first thing wrong is the error.
Result<SubmitValues> read_submit_values(const SubmitContext& context, const Values& values);

/// "k=v" entries; one without '=' is an error that names the flag.
Result<Pairs> read_pairs(const Values& values, std::string_view flag);
Result<void> check_quantity(const Values& values, std::string_view flag);

}  // namespace muster::cli
