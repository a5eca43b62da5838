/// A training job as arena shows it: computed from the job's object, its pods and its launcher Job.
///
/// Pure: objects and a clock value in, values out. The rules (status words, durations, GPU counts)
/// are arena's; QUEUING and SUSPENDED are shown for what arena has no word for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "cli/submit/trainer.h"
#include "json/json.h"

namespace muster::cli {

struct Instance {
  std::string name;
  std::string phase;   // RUNNING, PENDING, …: the pod's phase, upper-cased
  std::string status;  // kubectl's word: Running, Error, Completed, Init:0/1, Terminating …
  std::string ip;
  std::string node;     // name, "N/A" when it has none
  std::string node_ip;  // "N/A" when it has none
  bool chief = false;
  std::int64_t gpus = 0;
  Time created;
  Duration age{};
  const json::Value* pod = nullptr;
};

struct Job {
  std::string name;
  std::string ns;
  std::string uid;
  const Trainer* trainer = nullptr;
  std::string status;    // SUCCEEDED FAILED RUNNING QUEUING SUSPENDED PENDING
  std::string priority;  // class name or "N/A"
  std::string queue;
  std::string reason;  // why it failed or waits, from its conditions; may be empty
  Time created;
  Duration age{};
  Duration duration{};
  std::optional<Time> ended;
  std::int64_t requested_gpus = 0;
  std::int64_t allocated_gpus = 0;
  std::string chief;
  std::string tensorboard;          // URL
  std::string tensorboard_problem;  // why nothing answers there; empty when it runs
  std::vector<Instance> instances;
  std::string model_name, model_version, model_source;
  const json::Value* object = nullptr;

  [[nodiscard]] bool finished() const { return status == "SUCCEEDED" || status == "FAILED"; }
};

/// What a job is computed from. All pointers outlive the Job.
struct JobParts {
  const Trainer* trainer = nullptr;
  const json::Value* object = nullptr;
  std::vector<const json::Value*> pods;       // of this job, by name
  const json::Value* launcher_job = nullptr;  // batch/v1 Job of an MPIJob, if any
  const json::Value* tensorboard_service = nullptr;
  const json::Value* tensorboard_pod = nullptr;
  const json::Value* first_node = nullptr;  // for the tensorboard's address
};

Job make_job(const JobParts& parts, Time now);
/// A pod that no training job has, in the words of a job: one instance, no trainer.
Job job_of_pod(const json::Value& pod, Time now);
/// The same for a Job, Deployment and the like with its pods.
Job job_of_workload(const json::Value& workload,
                    const std::vector<const json::Value*>& pods,
                    Time now);

/// True when the pod belongs to the job: arena's labels, the operators' labels, or ownership.
bool belongs(const json::Value& pod, const json::Value& job, std::string_view type);
/// "app/release", "name" …: pods and jobs with a common key belong together; for joining long
/// lists.
std::vector<std::string> keys_of_pod(const json::Value& pod);
std::vector<std::string> keys_of_job(const json::Value& job, std::string_view type);
/// Kubectl's STATUS column for the pod.
std::string pod_status_text(const json::Value& pod);
/// GPUs in the limits of all containers: nvidia.com/gpu, and aliyun.com/gpu when `topology` too.
std::int64_t pod_gpus(const json::Value& pod, bool topology = true);
/// "2026-11-15 02:22:10" in the local zone.
std::string local_time(Time time);

}  // namespace muster::cli
