#include "controllers/mpijob/v1.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/mpijob/parts.h"
#include "kube/names.h"

namespace muster::controllers::mpijob::v1 {
namespace {

std::string launcher_name(const json::Value& job) { return name_of(job) + "-launcher"; }

std::int64_t slots_of(const json::Value& job) {
  const auto& slots = json::at(job, "spec", "slotsPerWorker");
  return slots.is_number() ? json::as_int(slots) : 1;
}

json::Value config_map(const Pass& pass, const Objects& workers, int replicas, bool gpu_launcher) {
  const auto slots = slots_of(pass.job);
  std::string hostfile, hosts = "#!/bin/sh";
  if (gpu_launcher) {
    hostfile = fmt::format("{} slots={}\n", launcher_name(pass.job), slots);
    hosts += fmt::format("\necho {}:{}\n", launcher_name(pass.job), slots);
  }
  for (int i = 0; i < replicas; ++i)
    hostfile += fmt::format("{} slots={}\n", worker_name(pass.job, i), slots);
  for (const auto* worker : running(workers))
    hosts += fmt::format("\necho {}:{}", name_of(*worker), slots);
  auto map = labelled_child(pass.job, "v1", "ConfigMap", pass.name() + "-config");
  map.as_object()["data"] = json::Object{
      {"hostfile", hostfile},
      {"kubexec.sh", kubexec_script(json::string_at(pass.job, "spec", "mainContainer"))},
      {"discover_hosts.sh", hosts}};
  return map;
}

json::Value pod_from(const Pass& pass, const ReplicaSpec& replica, const std::string& name) {
  auto pod = make_child(pass.job, "v1", "Pod", name);
  for (const std::string_view field : {"labels", "annotations"}) {
    const auto& value = json::at(*replica.pod_template, "metadata", field);
    if (!json::is_empty(value)) json::make_object(pod, {"metadata"})[field] = value;
  }
  set_label(pod, kube::names::kubeflow::kOperatorName, pass.traits.controller);
  set_label(pod, kube::names::kubeflow::kJobName, pass.name());
  set_label(pod, kube::names::kubeflow::kReplicaType, to_lower(replica.type));
  pod.as_object()["spec"] = json::at(*replica.pod_template, "spec");
  json::make(pod, {"spec", "restartPolicy"}) =
      replica.restart_policy == "ExitCode" ? "Never" : replica.restart_policy;
  return pod;
}

void create_worker(Pass& pass, const ReplicaSpec& replica, int index) {
  auto pod = pod_from(pass, replica, worker_name(pass.job, index));
  set_label(pod, kube::names::kubeflow::kReplicaIndex, std::to_string(index));
  auto& container = array_at(pod, {"spec", "containers"})[0];
  if (json::array_at(container, "command").empty()) {
    container.as_object()["command"] = json::Array{"sleep"};
    container.as_object()["args"] = json::Array{"365d"};
  }
  array_of(container, "volumeMounts").push_back(mount("mpi-job-config", "/etc/mpi"));
  array_at(pod, {"spec", "volumes"}).push_back(config_volume(pass.job, {{"kubexec.sh", 0555}}));
  decorate_pod(pass, replica, pod);
  auto action = create(kinds::kPod, std::move(pod));
  action.events.push_back({false, "SuccessfulCreatePod", "Created worker pod: " + action.name});
  action.failed_reason = "FailedCreatePod";
  action.failed_prefix = "Created worker pod: ";
  pass.plan.actions.push_back(std::move(action));
}

void create_launcher(Pass& pass,
                     const ReplicaSpec& replica,
                     const std::string& account,
                     bool gpu_launcher) {
  auto pod = pod_from(pass, replica, launcher_name(pass.job));
  if (!json::string_at(*replica.pod_template, "spec", "restartPolicy").empty()) {
    pass.event(
        true,
        "SettedPodTemplateRestartPolicy",
        "Restart policy in pod template will be overwritten by restart policy in replica spec");
  }
  set_label(pod, kube::names::kubeflow::kJobRole, "master");
  json::make_object(pod, {"spec"})["serviceAccountName"] = account;
  array_at(pod, {"spec", "initContainers"})
      .push_back(kubectl_delivery(pass.job, pass.settings, true));
  auto& container = array_at(pod, {"spec", "containers"})[0];
  auto& variables = array_of(container, "env");
  variables.push_back(env("OMPI_MCA_plm_rsh_agent", "/etc/mpi/kubexec.sh"));
  variables.push_back(env("OMPI_MCA_orte_default_hostfile", "/etc/mpi/hostfile"));
  if (!gpu_launcher) {
    // The launcher computes nothing: it must not see the GPUs of its node.
    variables.push_back(env("NVIDIA_VISIBLE_DEVICES", ""));
    variables.push_back(env("NVIDIA_DRIVER_CAPABILITIES", ""));
  }
  if (!has_env(container, "I_MPI_HYDRA_BOOTSTRAP"))
    variables.push_back(env("I_MPI_HYDRA_BOOTSTRAP", "rsh"));
  if (!has_env(container, "I_MPI_HYDRA_BOOTSTRAP_EXEC"))
    variables.push_back(env("I_MPI_HYDRA_BOOTSTRAP_EXEC", "/etc/mpi/kubexec.sh"));
  auto& mounts = array_of(container, "volumeMounts");
  mounts.push_back(mount("mpi-job-kubectl", "/opt/kube"));
  mounts.push_back(mount("mpi-job-config", "/etc/mpi"));
  auto& volumes = array_at(pod, {"spec", "volumes"});
  volumes.push_back(json::Object{{"name", "mpi-job-kubectl"}, {"emptyDir", json::Object{}}});
  volumes.push_back(config_volume(
      pass.job, {{"kubexec.sh", 0555}, {"hostfile", 0444}, {"discover_hosts.sh", 0555}}));
  decorate_pod(pass, replica, pod);
  auto action = create(kinds::kPod, std::move(pod));
  action.events.push_back({false, "MPIJobRunning", "launcher pod created success: " + action.name});
  action.failed_reason = "MPIJobFailed";
  action.failed_prefix = "launcher pod created failed: ";
  pass.plan.actions.push_back(std::move(action));
}

void count_phase(Counts& counts, const json::Value& pod) {
  const auto phase = phase_of(pod);
  if (phase == "Running") ++counts.active;
  if (phase == "Succeeded") ++counts.succeeded;
  if (phase == "Failed") ++counts.failed;
}

class MPIJob : public TrainingKind {
 public:
  MPIJob()
      : TrainingKind({.kind = "MPIJob",
                      .controller = "mpijob-controller",
                      .specs_field = "mpiReplicaSpecs",
                      .container = "mpi",
                      .default_restart = "Never",
                      .types = {"Launcher", "Worker"},
                      .fold_keys = false,
                      .services = false}) {}

 protected:
  /// cleanPodPolicy once stood in spec itself.
  void read_legacy(json::Value& job) const override {
    auto& policy = json::make(job, {"spec", "runPolicy", "cleanPodPolicy"});
    auto& legacy = json::make(job, {"spec", "cleanPodPolicy"});
    if (policy.is_null()) policy = legacy.is_null() ? json::Value("None") : legacy;
    legacy = policy;
  }

  /// Unlike everywhere else, workers that are not counted are none.
  [[nodiscard]] int default_replicas(std::string_view type) const override {
    return type == "Worker" ? 0 : 1;
  }

  void add_defaults(json::Value& job) const override {
    auto& specs = json::make(job, {"spec", "mpiReplicaSpecs"});
    if (specs.is_null()) json::remove(job, {"spec", "mpiReplicaSpecs"});
  }

  [[nodiscard]] std::string check(const json::Value& job) const override { return validate(job); }
  [[nodiscard]] bool is_master(const Pass&, const std::string& type, int) const override {
    return type == "Launcher";
  }
  void wire(const Pass&, const ReplicaSpec&, int, json::Value&) const override {}

  void reconcile_pods(Pass& pass) const override {
    const auto name = launcher_name(pass.job);
    const auto* launcher = pass.view.find(kinds::kPod, name);
    if (launcher != nullptr && !is_controlled_by(*launcher, pass.job))
      return refuse_foreign(pass.plan, name, "Pod", "MPIJob");
    const auto* launcher_spec = pass.find("Launcher");
    const auto* worker_spec = pass.find("Worker");
    const int wanted = worker_spec == nullptr ? 0 : worker_spec->replicas;
    const auto phase = launcher == nullptr ? "" : phase_of(*launcher);
    const bool done = phase == "Succeeded" || phase == "Failed";
    Objects workers;
    for (const auto* pod : pass.pods) {
      if (label_of(*pod, kube::names::kubeflow::kReplicaType) == "worker") workers.push_back(pod);
    }
    if (!done && !reconcile_parts(pass, *launcher_spec, worker_spec, workers, wanted)) return;
    if (launcher == nullptr && !done)
      create_launcher(pass,
                      *launcher_spec,
                      account_of(pass, *launcher_spec),
                      asks_for_gpu(*launcher_spec->pod_template));
    if (launcher != nullptr) count_phase(pass.counts["Launcher"], *launcher);
    int evicted = 0;
    for (const auto* worker : workers) {
      if (done || index_label(*worker, kube::names::kubeflow::kReplicaIndex) >= wanted) continue;
      count_phase(pass.counts["Worker"], *worker);
      evicted += phase_of(*worker) == "Failed" &&
                 json::string_at(*worker, "status", "reason") == "Evicted";
    }
    report(pass, launcher, wanted, evicted);
    write_counts(pass, false);
    if (worker_spec == nullptr) json::make_object(pass.status, {"replicaStatuses", "Worker"});
  }

  void update_status(Pass& pass) const override {
    if (!pass.plan.error.empty()) return;
    for (const auto& replica : pass.replicas) {
      const auto counts = pass.counts[replica.type];
      if (replica.type == "Launcher") {
        if (counts.active > 0) pass.run(fmt::format("MPIJob {} is running.", pass.name()));
        if (counts.succeeded == replica.replicas) {
          pass.succeed(fmt::format("MPIJob {} is successfully completed.", pass.name()));
          return;
        }
      }
      if (counts.failed == 0) continue;
      const auto what =
          fmt::format("because {} {} replica(s) failed.", counts.failed, replica.type);
      if (replica.restart_policy == "ExitCode") {
        pass.restart(fmt::format("MPIJob {} is restarting {}", pass.name(), what));
      } else {
        // The doubled prefix is what clients of v1 match.
        const auto message = fmt::format("MPIJob {} is failed {}", pass.name(), what);
        pass.complete();
        if (pass.conditions.set("Failed", true, "MPIJobMPIJobFailed", message))
          pass.event(false, "MPIJobFailed", message);
      }
    }
  }

 private:
  /// What only events tell: the reasons as the pods have them.
  static void report(Pass& pass, const json::Value* launcher, int wanted, int evicted) {
    const auto path = pass.ns() + "/" + pass.name();
    const auto phase = launcher == nullptr ? "" : phase_of(*launcher);
    if (phase == "Succeeded")
      pass.event(false, "mpijobsSucceeded", fmt::format("MPIJob {} successfully completed.", path));
    if (phase == "Failed") {
      const auto reason = json::text_at(*launcher, "status", "reason");
      pass.event(true,
                 reason.empty() ? "MPIJobFailed" : reason,
                 fmt::format("MPIJob {} has failed", path));
    }
    if (evicted > 0)
      pass.event(true, "MPIJobEvicted", fmt::format("{}/{} workers are evicted", evicted, wanted));
    const bool all_run = phase == "Running" && pass.counts["Worker"].active == wanted;
    if (all_run && !pass.conditions.is_true("Running"))
      pass.event(false, "MPIJobRunning", fmt::format("MPIJob {} is running", path));
  }

  static std::string account_of(const Pass& pass, const ReplicaSpec& launcher) {
    const auto given = json::text_at(*launcher.pod_template, "spec", "serviceAccountName");
    return given.empty() ? launcher_name(pass.job) : given;
  }

  /// Everything but the launcher itself. False when an object of a wanted name is somebody else's.
  static bool reconcile_parts(Pass& pass,
                              const ReplicaSpec& launcher,
                              const ReplicaSpec* worker_spec,
                              const Objects& workers,
                              int wanted) {
    const auto account = account_of(pass, launcher);
    ensure_account(pass.plan, pass.job, pass.view, account);
    if (!ensure(pass.plan,
                pass.job,
                pass.view,
                kinds::kConfigMap,
                config_map(pass, workers, wanted, asks_for_gpu(*launcher.pod_template)),
                {"data"}))
      return false;
    json::Array names;
    for (int i = 0; i < wanted; ++i) names.push_back(json::Value(worker_name(pass.job, i)));
    json::Object exec{{"verbs", exec_verbs(pass.settings)},
                      {"apiGroups", json::Array{""}},
                      {"resources", json::Array{"pods/exec"}}};
    if (!names.empty()) exec["resourceNames"] = names;
    LauncherAccess access{account,
                          json::Array{json::Object{{"verbs", json::Array{"get", "list", "watch"}},
                                                   {"apiGroups", json::Array{""}},
                                                   {"resources", json::Array{"pods"}}},
                                      exec}};
    if (!ensure_role(pass.plan, pass.job, pass.view, access)) return false;
    for (const auto* worker : workers) {
      if (index_label(*worker, kube::names::kubeflow::kReplicaIndex) >= wanted)
        delete_pod(pass.plan, *worker);
    }
    for (int i = 0; i < wanted; ++i) {
      const auto* found = pass.view.find(kinds::kPod, worker_name(pass.job, i));
      if (found == nullptr) {
        create_worker(pass, *worker_spec, i);
      } else if (!is_controlled_by(*found, pass.job)) {
        refuse_foreign(pass.plan, name_of(*found), "Pod", "MPIJob");
        return false;
      }
    }
    return true;
  }
};

}  // namespace

std::string validate(const json::Value& job) {
  const auto& specs = json::at(job, "spec", "mpiReplicaSpecs");
  if (!specs.is_object()) return "MPIReplicaSpecs is not valid";
  bool launcher = false;
  for (const auto& [key, spec] : specs.get_object()) {
    const std::string type(key.data(), key.size());
    const auto& containers = json::array_at(spec, "template", "spec", "containers");
    if (containers.empty())
      return fmt::format("MPIReplicaSpecs is not valid: containers definition expected in {}",
                         type);
    if (type != "Launcher" && type != "Worker")
      return fmt::format("MPIReplicaType is {} but must be one of [Launcher Worker]", type);
    for (const auto& container : containers) {
      if (json::string_at(container, "image").empty())
        return fmt::format("MPIReplicaSpec is not valid: Image is undefined in the container of {}",
                           type);
      if (json::string_at(container, "name").empty())
        return fmt::format(
            "MPIReplicaSpec is not valid: ImageName is undefined in the container of {}", type);
    }
    if (type == "Launcher") {
      launcher = true;
      const auto& replicas = json::at(spec, "replicas");
      if (replicas.is_number() && json::as_int(replicas) != 1)
        return "MPIReplicaSpec is not valid: There must be only 1 launcher replica";
    }
  }
  return launcher ? "" : "MPIReplicaSpec is not valid: Master ReplicaSpec must be present";
}

const TrainingKind& kind() {
  static const MPIJob instance;
  return instance;
}

}  // namespace muster::controllers::mpijob::v1
