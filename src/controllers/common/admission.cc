#include "controllers/common/admission.h"

#include "controllers/common/training_kinds.h"
#include "controllers/pytorchjob/validate.h"
#include "controllers/t9k/validate.h"
#include "controllers/vcjob/validate.h"
#include "kube/framework.h"
#include "kube/resources.h"

namespace muster::controllers {
namespace {

Verdict admit_tfjob(const json::Value& job, const json::Value* old_job) {
  Verdict verdict;
  check_training_job(
      verdict, {.specs_field = "tfReplicaSpecs", .container = "tensorflow"}, job, old_job);
  const auto& specs = json::at(job, "spec", "tfReplicaSpecs");
  if (json::at(specs, "Chief").is_object() && json::at(specs, "Master").is_object()) {
    verdict.forbidden("spec.tfReplicaSpecs", "must not have more than 1 Chief or Master role");
  }
  return verdict;
}

Verdict admit_xgboostjob(const json::Value& job, const json::Value* old_job) {
  Verdict verdict;
  check_training_job(
      verdict,
      {.specs_field = "xgbReplicaSpecs", .container = "xgboost", .types = {"Master", "Worker"}},
      job,
      old_job);
  const auto& specs = json::at(job, "spec", "xgbReplicaSpecs");
  const auto& master = json::at(specs, "Master");
  if (!master.is_object()) {
    verdict.required("spec.xgbReplicaSpecs[Master]", "must be present");
  } else if (json::as_int(json::at(master, "replicas"), -1) != 1) {
    verdict.forbidden("spec.xgbReplicaSpecs[Master].replicas", "must be 1");
  }
  return verdict;
}

/// The CRDs' transition rule: it bites when the field is there before and after.
void keep_queue(Verdict& verdict, const json::Value& job, const json::Value& old_job) {
  const auto& before = json::at(old_job, "spec", "runPolicy", "schedulingPolicy", "queue");
  const auto& after = json::at(job, "spec", "runPolicy", "schedulingPolicy", "queue");
  if (before.is_string() && after.is_string() && !json::equal(before, after)) {
    verdict.invalid("spec.runPolicy.schedulingPolicy.queue",
                    after,
                    "spec.runPolicy.schedulingPolicy.queue is immutable");
  }
}

/// The CRD's other transition rule: from Create to Start to Stop.
void keep_direction(Verdict& verdict, const json::Value& job, const json::Value& old_job) {
  const auto place = [](const json::Value& object) {
    const auto type = json::string_at(object, "spec", "executionType");
    return type == "Stop" ? 2 : type == "Create" ? 0 : 1;
  };
  if (place(job) < place(old_job))
    verdict.invalid("spec.executionType",
                    json::at(job, "spec", "executionType"),
                    "executionType goes from Create to Start to Stop, and never back");
}

/// The apiVersion of the training operator's kinds.
const std::string& training_version() {
  static const std::string kVersion = kube::resources::kPyTorchJobs.api_version();
  return kVersion;
}

}  // namespace

Verdict admit(const json::Value& object, const json::Value* old_object) {
  const auto version = json::string_at(object, "apiVersion");
  const auto kind = json::string_at(object, "kind");
  if (kind == "MPIJob" && version == kube::resources::kT9kMPIJobs.api_version())
    return t9k::validate(object, old_object);
  if (kind == kube::resources::kVolcanoJobs.kind &&
      version == kube::resources::kVolcanoJobs.api_version())
    return vcjob::validate(object, old_object);
  Verdict verdict;
  if (kind == kube::resources::kFrameworks.kind &&
      version == kube::resources::kFrameworks.api_version() && old_object != nullptr)
    keep_direction(verdict, object, *old_object);
  if (version != training_version()) return verdict;
  if (kind == "PyTorchJob") verdict = pytorchjob::validate(object, old_object);
  if (kind == "TFJob") verdict = admit_tfjob(object, old_object);
  if (kind == "XGBoostJob") verdict = admit_xgboostjob(object, old_object);
  if (kind == "PaddleJob")
    check_training_job(
        verdict,
        {.specs_field = "paddleReplicaSpecs", .container = "paddle", .types = {"Master", "Worker"}},
        object,
        old_object);
  if (kind == "JAXJob") {
    check_training_job(verdict,
                       {.specs_field = "jaxReplicaSpecs",
                        .container = "jax",
                        .types = {"Worker"},
                        .check_managed_by = false},
                       object,
                       old_object);
  }
  if (old_object != nullptr) keep_queue(verdict, object, *old_object);
  return verdict;
}

json::Value with_defaults(const json::Value& object) {
  if (json::string_at(object, "apiVersion") != training_version()) return object;
  const auto kind = json::string_at(object, "kind");
  for (const TrainingKind* training : {&pytorchjob::kind(),
                                       &tfjob::kind(),
                                       &xgboostjob::kind(),
                                       &paddlejob::kind(),
                                       &jaxjob::kind()}) {
    if (training->traits().kind == kind) return training->with_defaults(object);
  }
  return object;
}

}  // namespace muster::controllers
