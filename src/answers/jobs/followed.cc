#include "answers/jobs/followed.h"

#include "kube/framework.h"
#include "kube/meta.h"

namespace muster::answers {

std::span<const Followed> followed_kinds() {
  namespace r = kube::resources;
  static const Followed kFollowed[] = {
      {r::kPyTorchJobs, JobKind::kPyTorchJob},
      {r::kTFJobs, JobKind::kTFJob},
      {r::kXGBoostJobs, JobKind::kXGBoostJob},
      {r::kPaddleJobs, JobKind::kPaddleJob},
      {r::kJAXJobs, JobKind::kJAXJob},
      {r::kMPIJobsV1, JobKind::kMpiJob},
      {r::kMPIJobsV2Beta1, JobKind::kMpiJob},
      {r::kMPIJobsV1Alpha1, JobKind::kMpiJob},
      {r::kT9kMPIJobs, JobKind::kT9kMpiJob},
      {r::kVolcanoJobs, JobKind::kVcJob},
      {r::kFrameworks, JobKind::kOpenPai},
      {r::kJobs, JobKind::kJob},
      {r::kPodGroups, JobKind::kPodGroup},
      {r::kT9kPodGroups, JobKind::kPodGroup},
      {r::kPods, JobKind::kPod},
  };
  return kFollowed;
}

std::string key_of_owner(const json::Value& object) {
  const kube::OwnerReference owner = kube::controller_of(object);
  if (owner.uid.empty()) return "";
  const auto kind = kind_of_owner(owner.api_version, owner.kind);
  if (!kind || *kind == JobKind::kPodGroup) return "";
  return job_id(kube::namespace_of(object), *kind, owner.name);
}

}  // namespace muster::answers
