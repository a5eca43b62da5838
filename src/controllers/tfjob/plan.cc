/// TFJob, kubeflow.org/v1.
#include <fmt/core.h>

#include <map>

#include "base/strings.h"
#include "controllers/common/training_kinds.h"
#include "kube/names.h"

namespace muster::controllers::tfjob {
namespace {

bool is_chief(std::string_view type) { return type == "Chief" || type == "Master"; }

/// The addresses of each type, by lower-case type name.
std::map<std::string, json::Array> cluster_of(const Pass& pass) {
  std::map<std::string, json::Array> cluster;
  const auto domain =
      pass.settings.cluster_domain.empty() ? "" : "." + pass.settings.cluster_domain;
  for (const auto& replica : pass.replicas) {
    const auto type = to_lower(replica.type);
    auto& addresses = cluster[type];
    for (int i = 0; i < replica.replicas; ++i) {
      addresses.push_back(json::Value(fmt::format("{}-{}-{}.{}.svc{}:{}",
                                                  pass.name(),
                                                  type,
                                                  i,
                                                  pass.ns(),
                                                  domain,
                                                  port_of(pass.traits, replica))));
    }
  }
  return cluster;
}

std::string tf_config(const Pass& pass, const std::string& type, int index) {
  auto cluster = cluster_of(pass);
  const json::Object task{{"type", type}, {"index", index}};
  if (json::bool_at(pass.job, "spec", "enableDynamicWorker")) {
    json::Object workers;
    json::Value servers = json::Array{};
    const auto mine = static_cast<std::size_t>(index) < cluster[type].size()
                          ? cluster[type][static_cast<std::size_t>(index)]
                          : json::Value("");
    if (type == "ps") servers = json::Array{mine};
    if (type == "worker") {
      servers = pass.find("PS") == nullptr ? json::Value() : json::Value(cluster["ps"]);
      workers[std::to_string(index)] = mine;
    }
    return json::dump(json::Object{{"cluster", json::Object{{"worker", workers}, {"ps", servers}}},
                                   {"task", task}});
  }
  json::Object all;
  for (auto& [name, addresses] : cluster) all[name] = std::move(addresses);
  return json::dump(json::Object{{"cluster", all}, {"task", task}, {"environment", "cloud"}});
}

class TFJob : public TrainingKind {
 public:
  TFJob()
      : TrainingKind({.kind = "TFJob",
                      .controller = "tfjob-controller",
                      .specs_field = "tfReplicaSpecs",
                      .container = "tensorflow",
                      .port_name = "tfjob-port",
                      .port = 2222,
                      .default_restart = "Never",
                      .types = {"Chief", "Evaluator", "Master", "PS", "Worker"}}) {}

 protected:
  void add_defaults(json::Value& job) const override {
    auto& policy = json::make(job, {"spec", "successPolicy"});
    if (!policy.is_string()) policy = "";
  }

  [[nodiscard]] bool is_master(const Pass& pass,
                               const std::string& type,
                               int index) const override {
    if (pass.find("Chief") != nullptr || pass.find("Master") != nullptr) return is_chief(type);
    return type == "Worker" && index == 0;
  }

  void wire(const Pass& pass,
            const ReplicaSpec& replica,
            int index,
            json::Value& pod) const override {
    if (pass.total() == 1) return;
    for (auto& container : array_at(pod, {"spec", "containers"})) {
      if (json::string_at(container, "name") != traits_.container) continue;
      array_of(container, "env")
          .push_back(env("TF_CONFIG", tf_config(pass, to_lower(replica.type), index)));
      break;
    }
  }

  void update_status(Pass& pass) const override {
    const bool has_chief = pass.find("Chief") != nullptr || pass.find("Master") != nullptr;
    const bool all_workers = json::string_at(pass.job, "spec", "successPolicy") == "AllWorkers";
    const auto restarting = restarting_message(pass);
    const auto running = fmt::format("TFJob {}/{} is running.", pass.ns(), pass.name());
    const auto completed =
        fmt::format("TFJob {}/{} successfully completed.", pass.ns(), pass.name());
    for (const auto& replica : pass.replicas) {
      const auto counts = pass.counts[replica.type];
      const bool all = counts.succeeded == replica.replicas;
      if (has_chief && is_chief(replica.type)) {
        if (counts.active > 0) pass.run(running);
        if (all) pass.succeed(completed);
      } else if (!has_chief && replica.type == "Worker") {
        if (all || (!all_workers && first_worker_completed(pass))) {
          pass.succeed(completed);
        } else if (counts.active > 0) {
          pass.run(running);
        }
      }
      if (counts.failed == 0) continue;
      if (!restarting.empty()) {
        pass.conditions.set("Restarting", true, pass.reason("Restarting"), restarting);
      } else if (!(replica.type == "Worker" &&
                   json::bool_at(pass.job, "spec", "enableDynamicWorker"))) {
        pass.fail(fmt::format("TFJob {}/{} has failed because {} {} replica(s) failed.",
                              pass.ns(),
                              pass.name(),
                              counts.failed,
                              replica.type));
      }
    }
  }

 private:
  static std::string restarting_message(const Pass& pass) {
    for (const auto& condition : json::array_at(pass.status, "conditions")) {
      if (json::string_at(condition, "type") == "Restarting")
        return json::text_at(condition, "message");
    }
    return {};
  }

  static bool first_worker_completed(const Pass& pass) {
    for (const auto* pod : pass.pods) {
      if (label_of(*pod, kube::names::kubeflow::kReplicaType) != "worker" ||
          index_label(*pod, kube::names::kubeflow::kReplicaIndex) != 0 ||
          phase_of(*pod) != "Succeeded")
        continue;
      for (const auto& container : json::array_at(*pod, "status", "containerStatuses")) {
        const auto& ended = json::at(container, "state", "terminated");
        if (json::string_at(container, "name") == "tensorflow" && ended.is_object() &&
            json::int_at(ended, "exitCode") == 0)
          return true;
      }
    }
    return false;
  }
};

}  // namespace

const TrainingKind& kind() {
  static const TFJob instance;
  return instance;
}

}  // namespace muster::controllers::tfjob
