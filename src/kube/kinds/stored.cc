// Kinds that are kept for their writers and mean nothing to Muster: only how a write counts is known
// of them. Their columns are in data/resources.json, and of those a Table shows names and ages.
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/names.h"

namespace muster::kube {

std::vector<KindRules> families::stored() {
  return {{.group = groups::kAdmissionRegistration,
           .kind = "MutatingWebhookConfiguration",
           .generation = true},
          {.group = groups::kAdmissionRegistration,
           .kind = "ValidatingWebhookConfiguration",
           .generation = true},
          {.group = groups::kAdmissionRegistration,
           .kind = "ValidatingAdmissionPolicy",
           .generation = true},
          {.group = groups::kAdmissionRegistration,
           .kind = "ValidatingAdmissionPolicyBinding",
           .generation = true},
          {.group = groups::kFlowControl, .kind = "FlowSchema", .generation = true},
          {.group = groups::kFlowControl, .kind = "PriorityLevelConfiguration", .generation = true},
          {.group = groups::kResource,
           .kind = "DeviceClass",
           .generation = true,
           .needs_version = true},
          {.group = groups::kResource,
           .kind = "ResourceSlice",
           .fields = {"metadata.name", "spec.nodeName", "spec.driver"},
           .generation = true,
           .needs_version = true},
          {.group = groups::kResource, .kind = "DeviceTaintRule", .needs_version = true},
          {.group = groups::kResource, .kind = "ResourceClaim", .needs_version = true},
          {.group = groups::kResource, .kind = "ResourceClaimTemplate", .needs_version = true},
          {.group = groups::kCertificates,
           .kind = "CertificateSigningRequest",
           .fields = {"metadata.name", "spec.signerName"}}};
}

}  // namespace muster::kube
