#include "cli/members.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::cli {
namespace {

using json::Pick;
using json::Picks;

/// Those that say which job a pod belongs to and which part it plays.
const Pick& pod_labels() {
  static const Pick kLabels{"labels",
                            {{"app"},
                             {"release"},
                             {"role"},
                             {"training.kubeflow.org/job-name"},
                             {"training.kubeflow.org/operator-name"},
                             {"training.kubeflow.org/job-role"},
                             {"training.kubeflow.org/replica-type"},
                             {"pytorch-replica-type"},
                             {"mpi_job_name"},
                             {"mpi_role_type"},
                             {"tensorstack.dev/mpijob-replica"}}};
  return kLabels;
}

const Pick& pod_annotations() {
  static const Pick kAnnotations{"annotations",
                                 {{"requestGPUsOfJobOwner"},
                                  {"muster.dev/gpu-indices"},
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
                               {"alpha.kubernetes.io/nvidia-gpu"},
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

const Picks& job_members(Detail detail) {
  static const Picks kPriority{{"spec", {{"priorityClassName"}}}};
  static const Picks kReplicas{{"*", {{"template", kPriority}}}};
  static const Pick kMetadata{
      "metadata",
      {{"name"},
       {"namespace"},
       {"uid"},
       {"creationTimestamp"},
       {"labels", {{"app"}, {"release"}, {"modelName"}, {"modelVersion"}}},
       {"annotations", {{"requestGPUsOfJobOwner"}, {"scheduling.volcano.sh/queue-name"}, {"muster.dev/suspend"}}}}};
  static const Picks kSpec{{"runPolicy", {{"suspend"}, {"schedulingPolicy", {{"queue"}, {"priorityClass"}}}}},
                           {"suspend"},
                           {"queue"},
                           {"priorityClassName"},
                           {"scheduler"},
                           {"runMode"},
                           {"template", kPriority}};
  static const Picks kStatus{{"launcherStatus"}, {"phase"}, {"state", {{"phase"}}}, {"startTime"}, {"completionTime"}};
  static const Picks kRow = [] {
    Picks status = kStatus;
    status.push_back({"conditions", {{"type"}, {"status"}}});
    return Picks{kMetadata, {"spec", kSpec}, {"status", status}};
  }();
  static const Picks kWhole = [] {
    Picks spec = kSpec, status = kStatus;
    for (const char* role : {"launcher", "worker"}) spec.push_back({role, {{"template", kPriority}}});
    for (const char* kind : {"pytorch", "tf", "mpi", "xgb", "paddle", "jax"}) {
      spec.push_back({std::string(kind) + "ReplicaSpecs", kReplicas});
    }
    status.push_back({"conditions"});
    return Picks{{"apiVersion"}, {"kind"}, kMetadata, {"spec", spec}, {"status", status}};
  }();
  return detail == Detail::kRow ? kRow : kWhole;
}

const Picks& pod_members(Detail detail) {
  static const Picks kRow{{"metadata",
                           {{"name"},
                            {"namespace"},
                            {"creationTimestamp"},
                            {"deletionTimestamp"},
                            pod_labels(),
                            {"annotations", {{"requestGPUsOfJobOwner"}}},
                            {"ownerReferences", {{"uid"}}}}},
                          {"spec", {{"containers", {pod_limits()}}}},
                          {"status", {{"phase"}, {"hostIP"}, {"startTime"}}}};
  static const Picks kWhole = [] {
    Picks status = state_members();
    for (const char* name : {"hostIP", "podIP", "startTime", "conditions"}) status.push_back({name});
    return Picks{{"metadata",
                  {{"name"},
                   {"namespace"},
                   {"uid"},
                   {"creationTimestamp"},
                   {"deletionTimestamp"},
                   pod_labels(),
                   pod_annotations(),
                   {"ownerReferences", {{"uid"}}}}},
                 {"spec", {{"nodeName"}, {"containers", {{"name"}, pod_limits()}}, {"initContainers", {{"name"}}}}},
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

const Picks& node_members() {
  static const Picks kMembers{
      {"metadata", {{"name"}, {"labels"}}},
      {"spec", {{"unschedulable"}}},
      {"status",
       {{"capacity"},
        {"allocatable"},
        {"addresses"},
        {"conditions", {{"type"}, {"status"}}}}}};
  return kMembers;
}

Task<Result<std::vector<json::Value>>> list_members(Session& session,
                                                    const client::Resource& resource,
                                                    client::ListOptions options,
                                                    const json::Picks& members) {
  std::string target = fmt::format("{}?fields={}", resource.path(options.ns), percent_encode(json::picks_text(members)));
  if (!options.label_selector.empty()) target += "&labelSelector=" + percent_encode(options.label_selector);
  if (!options.field_selector.empty()) target += "&fieldSelector=" + percent_encode(options.field_selector);
  net::Request request = session.request("GET", std::move(target));
  request.headers.set("Accept", "application/json");
  const auto answer = co_await session.cluster().http().request(std::move(request));
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) {
    const auto status = json::parse(answer->body);
    co_return fail(code_of(status ? json::as_string(json::at(*status, "reason")) : "", answer->status),
                   status ? json::text(json::at(*status, "message")) : fmt::format("the server answered {}", answer->status));
  }
  const bool picked = answer->headers.get("Preference-Applied") == "fields";
  auto parsed = picked ? json::parse(answer->body) : json::parse(json::pick_from_text(answer->body, {{"items", members}}));
  if (!parsed) co_return fail(parsed.error());
  std::vector<json::Value> items;
  if (json::Object* list = parsed->if_object()) {
    if (json::Value* found = list->if_contains("items"); found != nullptr && found->is_array()) {
      items.reserve(found->get_array().size());
      for (json::Value& item : found->get_array()) items.push_back(std::move(item));
    }
  }
  co_return items;
}

}  // namespace muster::cli
