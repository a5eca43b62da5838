/// OpenPAI's Framework, as the rooms that make, run and show it know it: the resource, and the names
/// on its pods. `controllers/framework` runs it, `pai` makes and reads it.
#pragma once

#include <cstdint>
#include <string_view>

#include "kube/resources.h"

namespace muster::kube {

namespace resources {
extern const Resource kFrameworks;
}  // namespace resources

namespace names::framework {
// Labels and annotations of pods and of the ConfigMap of an attempt, and variables of containers.
inline constexpr std::string_view kFrameworkNamespace = "FC_FRAMEWORK_NAMESPACE";
inline constexpr std::string_view kFrameworkName = "FC_FRAMEWORK_NAME";
inline constexpr std::string_view kTaskRoleName = "FC_TASKROLE_NAME";
inline constexpr std::string_view kTaskIndex = "FC_TASK_INDEX";
inline constexpr std::string_view kConfigMapName = "FC_CONFIGMAP_NAME";
inline constexpr std::string_view kPodName = "FC_POD_NAME";
inline constexpr std::string_view kFrameworkAttemptId = "FC_FRAMEWORK_ATTEMPT_ID";
inline constexpr std::string_view kFrameworkAttemptUid = "FC_FRAMEWORK_ATTEMPT_INSTANCE_UID";
inline constexpr std::string_view kConfigMapUid = "FC_CONFIGMAP_UID";
inline constexpr std::string_view kTaskAttemptId = "FC_TASK_ATTEMPT_ID";
inline constexpr std::string_view kTaskAttemptUid = "FC_TASK_ATTEMPT_INSTANCE_UID";
inline constexpr std::string_view kPodUid = "FC_POD_UID";

/// On a Framework: the name of a Secret with a fresh SSH key pair, made before its pods are.
inline constexpr std::string_view kSshSecret = "muster.dev/ssh-secret";
/// On a Framework, "running,failed": the states whose coming is told with an event.
inline constexpr std::string_view kNotify = "muster.dev/notify";
/// On a pod, "true": its logs outlive it on its node for a while.
inline constexpr std::string_view kKeepLogs = "muster.dev/keep-logs";

/// In the status of a task that was tried again: its former attempts, the oldest first, with what
/// people ask of them. Ours; FrameworkController forgets them.
inline constexpr std::string_view kFormerAttempts = "formerAttempts";
}  // namespace names::framework

/// What OpenPAI writes on Frameworks and pods.
namespace names::pai {
inline constexpr std::string_view kUserName = "userName";
inline constexpr std::string_view kVirtualCluster = "virtualCluster";
inline constexpr std::string_view kType = "type";
/// The job's name for the command line, which finds jobs and their pods by this label of arena's.
inline constexpr std::string_view kRelease = "release";
inline constexpr std::string_view kJobName = "jobName";
inline constexpr std::string_view kConfig = "config";
inline constexpr std::string_view kLogPathInfix = "logPathInfix";
inline constexpr std::string_view kTotalGpuNumber = "totalGpuNumber";
inline constexpr std::string_view kTotalTaskNumber = "totalTaskNumber";
inline constexpr std::string_view kTotalTaskRoleNumber = "totalTaskRoleNumber";
inline constexpr std::string_view kJobPriority = "jobPriority";
inline constexpr std::string_view kTags = "tags";
/// {"ssh": 1, "http": 1}: how many ports of each label a task of the role has.
inline constexpr std::string_view kPorts = "rest-server/port-scheduling-spec";
/// On a Framework: what its pods must know of the job (pai/runtime/spec.h).
inline constexpr std::string_view kRuntime = "muster.dev/pai-runtime";
}  // namespace names::pai

/// How a Framework or task may end: OpenPAI's exit codes and what may be done about them.
enum class Behaviour : std::uint8_t {
  kSucceeded,
  kTransient,  // always tried again
  kConflict,   // tried again after a while
  kPermanent,  // never
  kUnknown,    // as often as the retry policy says
};

struct Completion {
  std::int64_t code = 0;
  std::string_view phrase;
  Behaviour behaviour = Behaviour::kUnknown;
};

/// Codes that no container exited with, but for those of OpenPAI's runtime.
namespace completion {
inline constexpr std::int64_t kSucceeded = 0;
inline constexpr std::int64_t kConfigMapExternalDeleted = -100;
inline constexpr std::int64_t kPodExternalDeleted = -101;
inline constexpr std::int64_t kPodCreationPermanentError = -200;
inline constexpr std::int64_t kStopFrameworkRequested = -210;
inline constexpr std::int64_t kFrameworkAttemptCompletion = -220;
inline constexpr std::int64_t kDeleteTaskRequested = -230;
inline constexpr std::int64_t kPodFailedWithoutFailedContainer = -300;
inline constexpr std::int64_t kPodEvicted = -1000;
inline constexpr std::int64_t kPodNodeLost = -1001;
inline constexpr std::int64_t kPodInsufficientResource = -1002;
inline constexpr std::int64_t kPodPreemptedForCriticalPod = -1003;
inline constexpr std::int64_t kPodDeadlineExceeded = -1004;
inline constexpr std::int64_t kContainerOomKilled = -1200;
inline constexpr std::int64_t kGangAllocationTimeout = 251;
inline constexpr std::int64_t kContainerPortConflict = 253;
inline constexpr std::int64_t kContainerImageNotExists = 254;
inline constexpr std::int64_t kRuntimeUnknown = 255;
}  // namespace completion

/// Any other code is that of a container: ContainerUnrecognizedFailed, unknown.
Completion completion_of(std::int64_t code);

}  // namespace muster::kube
