/// The pod templates of a submission and what they mount.
#pragma once

#include "cli/submit/submit_values.h"

namespace muster::cli {

struct TemplateOptions {
  std::string type;        // mpijob
  std::string container;   // mpi
  std::string created_by;  // MPIJob
  std::string chart;       // mpijob-0.28.0
  std::string user;
  std::string restart_policy;  // empty: left to the job's controller
  std::int64_t gang_members = 1;
  std::int64_t owner_gpus = 0;  // what the whole job asks for
  std::string image, cpu, memory, cpu_limit, memory_limit;
  int gpus = 0;
  Pairs selectors;
  Pairs extra_env, extra_labels;
  bool shared_memory = true;
};

json::Object labels_of(const SubmitValues& values, const TemplateOptions& options);
json::Object annotations_of(const SubmitValues& values, const TemplateOptions& options);
json::Value pod_template(const SubmitValues& values, const TemplateOptions& options);

/// The PodGroup of --gang. Arena only labels the pods, for a scheduler that makes its own groups;
/// ours reads PodGroups. The controllers of the other types make it themselves from the run policy.
bool needs_gang_object(const SubmitValues& values, const TemplateOptions& options);
std::string gang_name(const SubmitValues& values, const TemplateOptions& options);
json::Value gang_object(const SubmitValues& values,
                        const TemplateOptions& options,
                        const std::string& ns);
/// ConfigMaps that carry --config-file's files, one per directory in the container.
std::vector<json::Value> config_file_maps(const SubmitValues& values,
                                          const TemplateOptions& options,
                                          const std::string& ns);
/// Service and Deployment of the tensorboard.
std::vector<json::Value> tensorboard_objects(const SubmitValues& values,
                                             const TemplateOptions& options,
                                             const std::string& ns);

}  // namespace muster::cli
