/// JAXJob, kubeflow.org/v1.
#include <fmt/core.h>

#include "controllers/common/training_kinds.h"

namespace muster::controllers::jaxjob {
namespace {

class JAXJob : public TrainingKind {
 public:
  JAXJob()
      : TrainingKind({.kind = "JAXJob",
                      .controller = "jaxjob-controller",
                      .specs_field = "jaxReplicaSpecs",
                      .container = "jax",
                      .port_name = "jaxjob-port",
                      .port = 6666,
                      .default_restart = "Never",
                      .types = {"Worker"},
                      .selector_in_status = true,
                      .ttl_reports_pod = true,
                      .heeds_managed_by = false}) {}

 protected:
  [[nodiscard]] bool is_master(const Pass&, const std::string&, int index) const override {
    return index == 0;
  }

  void wire(const Pass& pass,
            const ReplicaSpec& replica,
            int index,
            json::Value& pod) const override {
    add_env(pod,
            json::Array{env("PYTHONUNBUFFERED", "1"),
                        env("COORDINATOR_PORT", std::to_string(port_of(traits_, replica))),
                        env("COORDINATOR_ADDRESS", pass.name() + "-worker-0"),
                        env("NUM_PROCESSES", std::to_string(pass.total())),
                        env("PROCESS_ID", std::to_string(index))});
  }

  void update_status(Pass& pass) const override {
    for (const auto& replica : pass.replicas) {
      const auto counts = pass.counts[replica.type];
      if (counts.succeeded == replica.replicas) {
        pass.succeed(fmt::format("JAXJob {}/{} successfully completed.", pass.ns(), pass.name()));
        return;
      }
      if (counts.active > 0)
        pass.run(fmt::format("JAXJob {}/{} is running.", pass.ns(), pass.name()));
      if (counts.failed == 0 || replica.replicas <= counts.succeeded + counts.active) continue;
      if (replica.restart_policy == "Never") {
        pass.fail(fmt::format("JAXJob {} is failed because {} {} replica(s) failed.",
                              pass.name(),
                              counts.failed,
                              replica.type));
      } else {
        pass.restart(fmt::format("JAXJob {} is restarting because {} {} replica(s) failed.",
                                 pass.name(),
                                 counts.failed,
                                 replica.type));
      }
    }
  }
};

}  // namespace

const TrainingKind& kind() {
  static const JAXJob instance;
  return instance;
}

}  // namespace muster::controllers::jaxjob
