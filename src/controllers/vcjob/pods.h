/// The pods, services, host lists and secrets of a Volcano Job.
#pragma once

#include "controllers/common/plan.h"
#include "controllers/vcjob/spec.h"

namespace muster::controllers::vcjob {

std::string group_name(const json::Value& job);
std::string pod_name(const json::Value& job, const TaskSpec& task, int index);
json::Value pod_of(const json::Value& job, const JobSpec& spec, const TaskSpec& task, int index);
/// What the plugins need before the pods: the headless service, the lists of hosts and the SSH key,
/// where they are missing.
void add_plugin_objects(Plan& plan, const json::Value& job, const JobSpec& spec, const View& view);

}  // namespace muster::controllers::vcjob
