/// From a checked job to its Framework, PriorityClass and Secrets.
#include "kube/framework.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "kube/names.h"
#include "pai/protocol/job.h"
#include "pai/protocol/variables.h"
#include "pai/runtime/spec.h"

namespace muster::pai {
namespace {

namespace names = kube::names;

constexpr int kGracefulDeletion_s = 600;
constexpr int kPriorityMost = 126;
constexpr int kSecondsBits = 23;

std::string priority_class_name(const std::string& framework) { return framework + "-priority"; }
std::string secrets_name(const std::string& framework) { return framework + "-configcred"; }
std::string ssh_name(const std::string& framework) { return framework + "-ssh"; }

std::string registry_name(const std::string& framework, const Role& role) {
  return fmt::format("{}-regcred-{}", framework, role.in_pods);
}

/// Bigger is earlier: by the class, then by the time of submission.
std::int64_t queue_value(std::int64_t priority, Time submitted) {
  const std::int64_t below = kPriorityMost - std::clamp<std::int64_t>(priority, -1, kPriorityMost);
  return -((below << kSecondsBits) + submitted.seconds() % (std::int64_t{1} << kSecondsBits));
}

/// `<user>~<job>/<group>` and its members, as HiveD sees them; null: the pod is a group of its own.
json::Value affinity_group(const Job& job, const Role& role) {
  const bool named = std::any_of(job.roles.begin(), job.roles.end(), [](const Role& each) {
    return !each.affinity_group.empty();
  });
  if (named ? role.affinity_group.empty() : !job.gang) return nullptr;
  json::Array members;
  for (const Role& each : job.roles) {
    if (named && each.affinity_group != role.affinity_group) continue;
    members.push_back(json::Object{{"podNumber", each.instances}, {"leafCellNumber", each.skus}});
  }
  return json::Object{
      {"name",
       fmt::format("{}/{}", job_id(job.user, job.name), named ? role.affinity_group : "default")},
      {"members", std::move(members)}};
}

std::string scheduling_spec(const Job& job, const Role& role) {
  json::Object spec{
      {"virtualCluster", job.virtual_cluster},
      {"priority", *priority_number(job.priority_class)},
      {"leafCellType", role.sku_type.empty() ? json::Value(nullptr) : json::Value(role.sku_type)},
      {"leafCellNumber", role.skus}};
  if (!role.pinned_cell.empty()) spec["pinnedCellId"] = role.pinned_cell;
  for (const char* key : {"gangReleaseEnable", "lazyPreemptionEnable", "ignoreK8sSuggestedNodes"}) {
    const json::Value& value = json::at(*job.protocol, "extras", "hivedScheduler", key);
    if (value.is_bool()) spec[key] = value;
  }
  spec["affinityGroup"] = affinity_group(job, role);
  return json::to_yaml(spec);
}

constexpr std::string_view kMask = "******";

/// "<% $secrets.NAME %>" and nothing beside it.
bool names_a_secret(std::string_view text) {
  constexpr std::string_view kBegin = "<%", kEnd = "%>", kRoot = "$secrets.";
  text = trim(text);
  if (!text.starts_with(kBegin) || text.find(kEnd) + kEnd.size() != text.size()) return false;
  return trim(text.substr(kBegin.size())).starts_with(kRoot);
}

/// What everybody may read: without secrets, and without passwords of registries.
json::Value masked(json::Value protocol) {
  json::Object& members = protocol.as_object();
  if (members.contains("secrets")) members["secrets"] = kMask;
  json::Value* listed = members.if_contains("prerequisites");
  if (listed == nullptr || !listed->is_array()) return protocol;
  for (json::Value& each : listed->get_array()) {
    const json::Value& password = json::at(each, "auth", "password");
    if (password.is_null() || names_a_secret(json::as_string(password))) continue;
    json::make(each, {"auth", "password"}) = kMask;
  }
  return protocol;
}

class Maker {
 public:
  Maker(const Job& job, const Facts& facts)
      : job_(job), facts_(facts), name_(framework_name(job.user, job.name)) {}

  Submission make() const {
    Submission out;
    out.user = job_.user;
    out.job = job_.name;
    out.virtual_cluster = job_.virtual_cluster;
    out.framework_name = name_;
    out.priority_class = priority_class();
    out.framework = framework();
    out.owned = secrets();
    return out;
  }

 private:
  [[nodiscard]] json::Value priority_class() const {
    const int priority = *priority_number(job_.priority_class);
    return json::Object{
        {"apiVersion", kube::resources::kPriorityClasses.api_version()},
        {"kind", "PriorityClass"},
        {"metadata",
         json::Object{{"name", priority_class_name(name_)},
                      {"labels", json::Object{{names::pai::kType, "kube-launcher"}}}}},
        // With cells the class and the time order the queue of a kube-scheduler. Where queues
        // decide, a number of its own for each job would let it preempt its equals.
        {"value", facts_.hived ? queue_value(priority, facts_.now) : priority},
        {"preemptionPolicy", priority < 0 ? "Never" : "PreemptLowerPriority"},
        {"description", fmt::format("of OpenPAI's job {}", job_id(job_.user, job_.name))}};
  }

  [[nodiscard]] json::Value metadata(std::string_view name, json::Object annotations) const {
    json::Object metadata{
        {"labels",
         json::Object{{names::pai::kUserName, label_value(job_.user)},
                      {names::pai::kVirtualCluster, label_value(job_.virtual_cluster)},
                      {names::pai::kType, name.empty() ? "kube-launcher-task" : "kube-launcher"},
                      {names::pai::kRelease, label_value(job_.name)}}},
        {"annotations", std::move(annotations)}};
    if (!name.empty()) metadata["name"] = name;
    if (!name.empty()) metadata["namespace"] = facts_.ns;
    return metadata;
  }

  [[nodiscard]] json::Value framework() const {
    std::int64_t gpus = 0, tasks = 0;
    json::Array roles;
    for (const Role& role : job_.roles) {
      gpus += role.gpu * role.instances;
      tasks += role.instances;
      roles.push_back(task_role(role));
    }
    json::Object annotations{{names::pai::kJobName, job_.name},
                             {names::pai::kUserName, job_.user},
                             {names::pai::kVirtualCluster, job_.virtual_cluster},
                             {names::pai::kLogPathInfix, job_id(job_.user, job_.name)},
                             {names::pai::kConfig, json::to_yaml(masked(*job_.protocol))},
                             {names::pai::kTotalGpuNumber, std::to_string(gpus)},
                             {names::pai::kTotalTaskNumber, std::to_string(tasks)},
                             {names::pai::kTotalTaskRoleNumber, std::to_string(job_.roles.size())},
                             {names::kSubmittedAt, format_micro_time(facts_.now)},
                             {kRuntimeAnnotation, json::dump(runtime_spec(job_, facts_))}};
    if (const json::Value& given =
            json::at(*job_.protocol, "extras", "hivedScheduler", "jobPriorityClass");
        given.is_string())
      annotations[names::pai::kJobPriority] = given;
    if (wants_ssh(job_)) annotations[names::framework::kSshSecret] = ssh_name(name_);
    if (std::string wanted = notifications(); !wanted.empty())
      annotations[names::framework::kNotify] = wanted;
    return json::Object{
        {"apiVersion", kube::resources::kFrameworks.api_version()},
        {"kind", kube::resources::kFrameworks.kind},
        {"metadata", metadata(name_, std::move(annotations))},
        {"spec",
         json::Object{{"executionType", "Start"},
                      {"retryPolicy",
                       json::Object{{"fancyRetryPolicy", true}, {"maxRetryCount", job_.retries}}},
                      {"taskRoles", std::move(roles)}}}};
  }

  [[nodiscard]] std::string notifications() const {
    std::vector<std::string> wanted;
    for (const auto& member :
         json::object_at(*job_.protocol, "extras", "jobStatusChangeNotification")) {
      if (json::as_bool(member.value())) wanted.emplace_back(member.key());
    }
    return join(wanted, ",");
  }

  [[nodiscard]] json::Value task_role(const Role& role) const {
    return json::Object{
        {"name", role.in_pods},
        {"taskNumber", role.instances},
        {"frameworkAttemptCompletionPolicy",
         json::Object{{"minFailedTaskCount", role.min_failed},
                      {"minSucceededTaskCount", role.min_succeeded}}},
        {"task",
         json::Object{{"retryPolicy",
                       json::Object{{"fancyRetryPolicy", !job_.gang},
                                    {"maxRetryCount", job_.gang ? 0 : role.retries}}},
                      {"podGracefulDeletionTimeoutSec", kGracefulDeletion_s},
                      {"pod", pod(role)}}}};
  }

  [[nodiscard]] json::Value pod(const Role& role) const {
    json::Object ports;
    for (const auto& [label, count] : role.ports) ports[label] = count;
    json::Object annotations{{names::pai::kPorts, json::dump(ports)},
                             {names::kSubmittedAt, format_micro_time(facts_.now)},
                             {names::framework::kKeepLogs, "true"}};
    if (facts_.hived) {
      annotations[names::hived::kSchedulingSpec] = scheduling_spec(job_, role);
    } else {
      annotations[names::volcano::kQueueName] = job_.virtual_cluster;
      if (job_.gang) annotations[names::volcano::kGroupName] = name_;
    }
    json::Object spec{{"restartPolicy", "Never"},
                      {"priorityClassName", priority_class_name(name_)},
                      {"initContainers", json::Array{init_container()}},
                      {"containers", json::Array{app_container(role)}},
                      {"volumes", volumes(role)}};
    if (facts_.host_network) {
      spec["hostNetwork"] = true;
      spec["dnsPolicy"] = "ClusterFirstWithHostNet";
    }
    if (!facts_.scheduler.empty()) spec["schedulerName"] = facts_.scheduler;
    if (facts_.worker_label) spec["affinity"] = worker_affinity();
    if (!role.auth.is_null())
      spec["imagePullSecrets"] = json::Array{json::Object{{"name", registry_name(name_, role)}}};
    return json::Object{{"metadata", metadata("", std::move(annotations))},
                        {"spec", std::move(spec)}};
  }

  static json::Value worker_affinity() {
    const json::Value term = json::Object{
        {"matchExpressions",
         json::Array{json::Object{
             {"key", "pai-worker"}, {"operator", "In"}, {"values", json::Array{"true"}}}}}};
    return json::Object{{"nodeAffinity",
                         json::Object{{"requiredDuringSchedulingIgnoredDuringExecution",
                                       json::Object{{"nodeSelectorTerms", json::Array{term}}}}}}};
  }

  [[nodiscard]] bool has_secrets() const { return json::at(*job_.protocol, "secrets").is_object(); }

  [[nodiscard]] json::Value init_container() const {
    json::Array mounts{json::Object{{"name", "pai-vol"}, {"mountPath", kRuntimeFolder}}};
    if (has_secrets())
      mounts.push_back(
          json::Object{{"name", "job-secrets"}, {"mountPath", kSecretsFolder}, {"readOnly", true}});
    if (wants_ssh(job_))
      mounts.push_back(
          json::Object{{"name", "job-ssh"}, {"mountPath", kSshFolder}, {"readOnly", true}});
    return json::Object{{"name", "init"},
                        {"image", facts_.runtime_image},
                        {"args", json::Array{"pai-runtime", "init"}},
                        {"env", json::Array{field("PAI_CURRENT_CONTAINER_IP", "status.podIP")}},
                        {"volumeMounts", std::move(mounts)}};
  }

  static json::Value field(std::string_view name, std::string_view path) {
    return json::Object{
        {"name", name},
        {"valueFrom", json::Object{{"fieldRef", json::Object{{"fieldPath", path}}}}}};
  }

  [[nodiscard]] json::Value app_container(const Role& role) const {
    json::Array mounts{json::Object{{"name", "dshm"}, {"mountPath", "/dev/shm"}},
                       json::Object{{"name", "pai-vol"}, {"mountPath", kRuntimeFolder}}};
    for (const Mount& each : job_.mounts) {
      json::Object mount{{"name", volume_of(each)}, {"mountPath", each.path}};
      if (!facts_.storages.at(each.storage).share) mount["subPath"] = job_.user;
      mounts.push_back(std::move(mount));
    }
    json::Array env;
    for (const auto& [name, value] : variables(job_, role))
      env.push_back(json::Object{{"name", name}, {"value", value}});
    add_devices(role, env);
    return json::Object{
        {"name", "app"},
        {"image", role.image},
        {"command", json::Array{"bash", fmt::format("{}/{}", kRuntimeFolder, kRuntimeScript)}},
        {"env", std::move(env)},
        {"resources", json::Object{{"limits", limits(role)}}},
        {"terminationMessagePath", kTerminationMessage},
        {"volumeMounts", std::move(mounts)}};
  }

  void add_devices(const Role& role, json::Array& env) const {
    if (!facts_.hived) return;
    for (const char* name : {"NVIDIA_VISIBLE_DEVICES", "HIVED_VISIBLE_DEVICES"}) {
      if (role.gpu == 0) {
        env.push_back(json::Object{{"name", name}, {"value", "none"}});
      } else {
        env.push_back(field(
            name, fmt::format("metadata.annotations['{}']", names::hived::kLeafCellIsolation)));
      }
    }
  }

  [[nodiscard]] json::Object limits(const Role& role) const {
    json::Object limits;
    if (role.cpu > 0) limits["cpu"] = std::to_string(role.cpu);
    if (role.memory_mb > 0) limits["memory"] = fmt::format("{}Mi", role.memory_mb);
    if (facts_.hived) {
      limits[names::hived::kSchedulingEnable] = "1";
    } else if (role.gpu > 0) {
      limits["nvidia.com/gpu"] = std::to_string(role.gpu);
    }
    if (role.infiniband) limits["rdma/hca"] = "1";
    return limits;
  }

  /// Claims may have names that volumes may not; the first mount of a storage counts.
  [[nodiscard]] std::string volume_of(const Mount& mount) const {
    const auto first = std::find_if(job_.mounts.begin(), job_.mounts.end(), [&](const Mount& each) {
      return each.storage == mount.storage;
    });
    return fmt::format("storage-{}", first - job_.mounts.begin());
  }

  [[nodiscard]] json::Array volumes(const Role& role) const {
    json::Array volumes{
        json::Object{{"name", "pai-vol"}, {"emptyDir", json::Object{}}},
        json::Object{
            {"name", "dshm"},
            {"emptyDir",
             json::Object{{"medium", "Memory"}, {"sizeLimit", fmt::format("{}Mi", role.shm_mb)}}}}};
    if (has_secrets())
      volumes.push_back(json::Object{
          {"name", "job-secrets"}, {"secret", json::Object{{"secretName", secrets_name(name_)}}}});
    if (wants_ssh(job_))
      volumes.push_back(json::Object{{"name", "job-ssh"},
                                     {"secret", json::Object{{"secretName", ssh_name(name_)}}}});
    for (const Mount& each : job_.mounts) {
      const std::string name = volume_of(each);
      if (std::any_of(volumes.begin(), volumes.end(), [&](const json::Value& volume) {
            return json::string_at(volume, "name") == name;
          }))
        continue;
      volumes.push_back(
          json::Object{{"name", name},
                       {"persistentVolumeClaim",
                        json::Object{{"claimName", facts_.storages.at(each.storage).claim}}}});
    }
    return volumes;
  }

  [[nodiscard]] json::Value secret(std::string name,
                                   std::string_view type,
                                   json::Object data) const {
    return json::Object{
        {"apiVersion", "v1"},
        {"kind", "Secret"},
        {"metadata",
         json::Object{{"name", std::move(name)},
                      {"namespace", facts_.ns},
                      {"labels", json::Object{{names::pai::kType, "kube-launcher"}}}}},
        {"type", type},
        {"data", std::move(data)}};
  }

  [[nodiscard]] std::vector<json::Value> secrets() const {
    std::vector<json::Value> out;
    if (has_secrets()) {
      const std::string text = json::dump(json::at(*job_.protocol, "secrets"));
      out.push_back(secret(secrets_name(name_), "Opaque", {{kSecretsFile, base64_encode(text)}}));
    }
    for (const Role& role : job_.roles) {
      if (role.auth.is_null()) continue;
      const std::string user = json::text_at(role.auth, "username");
      const std::string password = json::text_at(role.auth, "password");
      const std::string registry = json::text_at(role.auth, "registryuri");
      const json::Value config = json::Object{
          {"auths",
           json::Object{{registry.empty() ? "https://index.docker.io/v1/" : registry,
                         json::Object{{"auth", base64_encode(user + ":" + password)}}}}}};
      out.push_back(secret(registry_name(name_, role),
                           names::kubernetes::kDockerConfigJson,
                           {{".dockerconfigjson", base64_encode(json::dump(config))}}));
    }
    return out;
  }

  const Job& job_;
  const Facts& facts_;
  std::string name_;
};

}  // namespace

Submission make_submission(const Job& job, const Facts& facts) { return Maker(job, facts).make(); }

}  // namespace muster::pai
