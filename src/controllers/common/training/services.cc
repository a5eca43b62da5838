/// One headless service for each pod of a training job.
#include <algorithm>

#include "base/strings.h"
#include "controllers/common/training.h"

namespace muster::controllers {

void TrainingKind::reconcile_services(Pass& pass, const ReplicaSpec& replica) const {
  const auto type = to_lower(replica.type);
  std::map<int, Objects> by_index;
  for (const auto* service : pass.view.controlled_by(kinds::kService, uid_of(pass.job))) {
    if (label_of(*service, kube::names::kubeflow::kReplicaType) != type) continue;
    if (const int index = index_label(*service, kube::names::kubeflow::kReplicaIndex); index >= 0)
      by_index[index].push_back(service);
  }
  for (const auto& [index, services] : by_index) {
    if (index < replica.replicas || is_deleting(*services[0])) continue;
    auto action = remove(kinds::kService, *services[0]);
    action.events.push_back(
        {false, "SuccessfulDeleteService", "Deleted service: " + name_of(*services[0])});
    pass.plan.actions.push_back(std::move(action));
  }
  json::Array ports;
  const auto& spec = json::at(*replica.pod_template, "spec");
  const int container = find_container(spec, traits_.container);
  const auto& containers = json::array_at(spec, "containers");
  for (const auto& port :
       json::array_at(containers[static_cast<std::size_t>(std::max(0, container))], "ports")) {
    ports.push_back(
        json::Object{{"name", json::at(port, "name")}, {"port", json::at(port, "containerPort")}});
  }
  for (int index = 0; index < replica.replicas; ++index) {
    if (by_index.contains(index)) continue;
    auto service = make_child(pass.job, "v1", "Service", child_name(pass, replica.type, index));
    const auto selector = base_labels(pass, replica.type, index);
    // One that carries the labels serves, whoever made it.
    if (const auto* found = pass.view.find(kinds::kService, name_of(service));
        found != nullptr && contains(json::at(*found, "metadata", "labels"), selector))
      continue;
    json::make_object(service, {"metadata"})["labels"] = selector;
    service.as_object()["spec"] =
        json::Object{{"clusterIP", "None"}, {"selector", selector}, {"ports", ports}};
    auto action = create(kinds::kService, std::move(service));
    action.events.push_back({false, "SuccessfulCreateService", "Created service: " + action.name});
    action.failed_reason = "FailedCreateService";
    action.failed_prefix = "Error creating: ";
    pass.plan.actions.push_back(std::move(action));
  }
}

}  // namespace muster::controllers
