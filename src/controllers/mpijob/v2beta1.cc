// One piece: an MPIJob of v2beta1 from its defaults to its status, beside the operator's own
// controller, so that the two can be read side by side.
#include "controllers/mpijob/v2beta1.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "controllers/common/conditions.h"
#include "controllers/common/training.h"
#include "controllers/mpijob/parts.h"
#include "kube/names.h"

namespace muster::controllers::mpijob::v2beta1 {
namespace {

constexpr std::size_t kMessageMax = 1024;

std::string cut(std::string text) {
  if (text.size() > kMessageMax) text = text.substr(0, kMessageMax - 3) + "...";
  return text;
}

/// One reconcile of one job.
struct Sync {
  const json::Value& job;  // with defaults
  const View& view;
  const Settings& settings;
  Time now;
  Plan& plan;
  json::Value status;
  Conditions conditions;
  std::vector<ReplicaSpec> replicas;

  Sync(const json::Value& j, const View& v, const Settings& s, Time n, Plan& p)
      : job(j),
        view(v),
        settings(s),
        now(n),
        plan(p),
        status(json::at(j, "status").is_object() ? json::at(j, "status")
                                                 : json::Value(json::Object{})),
        conditions(status, false, n) {
    for (const std::string_view type : {"Launcher", "Worker"}) {
      const auto& spec = json::at(j, "spec", "mpiReplicaSpecs", type);
      if (!spec.is_object()) continue;
      replicas.push_back({std::string(type),
                          static_cast<int>(json::int_at(spec, "replicas")),
                          json::text_at(spec, "restartPolicy"),
                          &json::at(spec, "template")});
    }
  }
  [[nodiscard]] const json::Value& spec(std::string_view field) const {
    return json::at(job, "spec", field);
  }
  [[nodiscard]] const json::Value& policy(std::string_view field) const {
    return json::at(job, "spec", "runPolicy", field);
  }
  [[nodiscard]] bool suspended() const { return json::as_bool(policy("suspend")); }
  [[nodiscard]] bool launcher_works() const { return json::as_bool(spec("runLauncherAsWorker")); }
  [[nodiscard]] int workers() const { return replicas.size() > 1 ? replicas[1].replicas : 0; }
  [[nodiscard]] std::string name() const { return name_of(job); }
  [[nodiscard]] std::string path() const { return namespace_of(job) + "/" + name_of(job); }
  void event(bool warning, std::string reason, std::string message) {
    plan.events.push_back({warning, std::move(reason), std::move(message)});
  }
};

json::Object job_labels(const Sync& sync) {
  return json::Object{{kube::names::kubeflow::kOperatorName, "mpi-operator"},
                      {kube::names::kubeflow::kJobName, sync.name()}};
}

std::string host(const Sync& sync, const std::string& pod) {
  const auto domain =
      sync.settings.cluster_domain.empty() ? "" : "." + sync.settings.cluster_domain;
  return fmt::format("{}.{}.{}.svc{}", pod, sync.name(), namespace_of(sync.job), domain);
}

json::Value service(const Sync& sync) {
  auto object = labelled_child(sync.job, "v1", "Service", sync.name());
  object.as_object()["spec"] = json::Object{{"clusterIP", "None"}, {"selector", job_labels(sync)}};
  if (sync.launcher_works()) json::make_object(object, {"spec"})["publishNotReadyAddresses"] = true;
  return object;
}

/// Service is compared by its selector only: the server fills in the rest.
bool ensure_service(Sync& sync) {
  auto wanted = service(sync);
  const auto* found = sync.view.find(kinds::kService, sync.name());
  if (found == nullptr) {
    sync.plan.actions.push_back(create(kinds::kService, std::move(wanted)));
    return true;
  }
  if (!is_controlled_by(*found, sync.job)) {
    refuse_foreign(sync.plan, sync.name(), "Service", "MPIJob");
    return false;
  }
  const auto& selector = json::at(wanted, "spec", "selector");
  if (!json::equal(json::at(*found, "spec", "selector"), selector)) {
    sync.plan.actions.push_back(patch(
        kinds::kService,
        sync.name(),
        json::Object{{"spec",
                      json::Object{{"selector",
                                    map_patch(json::at(*found, "spec", "selector"), selector)}}}}));
  }
  return true;
}

Objects worker_pods(const Sync& sync) {
  Objects result;
  for (const auto* pod : sync.view.controlled_by(kinds::kPod, uid_of(sync.job))) {
    if (label_of(*pod, kube::names::kubeflow::kJobRole) == "worker") result.push_back(pod);
  }
  return result;
}

json::Value config_map(const Sync& sync) {
  const auto implementation = json::as_string(sync.spec("mpiImplementation"));
  const auto slots = json::as_int(sync.spec("slotsPerWorker"));
  std::string hostfile, hosts = "#!/bin/sh\n";
  const auto add = [&](const std::string& pod) {
    hostfile += implementation == "OpenMPI" ? fmt::format("{} slots={}\n", host(sync, pod), slots)
                                            : fmt::format("{}:{}\n", host(sync, pod), slots);
  };
  if (sync.launcher_works()) {
    add(sync.name() + "-launcher");
    hosts += fmt::format("echo {}\n", host(sync, sync.name() + "-launcher"));
  }
  for (int i = 0; i < sync.workers(); ++i) add(worker_name(sync.job, i));
  for (const auto* pod : running(worker_pods(sync)))
    hosts += fmt::format("echo {}\n", host(sync, name_of(*pod)));
  auto map = labelled_child(sync.job, "v1", "ConfigMap", sync.name() + "-config");
  map.as_object()["data"] = json::Object{{"hostfile", hostfile}, {"discover_hosts.sh", hosts}};
  return map;
}

bool ensure_secret(Sync& sync) {
  const auto name = sync.name() + "-ssh";
  const auto* found = sync.view.find(kinds::kSecret, name);
  if (found == nullptr) {
    auto secret = labelled_child(sync.job, "v1", "Secret", name);
    secret.as_object()["type"] = kube::names::kubernetes::kSshAuth;
    auto action = create(kinds::kSecret, std::move(secret));
    action.with_ssh_key = true;
    sync.plan.actions.push_back(std::move(action));
    return true;
  }
  if (!is_controlled_by(*found, sync.job)) {
    refuse_foreign(sync.plan, name, "Secret", "MPIJob");
    return false;
  }
  const auto& data = json::object_at(*found, "data");
  if (data.size() != 2 || !data.contains("ssh-privatekey") || !data.contains("ssh-publickey")) {
    // What does not belong there goes with the same patch; left in place it would look wrong again,
    // and the keys would change under the job.
    json::Object others;
    for (const auto& member : data) {
      if (member.key() != "ssh-privatekey" && member.key() != "ssh-publickey")
        others[member.key()] = nullptr;
    }
    auto action = patch(kinds::kSecret, name, json::Object{{"data", std::move(others)}});
    action.with_ssh_key = true;
    sync.plan.actions.push_back(std::move(action));
  }
  return true;
}

/// The key pair of the job where ssh looks for it.
void mount_ssh(const Sync& sync, json::Value& pod_template) {
  const auto path = json::as_string(sync.spec("sshAuthMountPath"));
  json::Value secret = json::Object{
      {"secretName", sync.name() + "-ssh"},
      {"items",
       json::Array{json::Object{{"key", "ssh-privatekey"}, {"path", "id_rsa"}},
                   json::Object{{"key", "ssh-publickey"}, {"path", "id_rsa.pub"}},
                   json::Object{{"key", "ssh-publickey"}, {"path", "authorized_keys"}}}}};
  // ssh wants root's key to be root's alone; elsewhere the image brings its own user.
  if (path == "/root/.ssh") secret.as_object()["defaultMode"] = 0600;
  array_at(pod_template, {"spec", "volumes"})
      .push_back(json::Object{{"name", "ssh-auth"}, {"secret", std::move(secret)}});
  array_of(array_at(pod_template, {"spec", "containers"})[0], "volumeMounts")
      .push_back(mount("ssh-auth", path));
}

void decorate(const Sync& sync, json::Value& pod_template) {
  keep_submission_time(sync.job, pod_template);
  if (sync.settings.gang == Gang::kNone) return;
  json::make_object(pod_template, {"spec"})["schedulerName"] = sync.settings.gang_scheduler;
  if (sync.settings.gang == Gang::kVolcano) {
    set_annotation(pod_template, kube::names::volcano::kGroupName, sync.name());
  } else {
    set_label(pod_template, kube::names::plugins::kPodGroup, sync.name());
  }
}

json::Value start_template(const ReplicaSpec& replica) {
  json::Value result =
      json::Object{{"metadata", json::Object{}}, {"spec", json::at(*replica.pod_template, "spec")}};
  for (const std::string_view field : {"labels", "annotations"}) {
    const auto& value = json::at(*replica.pod_template, "metadata", field);
    if (!json::is_empty(value)) json::make_object(result, {"metadata"})[field] = value;
  }
  if (json::bool_at(result, "spec", "hostNetwork"))
    json::make_object(result, {"spec"})["dnsPolicy"] = "ClusterFirstWithHostNet";
  return result;
}

json::Value worker(const Sync& sync, int index) {
  const auto& replica = sync.replicas[1];
  const auto name = worker_name(sync.job, index);
  auto pod = make_child(sync.job, "v1", "Pod", name);
  auto body = start_template(replica);
  for (const auto& [key, value] : job_labels(sync))
    json::make_object(body, {"metadata", "labels"})[key] = value;
  set_label(body, kube::names::kubeflow::kJobRole, "worker");
  set_label(body,
            kube::names::kubeflow::kReplicaIndex,
            std::to_string(sync.launcher_works() ? index + 1 : index));
  auto& spec = json::make_object(body, {"spec"});
  spec["hostname"] = name;
  spec["subdomain"] = sync.name();
  array_at(body, {"spec", "dnsConfig", "searches"})
      .push_back(
          json::Value(fmt::format("{}.{}.svc.cluster.local", sync.name(), namespace_of(sync.job))));
  json::make_object(body, {"spec"})["restartPolicy"] = replica.restart_policy;
  auto& container = array_at(body, {"spec", "containers"})[0];
  if (json::array_at(container, "command").empty() && json::array_at(container, "args").empty()) {
    container.as_object()["command"] = json::Array{"/usr/sbin/sshd", "-De"};
  }
  array_of(container, "env").push_back(env("K_MPI_JOB_ROLE", "worker"));
  mount_ssh(sync, body);
  decorate(sync, body);
  for (const auto& [key, value] : json::object_at(body, "metadata"))
    json::make_object(pod, {"metadata"})[key] = value;
  pod.as_object()["spec"] = json::at(body, "spec");
  return pod;
}

void add_launcher_env(const Sync& sync, json::Array& variables) {
  const auto implementation = json::as_string(sync.spec("mpiImplementation"));
  const auto slots = std::to_string(json::as_int(sync.spec("slotsPerWorker")));
  constexpr std::string_view kHostfile = "/etc/mpi/hostfile";
  constexpr std::string_view kAttempts = "-o ConnectionAttempts=10";
  variables.push_back(env("K_MPI_JOB_ROLE", "launcher"));
  if (implementation == "Intel") {
    variables.push_back(env("I_MPI_HYDRA_HOST_FILE", kHostfile));
    variables.push_back(env("I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS", kAttempts));
    variables.push_back(env("I_MPI_PERHOST", slots));
  } else if (implementation == "MPICH") {
    variables.push_back(env("HYDRA_HOST_FILE", kHostfile));
    variables.push_back(env("HYDRA_LAUNCH_EXTRA_ARGS", kAttempts));
  } else {
    variables.push_back(env("OMPI_MCA_orte_keep_fqdn_hostnames", "true"));
    variables.push_back(env("OMPI_MCA_orte_default_hostfile", kHostfile));
    variables.push_back(env("OMPI_MCA_plm_rsh_args", kAttempts));
    variables.push_back(env("OMPI_MCA_orte_set_default_slots", slots));
  }
  if (!sync.launcher_works()) {
    variables.push_back(env("NVIDIA_VISIBLE_DEVICES", ""));
    variables.push_back(env("NVIDIA_DRIVER_CAPABILITIES", ""));
  }
}

json::Value launcher_job(Sync& sync) {
  const auto& replica = sync.replicas[0];
  auto body = start_template(replica);
  for (const auto& [key, value] : job_labels(sync))
    json::make_object(body, {"metadata", "labels"})[key] = value;
  set_label(body, kube::names::kubeflow::kJobRole, "launcher");
  if (sync.launcher_works()) set_label(body, kube::names::kubeflow::kReplicaIndex, "0");
  auto& spec = json::make_object(body, {"spec"});
  spec["hostname"] = sync.name() + "-launcher";
  spec["subdomain"] = sync.name();
  if (!json::string_at(body, "spec", "restartPolicy").empty()) {
    sync.event(true,
               "SetPodTemplateRestartPolicy",
               "Restart policy in pod template overridden by restart policy in replica spec");
  }
  json::make_object(body, {"spec"})["restartPolicy"] = replica.restart_policy;
  add_launcher_env(sync, array_of(array_at(body, {"spec", "containers"})[0], "env"));
  mount_ssh(sync, body);
  array_of(array_at(body, {"spec", "containers"})[0], "volumeMounts")
      .push_back(mount("mpi-job-config", "/etc/mpi"));
  array_at(body, {"spec", "volumes"})
      .push_back(config_volume(sync.job, {{"hostfile", 0444}, {"discover_hosts.sh", 0555}}));
  decorate(sync, body);
  auto object = labelled_child(sync.job, "batch/v1", "Job", sync.name() + "-launcher");
  json::Object job_spec;
  for (const std::string_view field :
       {"ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"}) {
    if (sync.policy(field).is_number()) job_spec[field] = sync.policy(field);
  }
  job_spec["podReplacementPolicy"] = "Failed";
  job_spec["suspend"] = sync.suspended();
  job_spec["template"] = std::move(body);
  object.as_object()["spec"] = std::move(job_spec);
  return object;
}

/// False when a group of that name is somebody else's.
bool ensure_podgroup(Sync& sync) {
  if (sync.settings.gang == Gang::kNone) return true;
  if (const auto* found = sync.view.find(podgroup_kind(sync.settings.gang), sync.name());
      found != nullptr && !is_controlled_by(*found, sync.job)) {
    refuse_foreign(sync.plan, sync.name(), "PodGroup", "MPIJob");
    return false;
  }
  const auto& policy = sync.policy("schedulingPolicy");
  PodGroupSpec spec;
  const auto& available = json::at(policy, "minAvailable");
  // A launcher that waits for its workers cannot be one of those they wait for.
  const bool launcher_last =
      json::as_string(sync.spec("launcherCreationPolicy")) == "WaitForWorkersReady" &&
      sync.workers() > 0;
  spec.min_member = available.is_number() ? static_cast<int>(json::as_int(available))
                    : launcher_last       ? sync.workers()
                                          : sync.workers() + 1;
  spec.queue = json::text_at(policy, "queue");
  if (spec.queue.empty()) spec.queue = annotation_of(sync.job, kube::names::volcano::kQueueName);
  spec.priority_class = json::text_at(policy, "priorityClass");
  for (const auto& replica : sync.replicas) {
    if (spec.priority_class.empty())
      spec.priority_class = json::text_at(*replica.pod_template, "spec", "priorityClassName");
  }
  const auto& timeout = json::at(policy, "scheduleTimeoutSeconds");
  spec.timeout_s = timeout.is_number() ? timeout : json::Value(0);
  const auto& given = json::at(policy, "minResources");
  const auto counted = launcher_last && !available.is_number()
                           ? std::vector<ReplicaSpec>{sync.replicas[1]}
                           : sync.replicas;
  spec.min_resources =
      given.is_object() ? given : min_resources_merged(counted, spec.min_member, sync.view);
  json::Value notes;
  if (wants_requeue(sync.job))
    notes = json::Object{
        {kube::names::kSubmittedAt, json::at(sync.job, "metadata", "creationTimestamp")}};
  sync_podgroup(sync.plan, sync.job, spec, notes, sync.view, sync.settings.gang);
  return true;
}

void delete_podgroup(Sync& sync) {
  if (sync.settings.gang == Gang::kNone) return;
  const auto kind = podgroup_kind(sync.settings.gang);
  const auto* group = sync.view.find(kind, sync.name());
  if (group != nullptr && is_controlled_by(*group, sync.job) && !is_deleting(*group))
    sync.plan.actions.push_back(remove(kind, *group));
}

/// The launcher's pod has come (again) and has no node yet.
bool launcher_waits(const Sync& sync) {
  const auto pods = sync.view.all(kinds::kPod);
  return std::any_of(pods.begin(), pods.end(), [&](const auto* pod) {
    return label_of(*pod, kube::names::kubeflow::kJobName) == sync.name() &&
           label_of(*pod, kube::names::kubeflow::kJobRole) == "launcher" && !is_deleting(*pod) &&
           phase_of(*pod) == "Pending" && json::string_at(*pod, "spec", "nodeName").empty();
  });
}

/// The workers that exist, and actions for those that do not. False when a name is taken by
/// somebody else.
///
/// A gang starts whole: a launcher that has to start again, or after a suspension, would wait for ever
/// for a worker that has failed. That one is replaced. It cannot fail again before the launcher runs,
/// so the launcher's limit bounds this, too.
bool ensure_workers(Sync& sync, Objects& workers) {
  const bool afresh = sync.settings.gang != Gang::kNone && launcher_waits(sync);
  const auto prefix = sync.name() + "-worker-";
  for (const auto* pod : worker_pods(sync)) {
    // Counted by name: with the launcher as a worker the labels are shifted by one.
    const auto name = name_of(*pod);
    const auto index =
        name.starts_with(prefix) ? parse_int(name.substr(prefix.size())).value_or(-1) : -1;
    const bool wanted = index >= 0 && index < sync.workers();
    if (!wanted && !is_deleting(*pod)) sync.plan.actions.push_back(remove(kinds::kPod, *pod));
  }
  for (int i = 0; i < sync.workers(); ++i) {
    const auto* pod = sync.view.find(kinds::kPod, worker_name(sync.job, i));
    if (pod == nullptr) {
      auto action = create(kinds::kPod, worker(sync, i));
      action.failed_reason = "MPIJobFailed";
      action.failed_prefix = "worker pod created failed: ";
      sync.plan.actions.push_back(std::move(action));
    } else if (!is_controlled_by(*pod, sync.job)) {
      refuse_foreign(sync.plan, name_of(*pod), "Pod", "MPIJob");
      return false;
    } else {
      const bool failed =
          phase_of(*pod) == "Failed" && json::string_at(*pod, "status", "reason") != "Evicted";
      if (afresh && failed && !is_deleting(*pod))
        sync.plan.actions.push_back(remove(kinds::kPod, *pod));
      workers.push_back(pod);
    }
  }
  return true;
}

void delete_workers(Sync& sync) {
  const bool keep_finished = json::as_string(sync.policy("cleanPodPolicy")) == "Running";
  for (int i = 0; i < sync.workers(); ++i) {
    const auto* pod = sync.view.find(kinds::kPod, worker_name(sync.job, i));
    if (pod == nullptr || is_deleting(*pod) || !is_controlled_by(*pod, sync.job)) continue;
    const auto phase = phase_of(*pod);
    if (keep_finished && (phase == "Succeeded" || phase == "Failed" || phase == "Unknown"))
      continue;
    sync.plan.actions.push_back(remove(kinds::kPod, *pod));
  }
  json::make_object(sync.status, {"replicaStatuses"})["Worker"] = json::Object{};
  delete_podgroup(sync);
}

const json::Value* job_condition(const json::Value& job, std::string_view type) {
  for (const auto& condition : json::array_at(job, "status", "conditions")) {
    if (json::string_at(condition, "type") == type &&
        json::string_at(condition, "status") == "True")
      return &condition;
  }
  return nullptr;
}

void fail_with(Sync& sync, const json::Value& condition, const Objects& launcher_pods) {
  auto reason = json::text_at(condition, "reason");
  auto message = json::text_at(condition, "message");
  if (reason.empty()) reason = "MPIJobFailed";
  if (message.empty()) message = fmt::format("MPIJob {} has failed", sync.path());
  if (reason == "BackoffLimitExceeded") {
    const json::Value* last = nullptr;
    for (const auto* pod : launcher_pods) {
      if (phase_of(*pod) != "Failed") continue;
      if (last == nullptr || json::string_at(*last, "metadata", "creationTimestamp") <
                                 json::string_at(*pod, "metadata", "creationTimestamp"))
        last = pod;
    }
    if (last != nullptr) {
      reason += "/" + json::text_at(*last, "status", "reason");
      message = cut(message + ": " + json::text_at(*last, "status", "message"));
    }
  }
  if (json::at(sync.status, "completionTime").is_null())
    sync.status.as_object()["completionTime"] = time_value(sync.now);
  if (sync.conditions.set("Failed", true, reason, message)) sync.event(true, reason, message);
}

void set_counts(Sync& sync, std::string_view type, int active, int succeeded, int failed) {
  json::Object entry;
  if (active > 0) entry["active"] = active;
  if (succeeded > 0) entry["succeeded"] = succeeded;
  if (failed > 0) entry["failed"] = failed;
  json::make_object(sync.status, {"replicaStatuses"})[type] = std::move(entry);
}

/// Returns the number of running launcher pods.
int launcher_status(Sync& sync, const json::Value* launcher) {
  if (launcher == nullptr) return 0;
  const auto pods = sync.view.controlled_by(kinds::kPod, uid_of(*launcher));
  const int active = static_cast<int>(running(pods).size());
  const int failed = static_cast<int>(json::int_at(*launcher, "status", "failed"));
  if (job_condition(*launcher, "Complete") != nullptr) {
    set_counts(sync, "Launcher", 0, 1, failed);
    const auto message = fmt::format("MPIJob {} successfully completed.", sync.path());
    if (json::at(sync.status, "completionTime").is_null()) {
      const auto& ended = json::at(*launcher, "status", "completionTime");
      sync.status.as_object()["completionTime"] = ended.is_string() ? ended : time_value(sync.now);
    }
    if (sync.conditions.set("Succeeded", true, "MPIJobSucceeded", message))
      sync.event(false, "MPIJobSucceeded", message);
  } else if (const auto* condition = job_condition(*launcher, "Failed")) {
    set_counts(sync, "Launcher", 0, 0, failed);
    fail_with(sync, *condition, pods);
  } else {
    set_counts(sync, "Launcher", active, 0, failed);
  }
  return active;
}

void update_status(Sync& sync, const json::Value* launcher, const Objects& workers) {
  if (sync.suspended()) {
    if (sync.conditions.set("Suspended", true, "MPIJobSuspended", "MPIJob suspended"))
      sync.event(false, "MPIJobSuspended", "MPIJob suspended");
  } else if (sync.conditions.has("Suspended") &&
             sync.conditions.set("Suspended", false, "MPIJobResumed", "MPIJob resumed")) {
    sync.status.as_object()["startTime"] = time_value(sync.now);
    sync.event(false, "MPIJobResumed", "MPIJob resumed");
  }
  const int launchers = launcher_status(sync, launcher);
  int active = 0, succeeded = 0, failed = 0, evicted = 0;
  for (const auto* pod : workers) {
    const auto phase = phase_of(*pod);
    active += phase == "Running";
    succeeded += phase == "Succeeded";
    failed += phase == "Failed";
    evicted += phase == "Failed" && json::string_at(*pod, "status", "reason") == "Evicted";
  }
  set_counts(sync, "Worker", active, succeeded, failed);
  const int wanted = sync.workers();
  if (evicted > 0) {
    const auto message = fmt::format("{}/{} workers are evicted", evicted, wanted);
    if (sync.conditions.set("Failed", true, "MPIJobEvicted", message))
      sync.event(true, "MPIJobEvicted", message);
  }
  if (sync.suspended()) {
    sync.conditions.set(
        "Running", false, "MPIJobSuspended", fmt::format("MPIJob {} is suspended.", sync.path()));
  } else if (!sync.conditions.finished() && launchers >= 1 && active == wanted) {
    if (sync.conditions.set(
            "Running", true, "MPIJobRunning", fmt::format("MPIJob {} is running.", sync.path()))) {
      sync.event(false, "MPIJobRunning", fmt::format("MPIJob {} is running", sync.path()));
    }
  } else if (sync.conditions.finished() && !json::at(sync.status, "completionTime").is_null() &&
             !sync.conditions.has("Running")) {
    sync.conditions.set_at(
        "Running",
        false,
        "MPIJobRunning",
        fmt::format("MPIJob {} is finished but Running condition was never set.", sync.path()),
        json::at(sync.status, "completionTime"));
  }
}

/// Makes the launcher Job sleep and wake with the MPIJob. What a queueing system wrote into the
/// template while the job slept (where it may run) goes into the Job before it wakes.
void align_launcher(Sync& sync, const json::Value& launcher) {
  const bool asleep = json::bool_at(launcher, "spec", "suspend");
  if (asleep == sync.suspended()) return;
  const auto name = name_of(launcher);
  if (sync.suspended()) {
    sync.plan.actions.push_back(
        patch(kinds::kJob, name, json::Object{{"spec", json::Object{{"suspend", true}}}}));
    return;
  }
  if (!json::at(launcher, "status", "startTime").is_null()) {
    auto action =
        patch(kinds::kJob, name, json::Object{{"status", json::Object{{"startTime", nullptr}}}});
    action.verb = Action::Verb::kStatus;
    sync.plan.actions.push_back(std::move(action));
  }
  const auto wanted = launcher_job(sync);
  json::Object pod_spec;
  for (const std::string_view field : {"nodeSelector", "tolerations", "schedulingGates"}) {
    const auto& value = json::at(wanted, "spec", "template", "spec", field);
    const auto& current = json::at(launcher, "spec", "template", "spec", field);
    if (!json::equal(value, current))
      pod_spec[field] = value.is_object() ? map_patch(current, value) : value;
  }
  json::Object body{{"suspend", false}};
  json::Object pod_template;
  for (const std::string_view field : {"labels", "annotations"}) {
    const auto& value = json::at(wanted, "spec", "template", "metadata", field);
    if (value.is_object() &&
        !contains(json::at(launcher, "spec", "template", "metadata", field), value))
      json::make_object(pod_template.emplace("metadata", json::Object{}).first->value(),
                        {})[field] = value;
  }
  if (!pod_spec.empty()) pod_template["spec"] = std::move(pod_spec);
  if (!pod_template.empty()) body["template"] = std::move(pod_template);
  sync.plan.actions.push_back(patch(kinds::kJob, name, json::Object{{"spec", std::move(body)}}));
}

/// A job that wants to be requeued and lost a pod to somebody else: workers and launcher go, and
/// all come back together.
bool requeue(Sync& sync, const json::Value* launcher) {
  if (!wants_requeue(sync.job) || sync.suspended()) return false;
  const auto workers = worker_pods(sync);
  Objects pods = workers;
  for (const auto* pod : sync.view.all(kinds::kPod)) {
    if (label_of(*pod, kube::names::kubeflow::kJobName) == sync.name() &&
        label_of(*pod, kube::names::kubeflow::kJobRole) == "launcher")
      pods.push_back(pod);
  }
  bool lost = launcher != nullptr && is_deleting(*launcher);
  for (const auto* pod : pods) lost = lost || was_preempted(*pod);
  // All workers ran at the last look and one is not there now.
  const bool all_ran =
      json::int_at(sync.status, "replicaStatuses", "Worker", "active") >= sync.workers();
  lost = lost || (sync.conditions.is_true("Running") && all_ran &&
                  static_cast<int>(workers.size()) < sync.workers());
  if (!lost) return false;
  if (launcher != nullptr && job_condition(*launcher, "Complete") != nullptr) return false;
  for (const auto* pod : pods) {
    if (!is_deleting(*pod)) sync.plan.actions.push_back(remove(kinds::kPod, *pod));
  }
  if (launcher != nullptr && !is_deleting(*launcher))
    sync.plan.actions.push_back(remove(kinds::kJob, *launcher));
  const auto message =
      fmt::format("MPIJob {} was preempted and goes back to its queue as a whole.", sync.path());
  if (sync.conditions.set("Restarting", true, "MPIJobRequeued", message))
    sync.event(true, "MPIJobRequeued", message);
  set_counts(sync, "Launcher", 0, 0, 0);
  set_counts(sync, "Worker", 0, 0, 0);
  return true;
}

/// False when nothing may be written.
bool reconcile(Sync& sync) {
  const auto launcher_name = sync.name() + "-launcher";
  const auto* launcher = sync.view.find(kinds::kJob, launcher_name);
  if (launcher != nullptr && !is_controlled_by(*launcher, sync.job)) {
    refuse_foreign(sync.plan, launcher_name, "Job", "MPIJob");
    return false;
  }
  if (requeue(sync, launcher)) return true;
  const bool done = launcher != nullptr && (job_condition(*launcher, "Complete") != nullptr ||
                                            job_condition(*launcher, "Failed") != nullptr);
  Objects workers;
  const json::Value* known_launcher = launcher;
  json::Value created;
  if (!done) {
    if (!ensure_service(sync) ||
        !ensure(sync.plan, sync.job, sync.view, kinds::kConfigMap, config_map(sync), {"data"}) ||
        !ensure_secret(sync))
      return false;
    if (!sync.suspended()) {
      if (!ensure_podgroup(sync) || !ensure_workers(sync, workers)) return false;
    }
    const bool all_ready =
        static_cast<int>(std::count_if(workers.begin(), workers.end(), [](const auto* pod) {
          return is_ready(*pod);
        })) == sync.workers();
    if (launcher == nullptr &&
        (json::as_string(sync.spec("launcherCreationPolicy")) != "WaitForWorkersReady" ||
         all_ready || sync.suspended())) {
      created = launcher_job(sync);
      auto action = create(kinds::kJob, created);
      action.failed_reason = "MPIJobFailed";
      action.failed_prefix = "launcher pod created failed: ";
      sync.plan.actions.push_back(std::move(action));
      known_launcher = &created;
    }
  }
  if (launcher != nullptr) align_launcher(sync, *launcher);
  if (sync.suspended()) delete_workers(sync);
  update_status(sync, known_launcher, workers);
  return true;
}

}  // namespace

json::Value with_defaults(const json::Value& original) {
  json::Value job = original;
  auto& spec = json::make_object(job, {"spec"});
  const auto fill = [](json::Object& object, std::string_view key, const json::Value& value) {
    auto& member = object[key];
    if (member.is_null() ||
        (member.is_string() && value.is_string() && member.get_string().empty()))
      member = value;
  };
  fill(spec, "slotsPerWorker", 1);
  fill(spec, "runLauncherAsWorker", false);
  fill(spec, "sshAuthMountPath", "/root/.ssh");
  fill(spec, "launcherCreationPolicy", "AtStartup");
  fill(spec, "mpiImplementation", "OpenMPI");
  auto& clean = json::make(job, {"spec", "runPolicy", "cleanPodPolicy"});
  if (clean.is_null()) clean = "None";
  auto* specs = json::make_object(job, {"spec"}).if_contains("mpiReplicaSpecs");
  if (specs != nullptr && specs->is_object()) {
    for (auto& [type, replica] : specs->get_object()) {
      if (!replica.is_object()) continue;
      const bool launcher = type == "Launcher";
      if (!launcher && type != "Worker") continue;
      fill(replica.get_object(), "replicas", launcher ? 1 : 0);
      fill(replica.get_object(), "restartPolicy", launcher ? "OnFailure" : "Never");
    }
  }
  return job;
}

Plan plan(const json::Value& original, const View& view, const Settings& settings, Time now) {
  Plan plan;
  const auto job = with_defaults(original);
  const auto& manager = json::at(job, "spec", "runPolicy", "managedBy");
  if ((manager.is_string() && json::as_string(manager) != kube::names::kubeflow::kMpiOperator) ||
      is_deleting(job))
    return plan;
  if (const auto verdict = validate(job); !verdict.errors.empty()) {
    plan.events.push_back(
        {true, "ValidationError", cut("Found validation errors: " + verdict.text())});
    return plan;
  }
  Sync sync(job, view, settings, now, plan);
  if (json::array_at(sync.status, "conditions").empty()) {
    const auto message = fmt::format("MPIJob {} is created.", sync.path());
    sync.conditions.set("Created", true, "MPIJobCreated", message);
    sync.event(false, "MPIJobCreated", message);
  }
  if (sync.conditions.finished() && !json::at(sync.status, "completionTime").is_null()) {
    const auto policy = json::as_string(sync.policy("cleanPodPolicy"));
    if (policy == "Running" || policy == "All") delete_workers(sync);
  } else {
    if (json::at(sync.status, "startTime").is_null() && !sync.suspended())
      sync.status.as_object()["startTime"] = time_value(now);
    if (!reconcile(sync)) return plan;
    if (!sync.suspended()) force_delete_stuck(plan, worker_pods(sync), settings, now);
  }
  plan.status = std::move(sync.status);
  return plan;
}

}  // namespace muster::controllers::mpijob::v2beta1
