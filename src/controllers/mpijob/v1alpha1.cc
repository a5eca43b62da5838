#include "controllers/mpijob/v1alpha1.h"

#include <fmt/core.h>

#include "base/quantity.h"
#include "controllers/common/training.h"
#include "controllers/mpijob/parts.h"
#include "kube/names.h"

namespace muster::controllers::mpijob::v1alpha1 {
namespace {

/// How many workers, and how many processing units each.
struct Allocation {
  std::int64_t workers = 0;
  std::int64_t units = 0;
  std::string error;
};

std::string unit_resource(const json::Value& spec) {
  return json::string_at(spec, "processingResourceType") == "cpu" ? "cpu" : "nvidia.com/gpu";
}

std::int64_t limit_of(const json::Value& spec, const std::string& resource) {
  const auto& containers = json::array_at(spec, "template", "spec", "containers");
  if (containers.empty()) return 0;
  const auto& limit = json::at(containers[0], "resources", "limits", std::string_view(resource));
  if (limit.is_null()) return 0;
  const auto quantity =
      parse_quantity(limit.is_string() ? std::string(json::as_string(limit)) : json::dump(limit));
  return quantity ? quantity->units() : 0;
}

Allocation allocate(const json::Value& spec, const Settings& settings) {
  const bool gpus = json::at(spec, "gpus").is_number();
  if (gpus && json::at(spec, "processingUnits").is_number())
    return {0, 0, "gpus and processingUnits cannot both be given"};
  const auto& total = gpus ? json::at(spec, "gpus") : json::at(spec, "processingUnits");
  if (total.is_number()) {
    const auto& per_node_value =
        gpus ? json::at(spec, "gpusPerNode") : json::at(spec, "processingUnitsPerNode");
    const auto usual = gpus ? settings.gpus_per_node : settings.processing_units_per_node;
    const auto units = json::as_int(total), per_node = json::as_int(per_node_value, usual);
    if (per_node <= 0) return {0, 0, "processing units per node must be positive"};
    if (units < per_node) return {1, units, ""};
    if (units % per_node == 0) return {units / per_node, per_node, ""};
    return {
        0,
        0,
        fmt::format(
            "specified #Processing units({}) is not a multiple of #Processing units per node({})",
            units,
            per_node)};
  }
  const auto units = limit_of(spec, unit_resource(spec));
  return {json::int_at(spec, "replicas"), units, ""};
}

json::Object role_labels(const json::Value& job, std::string_view role) {
  return json::Object{{"group_name", kube::groups::kKubeflow},
                      {kube::names::kubeflow::kMpiJobName, name_of(job)},
                      {kube::names::kubeflow::kMpiRoleType, role}};
}

json::Value pod_template(const json::Value& job, std::string_view role) {
  json::Value result = json::Object{{"metadata", json::Object{}},
                                    {"spec", json::at(job, "spec", "template", "spec")}};
  for (const std::string_view field : {"labels", "annotations"}) {
    const auto& value = json::at(job, "spec", "template", "metadata", field);
    if (!json::is_empty(value)) json::make_object(result, {"metadata"})[field] = value;
  }
  for (const auto& [key, value] : role_labels(job, role))
    json::make_object(result, {"metadata", "labels"})[key] = value;
  keep_submission_time(job, result);
  return result;
}

json::Value worker_set(const json::Value& job,
                       const Allocation& allocation,
                       std::int64_t replicas) {
  auto body = pod_template(job, "worker");
  auto& container = array_at(body, {"spec", "containers"})[0];
  container.as_object()["command"] = json::Array{"sleep"};
  container.as_object()["args"] = json::Array{"365d"};
  // A worker says how many units it has even if they are none; an amount that the template gives
  // stays as it is written.
  auto& limits = json::make_object(container, {"resources", "limits"});
  const auto resource = unit_resource(json::at(job, "spec"));
  const bool by_total = json::at(job, "spec", "gpus").is_number() ||
                        json::at(job, "spec", "processingUnits").is_number();
  if (by_total || !limits.contains(resource)) limits[resource] = std::to_string(allocation.units);
  array_of(container, "volumeMounts").push_back(mount("mpi-job-config", "/etc/mpi"));
  array_at(body, {"spec", "volumes"}).push_back(config_volume(job, {{"kubexec.sh", 0555}}));
  json::make_object(body, {"spec"})["restartPolicy"] = "Always";
  auto set = make_child(job, "apps/v1", "StatefulSet", name_of(job) + "-worker");
  json::make_object(set, {"metadata"})["labels"] = role_labels(job, "worker");
  set.as_object()["spec"] =
      json::Object{{"podManagementPolicy", "Parallel"},
                   {"replicas", replicas},
                   {"serviceName", name_of(job) + "-worker"},
                   {"selector", json::Object{{"matchLabels", role_labels(job, "worker")}}},
                   {"template", std::move(body)}};
  return set;
}

/// Only nodes with the master role, and their taint tolerated: instead of what the template says,
/// which is for workers.
void pin_to_master(json::Value& body) {
  auto& pod = json::make_object(body, {"spec"});
  pod["tolerations"] = json::Array{
      json::Object{{"key", kube::names::kubernetes::kMasterRole}, {"effect", "NoSchedule"}}};
  pod["affinity"] = json::Object{};
  const json::Object term{{"matchExpressions",
                           json::Array{json::Object{{"key", kube::names::kubernetes::kMasterRole},
                                                    {"operator", "Exists"}}}}};
  array_at(body,
           {"spec",
            "affinity",
            "nodeAffinity",
            "requiredDuringSchedulingIgnoredDuringExecution",
            "nodeSelectorTerms"})
      .push_back(term);
}

json::Value launcher_job(const json::Value& job, const Settings& settings) {
  const auto name = name_of(job) + "-launcher";
  const auto& spec = json::at(job, "spec");
  auto body = pod_template(job, "launcher");
  auto& pod = json::make_object(body, {"spec"});
  pod["serviceAccountName"] = name;
  if (json::string_at(body, "spec", "restartPolicy") != "Never")
    json::make_object(body, {"spec"})["restartPolicy"] = "OnFailure";
  array_at(body, {"spec", "initContainers"}).push_back(kubectl_delivery(job, settings, false));
  auto& container = array_at(body, {"spec", "containers"})[0];
  auto& variables = array_of(container, "env");
  variables.push_back(env("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh"));
  variables.push_back(env("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"));
  // The launcher starts processes elsewhere and holds none of the workers' resources, unless the
  // fork's field says so.
  const auto& own = json::at(spec, "launcherResources");
  container.as_object()["resources"] = own.is_object() ? own : json::Value(json::Object{});
  auto& mounts = array_of(container, "volumeMounts");
  if (const auto& keep = json::at(spec, "mountsOnLauncher"); keep.is_bool() && !keep.get_bool()) {
    mounts.clear();
  }
  mounts.push_back(mount("mpi-job-kubectl", "/opt/kube"));
  mounts.push_back(mount("mpi-job-config", "/etc/mpi"));
  auto& volumes = array_at(body, {"spec", "volumes"});
  volumes.push_back(json::Object{{"name", "mpi-job-kubectl"}, {"emptyDir", json::Object{}}});
  volumes.push_back(config_volume(job, {{"kubexec.sh", 0555}, {"hostfile", 0444}}));
  if (json::bool_at(spec, "launcherOnMaster")) pin_to_master(body);
  auto object = make_child(job, "batch/v1", "Job", name);
  json::make_object(object, {"metadata"})["labels"] = role_labels(job, "launcher");
  json::Object job_spec{{"backoffLimit", json::as_int(json::at(spec, "backoffLimit"), 6)}};
  if (json::at(spec, "activeDeadlineSeconds").is_number())
    job_spec["activeDeadlineSeconds"] = json::at(spec, "activeDeadlineSeconds");
  job_spec["template"] = std::move(body);
  object.as_object()["spec"] = std::move(job_spec);
  return object;
}

json::Value config_map(const json::Value& job, const Allocation& allocation, std::int64_t slots) {
  std::string hostfile;
  for (int i = 0; i < allocation.workers; ++i)
    hostfile += fmt::format("{} slots={}\n", worker_name(job, i), slots);
  auto map = labelled_child(job, "v1", "ConfigMap", name_of(job) + "-config");
  map.as_object()["data"] =
      json::Object{{"hostfile", hostfile}, {"kubexec.sh", kubexec_script("") + "\n"}};
  return map;
}

bool ensure_access(Plan& plan,
                   const json::Value& job,
                   const View& view,
                   const Allocation& allocation,
                   const Settings& settings) {
  json::Array names;
  for (int i = 0; i < allocation.workers; ++i) names.push_back(json::Value(worker_name(job, i)));
  const auto account = name_of(job) + "-launcher";
  if (const auto* found = view.find(kinds::kServiceAccount, account);
      found != nullptr && !is_controlled_by(*found, job)) {
    refuse_foreign(plan, account, "ServiceAccount", "MPIJob");
    return false;
  }
  ensure_account(plan, job, view, account);
  json::Object get{{"verbs", json::Array{"get"}},
                   {"apiGroups", json::Array{""}},
                   {"resources", json::Array{"pods"}}};
  json::Object exec{{"verbs", exec_verbs(settings)},
                    {"apiGroups", json::Array{""}},
                    {"resources", json::Array{"pods/exec"}}};
  if (!names.empty()) get["resourceNames"] = exec["resourceNames"] = names;
  return ensure_role(plan, job, view, {account, json::Array{get, exec}});
}

bool job_ended(const json::Value& launcher) {
  for (const auto& condition : json::array_at(launcher, "status", "conditions")) {
    const auto type = json::string_at(condition, "type");
    if ((type == "Complete" || type == "Failed") && json::string_at(condition, "status") == "True")
      return true;
  }
  return false;
}

void update_status(json::Value& status,
                   const json::Value* launcher,
                   const json::Value* workers,
                   Time now) {
  auto& object = status.as_object();
  if (launcher != nullptr) {
    const auto& from = json::at(*launcher, "status");
    if (json::int_at(from, "active") > 0) {
      object["launcherStatus"] = "Active";
      if (json::at(status, "startTime").is_null()) object["startTime"] = time_value(now);
    } else if (json::int_at(from, "succeeded") > 0) {
      object["launcherStatus"] = "Succeeded";
      if (json::at(status, "completionTime").is_null()) object["completionTime"] = time_value(now);
    } else if (json::int_at(from, "failed") > 0) {
      object["launcherStatus"] = "Failed";
    }
  }
  const auto ready = workers == nullptr ? 0 : json::int_at(*workers, "status", "readyReplicas");
  if (ready > 0) {
    object["workerReplicas"] = ready;
  } else {
    object.erase("workerReplicas");
  }
}

/// The StatefulSet brings a preempted worker back by itself; the mpirun that lost it is stopped
/// here, and starts again when all workers are ready.
bool requeue(Plan& plan,
             const json::Value& job,
             const View& view,
             const json::Value* launcher,
             const json::Value* set) {
  if (!wants_requeue(job) || launcher == nullptr || set == nullptr ||
      json::int_at(*launcher, "status", "succeeded") > 0)
    return false;
  bool lost = is_deleting(*launcher);
  Objects pods = view.controlled_by(kinds::kPod, uid_of(*set));
  for (const auto* pod : pods) lost = lost || was_preempted(*pod);
  for (const auto* pod : view.controlled_by(kinds::kPod, uid_of(*launcher))) {
    lost = lost || was_preempted(*pod);
    pods.push_back(pod);
  }
  if (!lost) return false;
  for (const auto* pod : pods) {
    if (!is_deleting(*pod)) plan.actions.push_back(remove(kinds::kPod, *pod));
  }
  if (!is_deleting(*launcher)) {
    plan.actions.push_back(remove(kinds::kJob, *launcher));
    plan.events.push_back(
        {true,
         "MPIJobRequeued",
         fmt::format("MPIJob {} was preempted and goes back to its queue as a whole.",
                     name_of(job))});
  }
  return true;
}

/// Muster's own, since v1alpha1 has no field for it: "true" takes the job off the cluster and keeps
/// it.

/// The launcher goes and the workers with it; without the annotation both are made again.
bool suspend(Plan& plan,
             const json::Value& job,
             const json::Value* launcher,
             const json::Value* set) {
  if (annotation_of(job, kube::names::kSuspend) != "true" ||
      (launcher != nullptr && job_ended(*launcher)))
    return false;
  if (launcher != nullptr && !is_deleting(*launcher)) {
    plan.actions.push_back(remove(kinds::kJob, *launcher));
    plan.events.push_back(
        {false, "MPIJobSuspended", fmt::format("MPIJob {} is suspended.", name_of(job))});
  }
  if (set != nullptr && json::as_int(json::at(*set, "spec", "replicas"), 1) != 0) {
    plan.actions.push_back(patch(
        kinds::kStatefulSet, name_of(*set), json::Object{{"spec", json::Object{{"replicas", 0}}}}));
  }
  return true;
}

}  // namespace

Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now) {
  Plan plan;
  if (is_deleting(job)) return plan;
  const auto& spec = json::at(job, "spec");
  if (json::array_at(spec, "template", "spec", "containers").empty()) {
    plan.events.push_back(
        {true, "MPIJobFailedValidation", "spec.template.spec.containers must not be empty"});
    return plan;
  }
  const auto allocation = allocate(spec, settings);
  if (!allocation.error.empty()) {
    plan.events.push_back({true, "MPIJobFailedValidation", allocation.error});
    return plan;
  }
  json::Value status =
      json::at(job, "status").is_object() ? json::at(job, "status") : json::Value(json::Object{});
  const auto launcher_name = name_of(job) + "-launcher", set_name = name_of(job) + "-worker";
  const auto* launcher = view.find(kinds::kJob, launcher_name);
  const auto* set = view.find(kinds::kStatefulSet, set_name);
  if (launcher != nullptr && !is_controlled_by(*launcher, job)) {
    refuse_foreign(plan, launcher_name, "Job", "MPIJob");
    return plan;
  }
  const bool foreign_set = set != nullptr && !is_controlled_by(*set, job);
  if (foreign_set) set = nullptr;
  if (suspend(plan, job, launcher, set) || requeue(plan, job, view, launcher, set)) {
    status.as_object().erase("launcherStatus");
    update_status(status, nullptr, set, now);
    plan.status = std::move(status);
    return plan;
  }
  const bool done = launcher != nullptr && job_ended(*launcher);
  const auto& slots_value = json::at(spec, "slotsPerWorker");
  const auto slots = slots_value.is_number() ? json::as_int(slots_value)
                                             : std::max<std::int64_t>(1, allocation.units);
  if (!done) {
    if (!ensure(plan, job, view, kinds::kConfigMap, config_map(job, allocation, slots), {"data"}) ||
        !ensure_access(plan, job, view, allocation, settings))
      return plan;
  }
  if (foreign_set) {
    refuse_foreign(plan, set_name, "StatefulSet", "MPIJob");
    return plan;
  }
  const auto wanted = done ? 0 : allocation.workers;
  if (set == nullptr && wanted > 0) {
    plan.actions.push_back(create(kinds::kStatefulSet, worker_set(job, allocation, wanted)));
  } else if (set != nullptr && json::as_int(json::at(*set, "spec", "replicas"), 1) != wanted) {
    plan.actions.push_back(patch(
        kinds::kStatefulSet, set_name, json::Object{{"spec", json::Object{{"replicas", wanted}}}}));
  }
  const auto ready = set == nullptr ? 0 : json::int_at(*set, "status", "readyReplicas");
  if (launcher == nullptr && !done &&
      (allocation.workers == 0 || (set != nullptr && ready == allocation.workers))) {
    plan.actions.push_back(create(kinds::kJob, launcher_job(job, settings)));
  }
  update_status(status, launcher, set, now);
  const bool moved = !plan.actions.empty() || !json::equal(status, json::at(job, "status"));
  if (moved) plan.events.push_back({false, "Synced", "MPIJob synced successfully"});
  plan.status = std::move(status);
  return plan;
}

}  // namespace muster::controllers::mpijob::v1alpha1
