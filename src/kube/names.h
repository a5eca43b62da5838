/// The names that rooms exchange through objects: labels, annotations, finalizers, taints, managers
/// and API groups. Objects are the only interface between parts, so these names are the interface:
/// one part writes what another reads, and a misspelt name fails silently. Each stands here once, and
/// `tools/check_rooms` refuses the literal anywhere else in src/. Tests spell the names out, as
/// users do.
///
/// Muster's own names stand in `names` itself, those of others in a namespace of their owner. The
/// resources that code addresses (group, version, plural, kind, scope) are in kube/resources.h.
#pragma once

#include <string_view>

namespace muster::kube {

/// The Kubernetes whose API `muster up` serves, whose kubelet its nodes report and whose objects
/// validation and defaults follow.
inline constexpr std::string_view kKubernetesVersion = "v1.37.0";

/// Names below these domains are Kubernetes' own.
inline constexpr std::string_view kKubernetesDomain = "kubernetes.io";
inline constexpr std::string_view kShortKubernetesDomain = "k8s.io";
/// Resources named so are Kubernetes' own, too.
inline constexpr std::string_view kKubernetesPrefix = "kubernetes.io/";
inline constexpr std::string_view kT9kDomain = "tensorstack.dev";

/// Where a pod finds the token, CA and namespace of its service account.
inline constexpr std::string_view kServiceAccountFolder =
    "/var/run/secrets/kubernetes.io/serviceaccount";

namespace names {

// On pods and jobs.
/// "0,2": the GPUs of a pod, written with its binding.
inline constexpr std::string_view kGpuIndices = "muster.dev/gpu-indices";
/// "250": a share of one GPU, in thousandths.
inline constexpr std::string_view kGpuMilli = "muster.dev/gpu-milli";
/// "H100,H200": the models a pod may run on; the model of a node.
inline constexpr std::string_view kGpuModel = "muster.dev/gpu-model";
/// "2h30m": how long the job says it will run.
inline constexpr std::string_view kExpectedDuration = "muster.dev/expected-duration";
/// On a job: "requeue" brings it back whole after a preemption, whatever its restartPolicy says.
inline constexpr std::string_view kOnPreempt = "muster.dev/on-preempt";
/// On its pods and PodGroup: when the job was submitted (RFC 3339), so that it keeps its place in
/// the queue.
inline constexpr std::string_view kSubmittedAt = "muster.dev/submitted-at";
/// An older spelling of kSubmittedAt, still read, because pods may carry it.
inline constexpr std::string_view kSubmitted = "muster.dev/submitted";
/// On jobs whose kind has no spec.suspend: "true" stops them, anything else lets them run.
inline constexpr std::string_view kSuspend = "muster.dev/suspend";
/// On an MPIJob: the version whose rules apply to it, when the stored one does not say.
inline constexpr std::string_view kMpiVersion = "muster.dev/mpi-version";
/// On the Volcano job that an OpenPAI job became: the name its owner gave it.
inline constexpr std::string_view kPaiName = "muster.dev/pai-name";

// On nodes.
/// "true" on nodes without a machine of their own (`muster up --nodes`).
inline constexpr std::string_view kVirtual = "muster.dev/virtual";
/// "true" on nodes whose GPUs are counted, not there.
inline constexpr std::string_view kGpuSimulated = "muster.dev/gpu-simulated";
/// "3,5": the GPUs of a node that shall not be given out.
inline constexpr std::string_view kGpuUnhealthy = "muster.dev/gpu-unhealthy";
/// "true" on nodes whose pods are reported as running and started by no one.
inline constexpr std::string_view kHollow = "muster.dev/hollow";

// On pods of hollow nodes: how long they run, how long they take to stop, and how they end.
inline constexpr std::string_view kHollowDuration = "muster.dev/hollow-duration";
inline constexpr std::string_view kHollowStopDuration = "muster.dev/hollow-stop-duration";
inline constexpr std::string_view kHollowExitCode = "muster.dev/hollow-exit-code";

// On queues.
/// "none", "reservation", "easy": how jobs behind the first may start before it.
inline constexpr std::string_view kBackfill = "muster.dev/backfill";
/// The HiveD virtual cluster whose cells the queue guarantees.
inline constexpr std::string_view kVirtualCluster = "muster.dev/virtual-cluster";

// In kubeconfig files.
/// The extension of a cluster that names the Unix socket of a `muster up` on this machine.
inline constexpr std::string_view kSocket = "muster.dev/socket";

namespace kubernetes {
// Taints.
inline constexpr std::string_view kNotReady = "node.kubernetes.io/not-ready";
inline constexpr std::string_view kUnreachable = "node.kubernetes.io/unreachable";
inline constexpr std::string_view kUnschedulable = "node.kubernetes.io/unschedulable";
inline constexpr std::string_view kMemoryPressure = "node.kubernetes.io/memory-pressure";
inline constexpr std::string_view kDiskPressure = "node.kubernetes.io/disk-pressure";
inline constexpr std::string_view kPidPressure = "node.kubernetes.io/pid-pressure";
inline constexpr std::string_view kNetworkUnavailable = "node.kubernetes.io/network-unavailable";
inline constexpr std::string_view kMasterRole = "node-role.kubernetes.io/master";

// Labels of nodes.
inline constexpr std::string_view kHostname = "kubernetes.io/hostname";
inline constexpr std::string_view kOs = "kubernetes.io/os";
inline constexpr std::string_view kArch = "kubernetes.io/arch";
inline constexpr std::string_view kRole = "kubernetes.io/role";
/// What follows the slash is a role.
inline constexpr std::string_view kRolePrefix = "node-role.kubernetes.io/";

// Labels and annotations of workloads and their pods.
inline constexpr std::string_view kJobName = "batch.kubernetes.io/job-name";
inline constexpr std::string_view kControllerUid = "batch.kubernetes.io/controller-uid";
/// The names these two had before they got a domain; jobs carry both.
inline constexpr std::string_view kOldJobName = "job-name";
inline constexpr std::string_view kOldControllerUid = "controller-uid";
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";
inline constexpr std::string_view kIndexFailures = "batch.kubernetes.io/job-index-failure-count";
inline constexpr std::string_view kScheduledTimestamp =
    "batch.kubernetes.io/cronjob-scheduled-timestamp";
inline constexpr std::string_view kJobController = "kubernetes.io/job-controller";
inline constexpr std::string_view kPodTemplateHash = "pod-template-hash";
inline constexpr std::string_view kRevisionHash = "controller-revision-hash";
inline constexpr std::string_view kStatefulPodName = "statefulset.kubernetes.io/pod-name";
inline constexpr std::string_view kStatefulPodIndex = "apps.kubernetes.io/pod-index";
inline constexpr std::string_view kDeploymentRevision = "deployment.kubernetes.io/revision";
inline constexpr std::string_view kDeploymentHistory = "deployment.kubernetes.io/revision-history";
inline constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";
inline constexpr std::string_view kDefaultContainer = "kubectl.kubernetes.io/default-container";
/// The template of a Workload that a pod belongs to.
inline constexpr std::string_view kGroupTemplate = "scheduling.k8s.io/group-template-name";

// Labels of services and their slices.
inline constexpr std::string_view kServiceName = "kubernetes.io/service-name";
inline constexpr std::string_view kHeadless = "service.kubernetes.io/headless";
inline constexpr std::string_view kSliceManager = "endpointslice.kubernetes.io/managed-by";
/// The value of kSliceManager on slices that the endpoints controller keeps.
inline constexpr std::string_view kSliceController = "endpointslice-controller.k8s.io";
inline constexpr std::string_view kSkipMirror = "endpointslice.kubernetes.io/skip-mirror";

// Annotations of volumes, claims and classes.
inline constexpr std::string_view kBindCompleted = "pv.kubernetes.io/bind-completed";
inline constexpr std::string_view kBoundByController = "pv.kubernetes.io/bound-by-controller";
inline constexpr std::string_view kSelectedNode = "volume.kubernetes.io/selected-node";
/// A provisioner that makes no volumes: people do.
inline constexpr std::string_view kNoProvisioner = "kubernetes.io/no-provisioner";
inline constexpr std::string_view kDefaultClass = "storageclass.kubernetes.io/is-default-class";

// Types of secrets and what they must say.
inline constexpr std::string_view kTls = "kubernetes.io/tls";
inline constexpr std::string_view kSshAuth = "kubernetes.io/ssh-auth";
inline constexpr std::string_view kBasicAuth = "kubernetes.io/basic-auth";
inline constexpr std::string_view kDockerConfigJson = "kubernetes.io/dockerconfigjson";
inline constexpr std::string_view kServiceAccountToken = "kubernetes.io/service-account-token";
inline constexpr std::string_view kServiceAccountName = "kubernetes.io/service-account.name";

// Finalizers.
inline constexpr std::string_view kOrphan = "orphan";
inline constexpr std::string_view kForegroundDeletion = "foregroundDeletion";
inline constexpr std::string_view kPodGroupProtection = "scheduling.k8s.io/podgroup-protection";
inline constexpr std::string_view kCrdCleanup = "customresourcecleanup.apiextensions.k8s.io";

// The rest.
inline constexpr std::string_view kNamespaceName = "kubernetes.io/metadata.name";
inline constexpr std::string_view kDescription = "kubernetes.io/description";
inline constexpr std::string_view kBootstrapping = "kubernetes.io/bootstrapping";
inline constexpr std::string_view kAutoUpdate = "rbac.authorization.kubernetes.io/autoupdate";
inline constexpr std::string_view kApiApproved = "api-approved.kubernetes.io";
/// Ends the first part of a watch that began with what there was.
inline constexpr std::string_view kInitialEventsEnd = "k8s.io/initial-events-end";
/// What a token of a pod says about it, in the `extra` of its user.
inline constexpr std::string_view kTokenPodName = "authentication.kubernetes.io/pod-name";
inline constexpr std::string_view kTokenPodUid = "authentication.kubernetes.io/pod-uid";
/// What the limits of a namespace filled in, on the pod.
inline constexpr std::string_view kLimitRanger = "kubernetes.io/limit-ranger";
/// What follows is enforce, audit or warn, with or without "-version".
inline constexpr std::string_view kPodSecurityPrefix = "pod-security.kubernetes.io/";
/// What follows is a container's name; older names of fields in its security context.
inline constexpr std::string_view kAppArmorPrefix =
    "container.apparmor.security.beta.kubernetes.io/";
inline constexpr std::string_view kSeccompPrefix =
    "container.seccomp.security.alpha.kubernetes.io/";
inline constexpr std::string_view kPodSeccomp = "seccomp.security.alpha.kubernetes.io/pod";
/// GPUs as they were counted before device plugins.
inline constexpr std::string_view kOldGpu = "alpha.kubernetes.io/nvidia-gpu";
}  // namespace kubernetes

namespace volcano {
/// The PodGroup of a pod: the annotation that Volcano and Kubeflow's operators write, and its
/// newer name.
inline constexpr std::string_view kGroupName = "scheduling.k8s.io/group-name";
inline constexpr std::string_view kNewGroupName = "scheduling.volcano.sh/group-name";
/// The queue of a pod or job that has no PodGroup yet.
inline constexpr std::string_view kQueueName = "scheduling.volcano.sh/queue-name";
inline constexpr std::string_view kTaskSpec = "volcano.sh/task-spec";
inline constexpr std::string_view kTaskIndex = "volcano.sh/task-index";
inline constexpr std::string_view kJobName = "volcano.sh/job-name";
inline constexpr std::string_view kJobNamespace = "volcano.sh/job-namespace";
/// The queue of a Volcano job's pod.
inline constexpr std::string_view kJobQueue = "volcano.sh/queue-name";
inline constexpr std::string_view kPreemptable = "volcano.sh/preemptable";
inline constexpr std::string_view kSlaWaitingTime = "volcano.sh/sla-waiting-time";
inline constexpr std::string_view kHierarchy = "volcano.sh/hierarchy";
inline constexpr std::string_view kHierarchyWeights = "volcano.sh/hierarchy-weights";
inline constexpr std::string_view kClosedByParent = "volcano.sh/closed-by-parent";
/// What follows is the tier; the value is the HyperNode of the node at it.
inline constexpr std::string_view kHyperNodeTierPrefix = "volcano.sh/hypernode-tier-";
}  // namespace volcano

/// kubernetes-sigs/scheduler-plugins.
namespace plugins {
inline constexpr std::string_view kPodGroup = "scheduling.x-k8s.io/pod-group";
inline constexpr std::string_view kSuspend = "scheduling.x-k8s.io/suspend";
/// Names of the same from before the group scheduling.x-k8s.io.
inline constexpr std::string_view kOldPodGroup = "pod-group.scheduling.sigs.k8s.io";
inline constexpr std::string_view kOldGroupName = "pod-group.scheduling.sigs.k8s.io/name";
inline constexpr std::string_view kOldMinAvailable =
    "pod-group.scheduling.sigs.k8s.io/min-available";
}  // namespace plugins

namespace kubeflow {
inline constexpr std::string_view kOperatorName = "training.kubeflow.org/operator-name";
inline constexpr std::string_view kJobName = "training.kubeflow.org/job-name";
inline constexpr std::string_view kReplicaType = "training.kubeflow.org/replica-type";
inline constexpr std::string_view kReplicaIndex = "training.kubeflow.org/replica-index";
inline constexpr std::string_view kJobRole = "training.kubeflow.org/job-role";
/// MPIJob v1alpha1's labels.
inline constexpr std::string_view kMpiJobName = "mpi_job_name";
inline constexpr std::string_view kMpiRoleType = "mpi_role_type";
/// Values of spec.managedBy.
inline constexpr std::string_view kTrainingOperator = "kubeflow.org/training-operator";
inline constexpr std::string_view kMpiOperator = "kubeflow.org/mpi-operator";
inline constexpr std::string_view kMultiKueue = "kueue.x-k8s.io/multikueue";
/// Arena's: who submitted a job.
inline constexpr std::string_view kArenaUid = "arena.kubeflow.org/uid";
inline constexpr std::string_view kArenaUsername = "arena.kubeflow.org/username";
}  // namespace kubeflow

namespace t9k {
inline constexpr std::string_view kGroupName = "scheduler.tensorstack.dev/group-name";
inline constexpr std::string_view kQueue = "scheduler.tensorstack.dev/queue";
inline constexpr std::string_view kRole = "scheduler.tensorstack.dev/role";
inline constexpr std::string_view kOwnerName = "tensorstack.dev/owner-name";
inline constexpr std::string_view kComponent = "tensorstack.dev/component";
inline constexpr std::string_view kComponentType = "tensorstack.dev/component-type";
inline constexpr std::string_view kMpiJobReplica = "tensorstack.dev/mpijob-replica";
}  // namespace t9k

/// As hived/annotations.h has them, which may not include this room; scheduler/translate.cc, which
/// sees both, asserts that they agree.
namespace hived {
inline constexpr std::string_view kSchedulingSpec =
    "hivedscheduler.microsoft.com/pod-scheduling-spec";
/// What a pod was given, written with its binding.
inline constexpr std::string_view kBindInfo = "hivedscheduler.microsoft.com/pod-bind-info";
inline constexpr std::string_view kLeafCellIsolation =
    "hivedscheduler.microsoft.com/pod-leaf-cell-isolation";
/// The resource that such pods ask for.
inline constexpr std::string_view kSchedulingEnable =
    "hivedscheduler.microsoft.com/pod-scheduling-enable";
}  // namespace hived

}  // namespace names

/// API groups. The core group is "".
namespace groups {
inline constexpr std::string_view kAdmissionRegistration = "admissionregistration.k8s.io";
inline constexpr std::string_view kApiExtensions = "apiextensions.k8s.io";
inline constexpr std::string_view kApiDiscovery = "apidiscovery.k8s.io";
inline constexpr std::string_view kAuthentication = "authentication.k8s.io";
inline constexpr std::string_view kCertificates = "certificates.k8s.io";
inline constexpr std::string_view kCoordination = "coordination.k8s.io";
inline constexpr std::string_view kDiscovery = "discovery.k8s.io";
inline constexpr std::string_view kEvents = "events.k8s.io";
/// Use of nodes and pods: asked of the node agent, never stored.
inline constexpr std::string_view kMetrics = "metrics.k8s.io";
inline constexpr std::string_view kFlowControl = "flowcontrol.apiserver.k8s.io";
inline constexpr std::string_view kNetworking = "networking.k8s.io";
inline constexpr std::string_view kNode = "node.k8s.io";
inline constexpr std::string_view kRbac = "rbac.authorization.k8s.io";
inline constexpr std::string_view kResource = "resource.k8s.io";
inline constexpr std::string_view kScheduling = "scheduling.k8s.io";
inline constexpr std::string_view kStorage = "storage.k8s.io";
inline constexpr std::string_view kKubeflow = "kubeflow.org";
inline constexpr std::string_view kVolcanoBatch = "batch.volcano.sh";
inline constexpr std::string_view kVolcanoScheduling = "scheduling.volcano.sh";
/// Muster's own objects, and the answers that no object holds.
inline constexpr std::string_view kMuster = "muster.dev";
inline constexpr std::string_view kAnswers = "answers.muster.dev";
inline constexpr std::string_view kT9kBatch = "batch.tensorstack.dev";
inline constexpr std::string_view kT9kScheduling = "scheduler.tensorstack.dev";
}  // namespace groups

}  // namespace muster::kube
