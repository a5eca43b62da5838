/// T9k MPIJob, batch.tensorstack.dev/v1beta1: one launcher pod that runs mpirun over ssh, workers
/// that run sshd.
#pragma once

#include <string>
#include <vector>

#include "controllers/common/plan.h"

namespace muster::controllers::t9k {

/// The argument vector of the one mpirun, from the job's fields.
std::vector<std::string> mpirun_arguments(const json::Value& job);
/// How many processes each worker runs, as the arguments ask for it.
int slots_per_worker(const json::Value& job);

Plan plan(const json::Value& job, const View& view, const Settings& settings, Time now);

}  // namespace muster::controllers::t9k
