#include "kube/framework.h"

#include <algorithm>
#include <array>

namespace muster::kube {

namespace resources {

const Resource kFrameworks{
    "frameworkcontroller.microsoft.com", "v1", "frameworks", "Framework", true};

}  // namespace resources

namespace {

using enum Behaviour;

constexpr auto kCompletions = std::to_array<Completion>({
    {0, "Succeeded", kSucceeded},
    {-100, "ConfigMapExternalDeleted", kTransient},
    {-101, "PodExternalDeleted", kTransient},
    {-110, "ConfigMapLocalCacheCreationTimeout", kTransient},
    {-111, "PodLocalCacheCreationTimeout", kTransient},
    {-120, "PodCreationTransientError", kTransient},
    {-200, "PodCreationPermanentError", kPermanent},
    {-210, "StopFrameworkRequested", kPermanent},
    {-220, "FrameworkAttemptCompletion", kPermanent},
    {-230, "DeleteTaskRequested", kPermanent},
    {-300, "PodFailedWithoutFailedContainer", kUnknown},
    {-310, "PodCreationUnknownError", kUnknown},
    {-1000, "PodEvicted", kTransient},
    {-1001, "PodNodeLost", kTransient},
    {-1002, "PodScheduledToInsufficientResourceNode", kTransient},
    {-1003, "PodPreemptedForCriticalPod", kTransient},
    {-1004, "PodDeadlineExceeded", kPermanent},
    {-1200, "UserContainerDockerOOMKilled", kPermanent},
    {130, "ContainerSigIntReceived", kTransient},
    {131, "ContainerSigQuitReceived", kTransient},
    {134, "ContainerSigAbrtReceived", kUnknown},
    {137, "ContainerSigKillReceived", kTransient},
    {139, "ContainerSigSegvReceived", kUnknown},
    {143, "ContainerSigTermReceived", kTransient},
    {200, "ContainerTransientFailed", kTransient},
    {201, "ContainerTransientConflictFailed", kConflict},
    {210, "ContainerPermanentFailed", kPermanent},
    {220, "UserCommandExitWithError", kPermanent},
    {251, "JobGangAllocationTimeout", kConflict},
    {253, "ContainerPortConflict", kTransient},
    {254, "ContainerImageNotExists", kPermanent},
    {255, "RuntimeUnknownError", kUnknown},
    {256, "RuntimeAbnormalExit", kUnknown},
});

}  // namespace

Completion completion_of(std::int64_t code) {
  const auto* const found = std::find_if(kCompletions.begin(),
                                         kCompletions.end(),
                                         [&](const Completion& each) { return each.code == code; });
  return found != kCompletions.end() ? *found
                                     : Completion{code, "ContainerUnrecognizedFailed", kUnknown};
}

}  // namespace muster::kube
