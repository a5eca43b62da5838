#include "kube/resources.h"

namespace muster::kube {

std::string Resource::path(std::string_view ns) const {
  std::string path = group.empty() ? "/api/" : "/apis/";
  if (!group.empty()) path.append(group).append(1, '/');
  path.append(version);
  if (namespaced && !ns.empty()) path.append("/namespaces/").append(ns);
  return path.append(1, '/').append(plural);
}

namespace resources {

const Resource kPods{"", "v1", "pods", "Pod", true};
const Resource kNodes{"", "v1", "nodes", "Node", false};
const Resource kNamespaces{"", "v1", "namespaces", "Namespace", false};
const Resource kServices{"", "v1", "services", "Service", true};
const Resource kEndpoints{"", "v1", "endpoints", "Endpoints", true};
const Resource kConfigMaps{"", "v1", "configmaps", "ConfigMap", true};
const Resource kSecrets{"", "v1", "secrets", "Secret", true};
const Resource kServiceAccounts{"", "v1", "serviceaccounts", "ServiceAccount", true};
const Resource kEvents{"", "v1", "events", "Event", true};
const Resource kPersistentVolumeClaims{
    "", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true};
const Resource kPersistentVolumes{"", "v1", "persistentvolumes", "PersistentVolume", false};
const Resource kJobs{"batch", "v1", "jobs", "Job", true};
const Resource kCronJobs{"batch", "v1", "cronjobs", "CronJob", true};
const Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet", true};
const Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
const Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet", true};
const Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};
const Resource kControllerRevisions{
    "apps", "v1", "controllerrevisions", "ControllerRevision", true};
const Resource kHorizontalPodAutoscalers{
    "autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true};
const Resource kPodDisruptionBudgets{
    "policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true};
const Resource kRoles{"rbac.authorization.k8s.io", "v1", "roles", "Role", true};
const Resource kRoleBindings{
    "rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true};
const Resource kLeases{"coordination.k8s.io", "v1", "leases", "Lease", true};
const Resource kPriorityClasses{
    "scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false};
const Resource kEventsV1{"events.k8s.io", "v1", "events", "Event", true};
const Resource kEndpointSlices{"discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true};
const Resource kStorageClasses{"storage.k8s.io", "v1", "storageclasses", "StorageClass", false};
const Resource kCustomResourceDefinitions{
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false};
const Resource kSelfSubjectReviews{
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", false};
const Resource kTokenRequests{"authentication.k8s.io", "v1", "tokenrequests", "TokenRequest", true};
const Resource kNativePodGroups{"scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", true};
const Resource kNativeWorkloads{"scheduling.k8s.io", "v1beta1", "workloads", "Workload", true};
const Resource kNativeCompositePodGroups{
    "scheduling.k8s.io", "v1alpha3", "compositepodgroups", "CompositePodGroup", true};
const Resource kSchedulerPluginsPodGroups{
    "scheduling.x-k8s.io", "v1alpha1", "podgroups", "PodGroup", true};
const Resource kPodGroups{"scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup", true};
const Resource kQueues{"scheduling.volcano.sh", "v1beta1", "queues", "Queue", false};
const Resource kHyperNodes{"topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode", false};
const Resource kCommands{"bus.volcano.sh", "v1alpha1", "commands", "Command", true};
const Resource kVolcanoJobs{"batch.volcano.sh", "v1alpha1", "jobs", "Job", true};
const Resource kPyTorchJobs{"kubeflow.org", "v1", "pytorchjobs", "PyTorchJob", true};
const Resource kTFJobs{"kubeflow.org", "v1", "tfjobs", "TFJob", true};
const Resource kXGBoostJobs{"kubeflow.org", "v1", "xgboostjobs", "XGBoostJob", true};
const Resource kPaddleJobs{"kubeflow.org", "v1", "paddlejobs", "PaddleJob", true};
const Resource kJAXJobs{"kubeflow.org", "v1", "jaxjobs", "JAXJob", true};
const Resource kMPIJobsV1Alpha1{"kubeflow.org", "v1alpha1", "mpijobs", "MPIJob", true};
const Resource kMPIJobsV1{"kubeflow.org", "v1", "mpijobs", "MPIJob", true};
const Resource kMPIJobsV2Beta1{"kubeflow.org", "v2beta1", "mpijobs", "MPIJob", true};
const Resource kT9kMPIJobs{"batch.tensorstack.dev", "v1beta1", "mpijobs", "MPIJob", true};
const Resource kT9kPodGroups{"scheduler.tensorstack.dev", "v1beta1", "podgroups", "PodGroup", true};
const Resource kT9kQueues{"scheduler.tensorstack.dev", "v1beta1", "queues", "Queue", true};
const Resource kJobRecords{"muster.dev", "v1", "jobrecords", "JobRecord", true};
const Resource kHistoryPages{"muster.dev", "v1", "historypages", "HistoryPage", false};
const Resource kUsageDays{"muster.dev", "v1", "usagedays", "UsageDay", false};

}  // namespace resources
}  // namespace muster::kube
