/// PyTorchJob, kubeflow.org/v1.
#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/hpa.h"
#include "controllers/common/training_kinds.h"

namespace muster::controllers::pytorchjob {
namespace {

void add_elastic_env(json::Array& env_list, const Pass& pass, const json::Value& policy) {
  const auto* worker = pass.find("Worker");
  const auto& host = json::at(policy, "rdzvHost");
  const auto& port = json::at(policy, "rdzvPort");
  const auto& backend = json::at(policy, "rdzvBackend");
  env_list.push_back(
      env("PET_RDZV_ENDPOINT",
          fmt::format("{}:{}",
                      json::as_string(host).empty() ? pass.name() + "-worker-0" : json::text(host),
                      port.is_number()    ? json::as_int(port)
                      : worker == nullptr ? 23456
                                          : port_of(pass.traits, *worker))));
  env_list.push_back(env("PET_RDZV_BACKEND",
                         json::as_string(backend).empty() ? "c10d" : json::as_string(backend)));
  env_list.push_back(
      env("PET_NNODES",
          fmt::format(
              "{}:{}", json::int_at(policy, "minReplicas"), json::int_at(policy, "maxReplicas"))));
  if (const auto& v = json::at(policy, "maxRestarts"); v.is_number())
    env_list.push_back(env("PET_MAX_RESTARTS", std::to_string(json::as_int(v))));
  if (const auto& v = json::at(policy, "nProcPerNode"); v.is_number())
    env_list.push_back(env("PET_NPROC_PER_NODE", std::to_string(json::as_int(v))));
  if (const auto& v = json::at(policy, "rdzvId"); v.is_string())
    env_list.push_back(env("PET_RDZV_ID", json::as_string(v)));
  std::vector<std::string> conf;
  for (const auto& pair : json::array_at(policy, "rdzvConf")) {
    conf.push_back(
        fmt::format("{}={}", json::string_at(pair, "key"), json::string_at(pair, "value")));
  }
  if (!conf.empty()) env_list.push_back(env("PET_RDZV_CONF", join(conf, ",")));
  if (json::bool_at(policy, "standalone")) env_list.push_back(env("PET_STANDALONE", ""));
}

class PyTorchJob : public TrainingKind {
 public:
  PyTorchJob()
      : TrainingKind({.kind = "PyTorchJob",
                      .controller = "pytorchjob-controller",
                      .specs_field = "pytorchReplicaSpecs",
                      .container = "pytorch",
                      .port_name = "pytorchjob-port",
                      .port = 23456,
                      .default_restart = "OnFailure",
                      .types = {"Master", "Worker"},
                      .selector_in_status = true,
                      .ttl_reports_pod = true}) {}

 protected:
  void add_defaults(json::Value& job) const override {
    auto& spec = json::make_object(job, {"spec"});
    auto* policy = spec.if_contains("elasticPolicy");
    if (policy != nullptr && policy->is_object()) {
      auto& elastic = policy->get_object();
      const json::Value workers =
          json::at(job, "spec", "pytorchReplicaSpecs", "Worker", "replicas");
      const json::Value least = json::at(*policy, "minReplicas"),
                        most = json::at(*policy, "maxReplicas");
      if (!least.is_number()) elastic["minReplicas"] = most.is_number() ? most : workers;
      if (!most.is_number()) elastic["maxReplicas"] = least.is_number() ? least : workers;
    }
    const bool deprecated = policy != nullptr && json::at(*policy, "nProcPerNode").is_number();
    if (!json::at(job, "spec", "nprocPerNode").is_string() && !deprecated)
      spec["nprocPerNode"] = "auto";
  }

  [[nodiscard]] std::string check(const json::Value& job) const override {
    if (json::at(job, "spec", "elasticPolicy").is_object() &&
        !json::at(job, "spec", "pytorchReplicaSpecs", "Worker").is_object()) {
      return "spec.pytorchReplicaSpecs[Worker] must be configured if elastic policy is used";
    }
    return TrainingKind::check(job);
  }

  [[nodiscard]] bool is_master(const Pass& pass,
                               const std::string& type,
                               int index) const override {
    return type == "Master" || (pass.find("Master") == nullptr && type == "Worker" && index == 0);
  }

  void wire(const Pass& pass,
            const ReplicaSpec& replica,
            int index,
            json::Value& pod) const override {
    const auto* master = pass.find("Master");
    const auto& per_node = json::at(pass.job, "spec", "nprocPerNode");
    const auto& elastic = json::at(pass.job, "spec", "elasticPolicy");
    json::Array added{env("PYTHONUNBUFFERED", "1")};
    if (master != nullptr) {
      const auto port = std::to_string(port_of(traits_, *master));
      const auto address = pass.name() + "-master-0";
      const auto rank = std::to_string(replica.type == "Master" ? 0 : index + 1);
      const auto world = pass.total() * parse_int(json::as_string(per_node)).value_or(1);
      for (const auto& [key, value] :
           std::initializer_list<std::pair<std::string_view, std::string>>{
               {"MASTER_PORT", port},
               {"PET_MASTER_PORT", port},
               {"MASTER_ADDR", address},
               {"PET_MASTER_ADDR", address},
               {"WORLD_SIZE", std::to_string(world)},
               {"RANK", rank},
               {"PET_NODE_RANK", rank}}) {
        added.push_back(env(key, value));
      }
    }
    if (per_node.is_string()) added.push_back(env("PET_NPROC_PER_NODE", json::as_string(per_node)));
    if (elastic.is_object()) {
      add_elastic_env(added, pass, elastic);
    } else {
      added.push_back(env("PET_NNODES", std::to_string(pass.total())));
    }
    add_env(pod, added);
    if (replica.type == "Worker" && master != nullptr) {
      array_at(pod, {"spec", "initContainers"})
          .push_back(json::Object{
              {"name", "init-pytorch"},
              {"image", pass.settings.pytorch_init_image},
              {"imagePullPolicy", "IfNotPresent"},
              {"resources",
               json::Object{{"limits", json::Object{{"cpu", "100m"}, {"memory", "20Mi"}}},
                            {"requests", json::Object{{"cpu", "50m"}, {"memory", "10Mi"}}}}},
              {"command",
               json::Array{
                   "sh",
                   "-c",
                   fmt::format(
                       "err=1;for i in $(seq {}); do if {} {}-master-0; then err=0 && break; fi;echo waiting for "
                       "master; sleep 2; done; exit $err",
                       pass.settings.pytorch_init_tries,
                       pass.settings.pytorch_init_lookup,
                       pass.name())}}});
    }
  }

  void before(Pass& pass, bool suspended) const override { sync_autoscaler(pass, suspended); }

  /// The master is looked at first, so that its success ends the job and, short of that, Restarting
  /// is what shows while a worker is being replaced.
  void update_status(Pass& pass) const override {
    const bool has_master = pass.find("Master") != nullptr;
    const bool elastic = json::at(pass.job, "spec", "elasticPolicy").is_object();
    for (const auto& replica : pass.replicas) {
      const auto counts = pass.counts[replica.type];
      const bool all = counts.succeeded == replica.replicas;
      if (has_master && replica.type == "Master") {
        if (counts.active > 0) pass.run(fmt::format("PyTorchJob {} is running.", pass.name()));
        if (all) {
          pass.succeed(fmt::format("PyTorchJob {} is successfully completed.", pass.name()));
          return;
        }
      } else if (!has_master && replica.type == "Worker") {
        if (all || (elastic && counts.succeeded > 0)) {
          pass.succeed(
              fmt::format("PyTorchJob {}/{} successfully completed.", pass.ns(), pass.name()));
          return;
        }
        if (counts.active > 0)
          pass.run(fmt::format("PyTorchJob {}/{} is running.", pass.ns(), pass.name()));
      }
      if (counts.failed == 0 || replica.replicas <= counts.succeeded + counts.active) continue;
      if (replica.restart_policy == "Never") {
        pass.fail(fmt::format("PyTorchJob {} is failed because {} {} replica(s) failed.",
                              pass.name(),
                              counts.failed,
                              replica.type));
      } else {
        pass.restart(fmt::format("PyTorchJob {} is restarting because {} {} replica(s) failed.",
                                 pass.name(),
                                 counts.failed,
                                 replica.type));
      }
    }
  }
};

}  // namespace

const TrainingKind& kind() {
  static const PyTorchJob instance;
  return instance;
}

}  // namespace muster::controllers::pytorchjob
