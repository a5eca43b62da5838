#include "cli/view/members.h"

#include "kube/framework.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

using json::Pick;
using json::Picks;

Pick member(std::string_view name) { return {std::string(name)}; }

/// Those that say which job a pod belongs to and which part it plays.
const Pick& pod_labels() {
  static const Pick kLabels{"labels",
                            {{"app"},
                             {"release"},
                             {"role"},
                             member(kube::names::kubeflow::kJobName),
                             member(kube::names::kubeflow::kOperatorName),
                             member(kube::names::kubeflow::kJobRole),
                             member(kube::names::kubeflow::kReplicaType),
                             {"pytorch-replica-type"},
                             member(kube::names::kubeflow::kMpiJobName),
                             member(kube::names::kubeflow::kMpiRoleType),
                             member(kube::names::framework::kFrameworkName),
                             member(kube::names::t9k::kMpiJobReplica)}};
  return kLabels;
}

/// Without the replica type, which says no more than the role, and what `submit` writes on the job
/// as well.
const Pick& row_labels() {
  static const Pick kLabels = [] {
    Pick labels = pod_labels();
    std::erase_if(labels.children, [](const Pick& label) {
      return label.name == kube::names::kubeflow::kReplicaType;
    });
    return labels;
  }();
  return kLabels;
}

const Pick& pod_annotations() {
  static const Pick kAnnotations{"annotations",
                                 {{"requestGPUsOfJobOwner"},
                                  member(kube::names::kGpuIndices),
                                  {"GPU_TOPOLOGY_ALLOCATION"},
                                  {"ALIYUN_COM_GPU_MEM_IDX"},
                                  {"scheduler.framework.gpushare.allocation"},
                                  {"scheduler.framework.gpushare.core.allocation"}}};
  return kAnnotations;
}

const Pick& pod_limits() {
  static const Pick kLimits{"resources",
                            {{"limits",
                              {{"nvidia.com/gpu"},
                               member(kube::names::kubernetes::kOldGpu),
                               {"aliyun.com/gpu"},
                               {"aliyun.com/gpu-mem"},
                               {"aliyun.com/gpu-core.percentage"}}}}};
  return kLimits;
}

/// What kubectl's word for a pod's state is made of.
const Picks& state_members() {
  static const Picks kState{{"phase"},
                            {"reason"},
                            {"containerStatuses", {{"ready"}, {"state"}, {"lastState"}}},
                            {"initContainerStatuses", {{"state"}}}};
  return kState;
}

}  // namespace

const Picks& job_members(Detail detail, std::string_view type) {
  static const Picks kPriority{{"spec", {{"priorityClassName"}}}};
  static const Picks kReplicas{{"*", {{"template", kPriority}}}};
  static const Pick kMetadata{"metadata",
                              {{"name"},
                               {"namespace"},
                               {"uid"},
                               {"creationTimestamp"},
                               {"labels", {{"app"}, {"release"}, {"modelName"}, {"modelVersion"}}},
                               {"annotations",
                                {{"requestGPUsOfJobOwner"},
                                 member(kube::names::pai::kTotalGpuNumber),
                                 member(kube::names::pai::kJobName),
                                 member(kube::names::pai::kJobPriority),
                                 member(kube::names::pai::kVirtualCluster),
                                 member(kube::names::volcano::kQueueName),
                                 member(kube::names::kSuspend)}}}};
  static const Picks kSpec{
      {"runPolicy", {{"suspend"}, {"schedulingPolicy", {{"queue"}, {"priorityClass"}}}}},
      {"suspend"},
      {"queue"},
      {"priorityClassName"},
      {"scheduler"},
      {"runMode"},
      {"template", kPriority}};
  static const Picks kStatus{{"launcherStatus"},
                             {"phase"},
                             {"state", {{"phase"}, {"lastTransitionTime"}}},
                             {"startTime"},
                             {"completionTime"}};
  static const Picks kRow = [] {
    Picks status = kStatus;
    status.push_back({"conditions", {{"type"}, {"status"}}});
    return Picks{kMetadata, {"spec", kSpec}, {"status", status}};
  }();
  static const Picks kWhole = [] {
    Picks spec = kSpec, status = kStatus;
    for (const char* role : {"launcher", "worker"})
      spec.push_back({role, {{"template", kPriority}}});
    for (const char* kind : {"pytorch", "tf", "mpi", "xgb", "paddle", "jax"}) {
      spec.push_back({std::string(kind) + "ReplicaSpecs", kReplicas});
    }
    status.push_back({"conditions"});
    return Picks{{"apiVersion"}, {"kind"}, kMetadata, {"spec", spec}, {"status", status}};
  }();
  // Frameworks say all of it in their status, of which the tasks are most.
  static const Picks kFramework{
      {"apiVersion"},
      {"kind"},
      kMetadata,
      {"spec", {{"executionType"}}},
      {"status",
       {{"state"},
        {"startTime"},
        {"completionTime"},
        {"retryPolicyStatus"},
        {"attemptStatus", {{"completionStatus", {{"code"}, {"phrase"}}}}}}}};
  if (type == "paijob") return kFramework;
  return detail == Detail::kRow && type != "volcanojob" ? kRow : kWhole;
}

const Picks& pod_members(Detail detail) {
  static const Picks kRow{{"metadata",
                           {{"name"},
                            {"namespace"},
                            {"creationTimestamp"},
                            {"deletionTimestamp"},
                            row_labels(),
                            {"ownerReferences", {{"uid"}}}}},
                          {"spec", {{"containers", {pod_limits()}}}},
                          {"status", {{"phase"}, {"hostIP"}, {"startTime"}}}};
  static const Picks kWhole = [] {
    Picks status = state_members();
    for (const char* name : {"hostIP", "podIP", "startTime", "conditions"})
      status.push_back({name});
    return Picks{
        {"metadata",
         {{"name"},
          {"namespace"},
          {"uid"},
          {"creationTimestamp"},
          {"deletionTimestamp"},
          pod_labels(),
          pod_annotations(),
          {"ownerReferences", {{"uid"}}}}},
        {"spec",
         {{"nodeName"}, {"containers", {{"name"}, pod_limits()}}, {"initContainers", {{"name"}}}}},
        {"status", status}};
  }();
  return detail == Detail::kRow ? kRow : kWhole;
}

const Picks& node_pod_members() {
  static const Picks kMembers{
      {"metadata", {{"name"}, {"namespace"}, {"deletionTimestamp"}, pod_annotations()}},
      {"spec", {{"nodeName"}, {"containers", {pod_limits()}}, {"initContainers", {{"name"}}}}},
      {"status", state_members()}};
  return kMembers;
}

const Picks& launcher_job_members() {
  static const Picks kMembers{
      {"metadata",
       {{"name"}, {"namespace"}, {"labels", {member(kube::names::kubeflow::kMpiJobName)}}}},
      {"status", {{"completionTime"}}}};
  return kMembers;
}

const Picks& service_members() {
  static const Picks kMembers{
      {"metadata", {{"name"}, {"namespace"}, {"labels", {{"app"}, {"release"}}}}},
      {"spec", {{"clusterIP"}, {"ports"}}}};
  return kMembers;
}

const Picks& topology_members() {
  static const Picks kMembers{{"metadata", {{"name"}, {"labels"}}}, {"data"}};
  return kMembers;
}

const Picks& node_members() {
  static const Picks kMembers{
      {"metadata", {{"name"}, {"labels"}}},
      {"spec", {{"unschedulable"}}},
      {"status",
       {{"capacity"}, {"allocatable"}, {"addresses"}, {"conditions", {{"type"}, {"status"}}}}}};
  return kMembers;
}

}  // namespace muster::cli
