/// Why a job, or a pod without one, is where it is, from what the scheduler and the controllers
/// wrote down. Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/view/job.h"

namespace muster::cli {

struct ExplainSources {
  const Job* job = nullptr;
  std::vector<const json::Value*> groups;  // PodGroups of the job
  std::vector<const json::Value*> events;  // about the job, its pods and groups; oldest first
  const json::Value* queue = nullptr;
  std::vector<const Job*> others;  // jobs of the cluster and pods without one, for a job that
                                   // waits: who has what it waits for
  std::string program = "muster";  // how hints name the program
};
std::string explain_text(const ExplainSources& sources, Time now);

}  // namespace muster::cli
