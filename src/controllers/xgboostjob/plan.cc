/// XGBoostJob, kubeflow.org/v1.
#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/training_kinds.h"

namespace muster::controllers::xgboostjob {
namespace {

class XGBoostJob : public TrainingKind {
 public:
  XGBoostJob()
      : TrainingKind({.kind = "XGBoostJob",
                      .controller = "xgboostjob-controller",
                      .specs_field = "xgbReplicaSpecs",
                      .container = "xgboost",
                      .port_name = "xgboostjob-port",
                      .port = 9999,
                      .default_restart = "Never",
                      .types = {"Master", "Worker"}}) {}

 protected:
  [[nodiscard]] bool is_master(const Pass&, const std::string& type, int) const override {
    return type == "Master";
  }

  void wire(const Pass& pass,
            const ReplicaSpec& replica,
            int index,
            json::Value& pod) const override {
    const auto* master = pass.find("Master");
    const auto* worker = pass.find("Worker");
    const int masters = master == nullptr ? 0 : master->replicas;
    json::Array added{
        env("MASTER_PORT",
            std::to_string(master == nullptr ? traits_.port : port_of(traits_, *master))),
        env("MASTER_ADDR", pass.name() + "-master-0"),
        env("WORLD_SIZE", std::to_string(pass.total())),
        env("RANK", std::to_string(replica.type == "Master" ? index : index + masters)),
        env("PYTHONUNBUFFERED", "1")};
    if (pass.total() > 1 && worker != nullptr) {
      std::vector<std::string> names;
      for (int i = 0; i < worker->replicas; ++i)
        names.push_back(fmt::format("{}-worker-{}", pass.name(), i));
      added.push_back(env("WORKER_PORT", std::to_string(port_of(traits_, *worker))));
      added.push_back(env("WORKER_ADDRS", join(names, ",")));
    }
    add_env(pod, added);
  }

  void update_status(Pass& pass) const override {
    const auto running = fmt::format("XGBoostJob {} is running.", pass.name());
    for (const auto& replica : pass.replicas) {
      const auto counts = pass.counts[replica.type];
      if (replica.type == "Master") {
        if (counts.active > 0) pass.run(running);
        if (counts.succeeded == replica.replicas) {
          pass.run(running);
          pass.succeed(fmt::format("XGBoostJob {} is successfully completed.", pass.name()));
          return;
        }
      }
      if (counts.failed == 0) continue;
      pass.run(running);
      if (replica.restart_policy == "ExitCode") {
        pass.restart(fmt::format("XGBoostJob {} is restarting because {} {} replica(s) failed.",
                                 pass.name(),
                                 counts.failed,
                                 replica.type));
      } else {
        pass.fail(fmt::format("XGBoostJob {} is failed because {} {} replica(s) failed.",
                              pass.name(),
                              counts.failed,
                              replica.type));
      }
    }
  }
};

}  // namespace

const TrainingKind& kind() {
  static const XGBoostJob instance;
  return instance;
}

}  // namespace muster::controllers::xgboostjob
