#include <fmt/core.h>

#include "base/strings.h"
#include "controllers/common/objects.h"
#include "controllers/mpijob/v2beta1.h"
#include "kube/names.h"

namespace muster::controllers::mpijob::v2beta1 {
namespace {

void nonnegative(Verdict& verdict, const std::string& field, const json::Value& value) {
  if (value.is_number() && json::as_int(value) < 0)
    verdict.invalid(field, value, "must be greater than or equal to 0");
}

void check_replica(Verdict& verdict, const json::Value& spec, const std::string& path) {
  if (!json::at(spec, "replicas").is_number())
    verdict.required(path + ".replicas", "must define number of replicas");
  const auto& policy = json::at(spec, "restartPolicy");
  if (json::as_string(policy) != "Never" && json::as_string(policy) != "OnFailure")
    verdict.unsupported(path + ".restartPolicy", policy, {"Never", "OnFailure"});
  if (json::array_at(spec, "template", "spec", "containers").empty())
    verdict.required(path + ".template.spec.containers", "must define at least one container");
}

void check_run_policy(Verdict& verdict, const json::Value& policy) {
  const auto& clean = json::at(policy, "cleanPodPolicy");
  const auto word = json::as_string(clean);
  if (word != "None" && word != "Running" && word != "All")
    verdict.unsupported("spec.runPolicy.cleanPodPolicy", clean, {"All", "None", "Running"});
  for (const std::string field :
       {"ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"}) {
    nonnegative(verdict, "spec.runPolicy." + field, json::at(policy, std::string_view(field)));
  }
  const auto& manager = json::at(policy, "managedBy");
  if (!manager.is_null() && json::as_string(manager) != kube::names::kubeflow::kMpiOperator &&
      json::as_string(manager) != kube::names::kubeflow::kMultiKueue) {
    verdict.unsupported("spec.runPolicy.managedBy",
                        manager,
                        {kube::names::kubeflow::kMpiOperator, kube::names::kubeflow::kMultiKueue});
  }
}

}  // namespace

Verdict validate(const json::Value& job) {
  Verdict verdict;
  const auto& spec = json::at(job, "spec");
  const auto& specs = json::at(spec, "mpiReplicaSpecs");
  const auto& launcher = json::at(specs, "Launcher");
  const auto& worker = json::at(specs, "Worker");
  const auto workers = std::max<std::int64_t>(1, json::as_int(json::at(worker, "replicas"), 1));
  const auto last = fmt::format("{}-worker-{}", name_of(job), workers - 1);
  if (const auto problem = check_dns1035_label(last); !problem.empty()) {
    verdict.invalid(
        "metadata.name",
        json::at(job, "metadata", "name"),
        fmt::format("will not able to create pod and service with invalid DNS label \"{}\": {}",
                    last,
                    problem));
  }
  if (!specs.is_object()) {
    verdict.required("spec.mpiReplicaSpecs", "must have replica specs");
  } else {
    const std::string path = "spec.mpiReplicaSpecs[Launcher]";
    if (!launcher.is_object()) {
      verdict.required(path, "must have Launcher replica spec");
    } else {
      check_replica(verdict, launcher, path);
      if (const auto& n = json::at(launcher, "replicas"); n.is_number() && json::as_int(n) != 1)
        verdict.invalid(path + ".replicas", n, "must be 1");
    }
    if (worker.is_object()) {
      const std::string worker_path = "spec.mpiReplicaSpecs[Worker]";
      check_replica(verdict, worker, worker_path);
      if (const auto& n = json::at(worker, "replicas"); n.is_number() && json::as_int(n) <= 0) {
        verdict.invalid(worker_path + ".replicas", n, "must be greater than or equal to 1");
      }
    }
  }
  nonnegative(verdict, "spec.slotsPerWorker", json::at(spec, "slotsPerWorker"));
  check_run_policy(verdict, json::at(spec, "runPolicy"));
  if (json::string_at(spec, "sshAuthMountPath").empty())
    verdict.required("spec.sshAuthMountPath", "must have a mount path for SSH credentials");
  const auto& implementation = json::at(spec, "mpiImplementation");
  const auto name = json::as_string(implementation);
  if (name != "OpenMPI" && name != "Intel" && name != "MPICH")
    verdict.unsupported("spec.mpiImplementation", implementation, {"Intel", "MPICH", "OpenMPI"});
  return verdict;
}

}  // namespace muster::controllers::mpijob::v2beta1
