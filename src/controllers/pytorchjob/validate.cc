#include "controllers/pytorchjob/validate.h"

namespace muster::controllers::pytorchjob {

Verdict validate(const json::Value& job, const json::Value* old_job) {
  Verdict verdict;
  const auto& spec = json::at(job, "spec");
  const auto& specs = json::at(spec, "pytorchReplicaSpecs");
  if (const auto& elastic = json::at(spec, "elasticPolicy"); elastic.is_object()) {
    if (!json::at(specs, "Worker").is_object())
      verdict.required("spec.pytorchReplicaSpecs[Worker]",
                       "must be configured if elastic policy is used");
    if (!json::at(elastic, "nProcPerNode").is_null()) {
      verdict.warnings.push_back(
          "spec.elasticPolicy.nProcPerNode is deprecated, use spec.nprocPerNode instead");
      if (!json::at(spec, "nprocPerNode").is_null())
        verdict.forbidden("spec.elasticPolicy.nProcPerNode",
                          "must not be used with spec.nprocPerNode");
    }
  }
  check_training_job(
      verdict,
      {.specs_field = "pytorchReplicaSpecs", .container = "pytorch", .types = {"Master", "Worker"}},
      job,
      old_job);
  if (const auto& master = json::at(specs, "Master");
      master.is_object() && json::as_int(json::at(master, "replicas"), -1) != 1) {
    verdict.forbidden("spec.pytorchReplicaSpecs[Master].replicas", "must be 1");
  }
  if (const auto& workers = json::at(specs, "Worker", "replicas");
      workers.is_number() && json::as_int(workers) < 1) {
    verdict.forbidden("spec.pytorchReplicaSpecs[Worker].replicas", "must be at least 1");
  }
  return verdict;
}

}  // namespace muster::controllers::pytorchjob
