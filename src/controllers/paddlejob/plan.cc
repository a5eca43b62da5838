/// PaddleJob, kubeflow.org/v1.
#include <fmt/core.h>

#include "controllers/common/hpa.h"
#include "controllers/common/training_kinds.h"

namespace muster::controllers::paddlejob {
namespace {

class PaddleJob : public TrainingKind {
 public:
  PaddleJob()
      : TrainingKind({.kind = "PaddleJob",
                      .controller = "paddlejob-controller",
                      .specs_field = "paddleReplicaSpecs",
                      .container = "paddle",
                      .port_name = "master",
                      .port = 36543,
                      .default_restart = "OnFailure",
                      .types = {"Master", "Worker"},
                      .selector_in_status = true}) {}

 protected:
  void add_defaults(json::Value& job) const override {
    auto* policy = json::make_object(job, {"spec"}).if_contains("elasticPolicy");
    if (policy == nullptr || !policy->is_object()) return;
    const json::Value workers = json::at(job, "spec", "paddleReplicaSpecs", "Worker", "replicas");
    const json::Value least = json::at(*policy, "minReplicas"),
                      most = json::at(*policy, "maxReplicas");
    if (!least.is_number()) policy->get_object()["minReplicas"] = most.is_number() ? most : workers;
    if (!most.is_number())
      policy->get_object()["maxReplicas"] = least.is_number() ? least : workers;
  }

  [[nodiscard]] bool is_master(const Pass&, const std::string& type, int) const override {
    return type == "Master";
  }

  void wire(const Pass& pass,
            const ReplicaSpec& replica,
            int index,
            json::Value& pod) const override {
    const bool servers = pass.find("Master") != nullptr;  // parameter-server mode, else collective
    const std::string head = servers ? "Master" : "Worker";
    const auto port = port_of(traits_, *pass.find(head));
    json::Array added{env("PYTHONUNBUFFERED", "1"),
                      env("PADDLE_JOB_ID", pass.name()),
                      env("PADDLE_NNODES", std::to_string(pass.total()))};
    if (index == 0 && replica.type == head) {
      // The head does not resolve its own name: it takes its own address.
      added.push_back(json::Object{
          {"name", "POD_IP_DUMMY"},
          {"valueFrom", json::Object{{"fieldRef", json::Object{{"fieldPath", "status.podIP"}}}}}});
      added.push_back(env("PADDLE_MASTER", fmt::format("$(POD_IP_DUMMY):{}", port)));
    } else {
      added.push_back(
          env("PADDLE_MASTER",
              fmt::format("{}-{}-0:{}", pass.name(), servers ? "master" : "worker", port)));
    }
    if (servers)
      added.push_back(
          env(replica.type == "Master" ? "PADDLE_SERVER_NUM" : "PADDLE_TRAINER_NUM", "1"));
    add_env(pod, added);
  }

  void before(Pass& pass, bool suspended) const override { sync_autoscaler(pass, suspended); }

  void update_status(Pass& pass) const override {
    const bool has_master = pass.find("Master") != nullptr;
    for (const auto& replica : pass.replicas) {
      const auto counts = pass.counts[replica.type];
      const bool all = counts.succeeded == replica.replicas;
      if (has_master && replica.type == "Master") {
        if (counts.active > 0) pass.run(fmt::format("PaddleJob {} is running.", pass.name()));
        if (all) {
          pass.succeed(fmt::format("PaddleJob {} is successfully completed.", pass.name()));
          return;
        }
      } else if (!has_master && replica.type == "Worker") {
        if (all) {
          pass.succeed(
              fmt::format("PaddleJob {}/{} successfully completed.", pass.ns(), pass.name()));
          return;
        }
        if (counts.active > 0)
          pass.run(fmt::format("PaddleJob {}/{} is running.", pass.ns(), pass.name()));
      }
      if (counts.failed == 0 || replica.replicas <= counts.succeeded + counts.active) continue;
      if (replica.restart_policy == "Never") {
        pass.fail(fmt::format("PaddleJob {} is failed because {} {} replica(s) failed.",
                              pass.name(),
                              counts.failed,
                              replica.type));
      } else {
        pass.restart(fmt::format("PaddleJob {} is restarting because {} {} replica(s) failed.",
                                 pass.name(),
                                 counts.failed,
                                 replica.type));
      }
    }
  }
};

}  // namespace

const TrainingKind& kind() {
  static const PaddleJob instance;
  return instance;
}

}  // namespace muster::controllers::paddlejob
