/// What an exit code means to the people whose job ended with it.
#include <algorithm>
#include <array>

#include "kube/framework.h"
#include "pai/job/job.h"

namespace muster::pai {
namespace {

struct Told {
  std::int64_t code;
  std::string_view issuer, causer, type, stage, reason, solution;
};

constexpr std::string_view kUser = "USER_CONTAINER", kController = "PAI_FC",
                           kRuntime = "PAI_RUNTIME", kKubelet = "K8S_KUBELET";
constexpr std::string_view kUserFailure = "USER_FAILURE", kPlatformFailure = "PLATFORM_FAILURE",
                           kUserStop = "USER_STOP", kUnknownFailure = "UNKNOWN_FAILURE";

constexpr auto kTold = std::to_array<Told>({
    {0, kUser, kUser, "USER_SUCCESS", "COMPLETE", "The commands of the task succeeded.", ""},
    {-100,
     kController,
     "UNKNOWN",
     kPlatformFailure,
     "UNKNOWN",
     "The ConfigMap of the attempt was deleted by others.",
     "Wait for the retry."},
    {-101,
     kController,
     "UNKNOWN",
     kPlatformFailure,
     "UNKNOWN",
     "The pod was deleted by others: a job of higher rank took its place, or somebody deleted it.",
     "Wait for the retry."},
    {-110,
     kController,
     "UNKNOWN",
     kPlatformFailure,
     "LAUNCHING",
     "The ConfigMap of the attempt was not seen in time.",
     "Wait for the retry."},
    {-111,
     kController,
     "UNKNOWN",
     kPlatformFailure,
     "LAUNCHING",
     "The pod was not seen in time.",
     "Wait for the retry."},
    {-120,
     kController,
     "UNKNOWN",
     kPlatformFailure,
     "LAUNCHING",
     "The pod could not be created yet.",
     "Wait for the retry."},
    {-200,
     kController,
     "UNKNOWN",
     kUserFailure,
     "LAUNCHING",
     "The server refuses the pod as it is described.",
     "Correct the job and submit it again."},
    {-210, kController, "USER_STOP", kUserStop, "UNKNOWN", "Somebody stopped the job.", ""},
    {-220,
     kController,
     "USER_POLICY",
     kUserStop,
     "UNKNOWN",
     "The job ended before the task did, as its completion policy says.",
     ""},
    {-230, kController, "USER_STOP", kUserStop, "UNKNOWN", "The role was made smaller.", ""},
    {-300,
     kController,
     "UNKNOWN",
     kUnknownFailure,
     "UNKNOWN",
     "The pod failed, and none of its containers did.",
     "Look at the pod's events."},
    {-310,
     kController,
     "UNKNOWN",
     kUnknownFailure,
     "LAUNCHING",
     "The pod could not be created.",
     "Look at the job's events."},
    {-1000,
     kKubelet,
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The node was short of memory or disk and evicted the pod.",
     "Wait for the retry; write less to the container's disk."},
    {-1001,
     "K8S_CONTROLLER",
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The node was lost.",
     "Wait for the retry."},
    {-1002,
     kKubelet,
     "UNKNOWN",
     kPlatformFailure,
     "LAUNCHING",
     "The node had less room than the pod was given.",
     "Wait for the retry."},
    {-1003,
     kKubelet,
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The node needed the room for one of its own pods.",
     "Wait for the retry."},
    {-1004,
     kKubelet,
     kUser,
     kUserFailure,
     "RUNNING",
     "The pod ran longer than its deadline.",
     "Ask for more time."},
    {-1200,
     kKubelet,
     kUser,
     kUserFailure,
     "RUNNING",
     "The task used more memory than it asked for.",
     "Ask for more memoryMB."},
    {130,
     kUser,
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The task was interrupted (SIGINT).",
     "Wait for the retry."},
    {131,
     kUser,
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The task was told to quit (SIGQUIT).",
     "Wait for the retry."},
    {134, kUser, kUser, kUserFailure, "RUNNING", "The task aborted (SIGABRT).", "Look at its log."},
    {137,
     kUser,
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The task was killed (SIGKILL).",
     "Wait for the retry."},
    {139,
     kUser,
     kUser,
     kUserFailure,
     "RUNNING",
     "The task used memory that is not its own (SIGSEGV).",
     "Look at its log."},
    {143,
     kUser,
     "UNKNOWN",
     kPlatformFailure,
     "RUNNING",
     "The task was told to end (SIGTERM).",
     "Wait for the retry."},
    {200,
     kUser,
     kUser,
     kUserFailure,
     "RUNNING",
     "The task says that a retry may help.",
     "Wait for the retry."},
    {201,
     kUser,
     kUser,
     kUserFailure,
     "RUNNING",
     "The task says that a retry may help later.",
     "Wait for the retry."},
    {210,
     kUser,
     kUser,
     kUserFailure,
     "RUNNING",
     "The task says that no retry helps.",
     "Look at its log."},
    {220,
     kRuntime,
     kUser,
     kUserFailure,
     "RUNNING",
     "A command of the task was not found.",
     "Correct the command, or take an image that has it."},
    {251,
     kRuntime,
     "UNKNOWN",
     "RESOURCE_ALLOCATION_TIMEOUT",
     "LAUNCHING",
     "Not every task of the job had a place within 10 minutes.",
     "Wait for the retry."},
    {253,
     kRuntime,
     "UNKNOWN",
     kPlatformFailure,
     "LAUNCHING",
     "A port of the task was in use.",
     "Wait for the retry."},
    {254,
     kRuntime,
     kUser,
     kUserFailure,
     "LAUNCHING",
     "The image does not exist.",
     "Correct the image's name."},
    {255,
     kRuntime,
     "UNKNOWN",
     kUnknownFailure,
     "UNKNOWN",
     "The task failed for an unknown reason.",
     "Look at its log."},
    {256,
     kRuntime,
     "UNKNOWN",
     kUnknownFailure,
     "UNKNOWN",
     "The task ended with a code that has no meaning of its own.",
     "Look at its log."},
    {-8000,
     "UNKNOWN",
     "UNKNOWN",
     kUnknownFailure,
     "UNKNOWN",
     "The job ended with a code that is not known here.",
     "Tell the administrator."},
});

struct Reaction {
  std::string_view behaviour, reaction;
};

Reaction reaction_of(kube::Behaviour behaviour) {
  switch (behaviour) {
    case kube::Behaviour::kSucceeded:
      return {"SUCCEEDED", "NEVER_RETRY"};
    case kube::Behaviour::kTransient:
      return {"TRANSIENT", "ALWAYS_RETRY"};
    case kube::Behaviour::kConflict:
      return {"TRANSIENT_CONFLICT", "ALWAYS_BACKOFF_RETRY"};
    case kube::Behaviour::kPermanent:
      return {"PERMANENT", "NEVER_RETRY"};
    case kube::Behaviour::kUnknown:
      break;
  }
  return {"UNKNOWN", "RETRY_TO_MAX"};
}

}  // namespace

json::Value exit_spec(std::int64_t code) {
  const auto find = [](std::int64_t wanted) {
    return std::find_if(
        kTold.begin(), kTold.end(), [&](const Told& each) { return each.code == wanted; });
  };
  const auto* told = find(code);
  if (told == kTold.end()) told = find(code > 0 ? 256 : -8000);
  const kube::Completion known = kube::completion_of(told->code);
  const Reaction reaction = reaction_of(known.behaviour);
  return json::Object{
      {"code", code},
      {"phrase", told->code == -8000 ? std::string_view("UnknownFailure") : known.phrase},
      {"issuer", told->issuer},
      {"causer", told->causer},
      {"type", told->type},
      {"stage", told->stage},
      {"behavior", reaction.behaviour},
      {"reaction", reaction.reaction},
      {"reason", told->reason},
      {"repro", json::Array{}},
      {"solution", told->solution.empty() ? json::Array{} : json::Array{told->solution}}};
}

}  // namespace muster::pai
