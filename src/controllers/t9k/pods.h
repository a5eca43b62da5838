/// The objects of a T9k MPIJob.
#pragma once

#include "controllers/common/plan.h"

namespace muster::controllers::t9k {

/// The job in the shape that everything here reads. The later manual's (`mpiConfig` and
/// `replicaSpecs`) is taken apart into it; a job of the usual shape is returned as it is.
json::Value usual_shape(const json::Value& job);

std::string launcher_name(const json::Value& job);
std::string worker_name(const json::Value& job, int index);
int worker_count(const json::Value& job);

/// `resumed`: the job comes back from a pause, so resumeSpecs apply.
json::Value launcher_pod(const json::Value& job, bool resumed);
json::Value worker_pod(const json::Value& job, int index, bool resumed);
json::Value hostfile_map(const json::Value& job);
json::Value pod_service(const json::Value& job);
json::Value ssh_secret(const json::Value& job);
/// Null without t9kScheduler.
json::Value pod_group(const json::Value& job);

}  // namespace muster::controllers::t9k
