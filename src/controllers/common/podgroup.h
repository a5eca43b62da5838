/// PodGroups of the gang schedulers that Kubeflow's operators know: volcano's and
/// scheduler-plugins'.
#pragma once

#include <string>
#include <vector>

#include "controllers/common/plan.h"

namespace muster::controllers {

struct ReplicaSpec {
  std::string type;  // "Master", "Worker" …
  int replicas = 0;
  std::string restart_policy;
  const json::Value* pod_template = nullptr;
};

std::string_view podgroup_kind(Gang gang);

/// training-operator's sum: types by priority (then in the order given) until `min_member` pods are
/// taken; a container counts with its requests, or with its limits if it has no requests at all.
json::Value min_resources(const std::vector<ReplicaSpec>& replicas,
                          int min_member,
                          const View& view);
/// mpi-operator's sum: requests completed by limits, resource by resource; of a gang smaller than
/// the job the type of lower priority (workers on a tie) counts with min_member - 1 pods.
json::Value min_resources_merged(const std::vector<ReplicaSpec>& replicas,
                                 int min_member,
                                 const View& view);

struct PodGroupSpec {
  int min_member = 0;
  std::string queue;           // volcano
  std::string priority_class;  // volcano
  json::Value min_resources;   // null: none
  json::Value timeout_s;       // scheduler-plugins; null: none
};

/// Makes the job's PodGroup, or patches its spec when it differs. `annotations` go onto a new one.
void sync_podgroup(Plan& plan,
                   const json::Value& job,
                   const PodGroupSpec& spec,
                   const json::Value& annotations,
                   const View& view,
                   Gang gang);
/// Volcano creates pods only when the group has left Pending.
bool pods_must_wait(const json::Value& job, const View& view, Gang gang);

}  // namespace muster::controllers
