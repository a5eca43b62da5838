/// The resources that code addresses: where each lives in the API, once.
#pragma once

#include <string>
#include <string_view>

namespace muster::kube {

/// A resource of the API: group "" is core. Plural as in the path.
struct Resource {
  std::string group;
  std::string version;
  std::string plural;
  std::string kind;
  bool namespaced = true;

  [[nodiscard]] std::string api_version() const {
    return group.empty() ? version : group + "/" + version;
  }
  /// "/api/v1/namespaces/ns/pods" or without the namespace when `ns` is empty.
  [[nodiscard]] std::string path(std::string_view ns) const;
};

/// The resources that Muster's rooms use, by name; e.g. resources::kPods. Where several groups have
/// a kind of the same name, the plain name is Volcano's and others carry their owner's.
namespace resources {
extern const Resource kPods, kNodes, kNamespaces, kServices, kEndpoints, kConfigMaps, kSecrets,
    kServiceAccounts, kEvents, kPersistentVolumeClaims, kPersistentVolumes;
extern const Resource kJobs, kCronJobs, kStatefulSets, kDeployments, kReplicaSets, kDaemonSets,
    kControllerRevisions, kHorizontalPodAutoscalers, kPodDisruptionBudgets;
extern const Resource kRoles, kRoleBindings, kLeases, kPriorityClasses, kEventsV1, kEndpointSlices,
    kStorageClasses, kCustomResourceDefinitions, kSelfSubjectReviews, kTokenRequests;
/// scheduling.k8s.io, Kubernetes' own gangs.
extern const Resource kNativePodGroups, kNativeWorkloads, kNativeCompositePodGroups;
/// scheduling.x-k8s.io.
extern const Resource kSchedulerPluginsPodGroups;
extern const Resource kPodGroups, kQueues, kHyperNodes, kCommands, kVolcanoJobs;
extern const Resource kPyTorchJobs, kTFJobs, kXGBoostJobs, kPaddleJobs, kJAXJobs, kMPIJobsV1Alpha1,
    kMPIJobsV1, kMPIJobsV2Beta1;
extern const Resource kT9kMPIJobs, kT9kPodGroups, kT9kQueues;
/// What is kept of jobs, and what was used.
extern const Resource kJobRecords, kHistoryPages, kUsageDays;
}  // namespace resources

/// Kinds whose name alone says too little, with their group, as kubectl writes them.
namespace kind_groups {
inline constexpr std::string_view kPodGroup = "PodGroup.scheduling.volcano.sh";
inline constexpr std::string_view kNativePodGroup = "PodGroup.scheduling.k8s.io";
inline constexpr std::string_view kPluginsPodGroup = "PodGroup.scheduling.x-k8s.io";
inline constexpr std::string_view kT9kPodGroup = "PodGroup.scheduler.tensorstack.dev";
}  // namespace kind_groups

/// Collections that the API server looks into by name: plural and group, as they are stored.
namespace collections {
inline constexpr std::string_view kRoles = "roles.rbac.authorization.k8s.io";
inline constexpr std::string_view kClusterRoles = "clusterroles.rbac.authorization.k8s.io";
inline constexpr std::string_view kRoleBindings = "rolebindings.rbac.authorization.k8s.io";
inline constexpr std::string_view kClusterRoleBindings =
    "clusterrolebindings.rbac.authorization.k8s.io";
inline constexpr std::string_view kNativePodGroups = "podgroups.scheduling.k8s.io";
inline constexpr std::string_view kNativeCompositePodGroups =
    "compositepodgroups.scheduling.k8s.io";
inline constexpr std::string_view kPriorityClasses = "priorityclasses.scheduling.k8s.io";
inline constexpr std::string_view kRuntimeClasses = "runtimeclasses.node.k8s.io";
inline constexpr std::string_view kStorageClasses = "storageclasses.storage.k8s.io";
inline constexpr std::string_view kValidatingWebhooks =
    "validatingwebhookconfigurations.admissionregistration.k8s.io";
inline constexpr std::string_view kMutatingWebhooks =
    "mutatingwebhookconfigurations.admissionregistration.k8s.io";
inline constexpr std::string_view kValidatingPolicies =
    "validatingadmissionpolicies.admissionregistration.k8s.io";
inline constexpr std::string_view kValidatingPolicyBindings =
    "validatingadmissionpolicybindings.admissionregistration.k8s.io";
inline constexpr std::string_view kMutatingPolicies =
    "mutatingadmissionpolicies.admissionregistration.k8s.io";
inline constexpr std::string_view kMutatingPolicyBindings =
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io";
inline constexpr std::string_view kNetworkPolicies = "networkpolicies.networking.k8s.io";
inline constexpr std::string_view kIngresses = "ingresses.networking.k8s.io";
inline constexpr std::string_view kIngressClasses = "ingressclasses.networking.k8s.io";
inline constexpr std::string_view kFlowSchemas = "flowschemas.flowcontrol.apiserver.k8s.io";
inline constexpr std::string_view kPriorityLevels =
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io";
inline constexpr std::string_view kApiServices = "apiservices.apiregistration.k8s.io";
inline constexpr std::string_view kSigningRequests =
    "certificatesigningrequests.certificates.k8s.io";
inline constexpr std::string_view kLeases = "leases.coordination.k8s.io";
inline constexpr std::string_view kCustomResourceDefinitions =
    "customresourcedefinitions.apiextensions.k8s.io";
}  // namespace collections

}  // namespace muster::kube
