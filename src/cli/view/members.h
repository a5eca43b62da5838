/// What the tables read of an object. Lists ask for these members only: with a thousand jobs and
/// their pods, sending and parsing the rest would be most of the time a command takes.
#pragma once

#include "json/pick.h"

namespace muster::cli {

/// How much of jobs and pods a command shows: a line of a table, or everything that is known of
/// each instance.
enum class Detail { kRow, kWhole };

/// `type` is the canonical one: Volcano's jobs have their times elsewhere.
const json::Picks& job_members(Detail detail, std::string_view type);
const json::Picks& pod_members(Detail detail);
/// Pods as the GPU tables of nodes see them.
const json::Picks& node_pod_members();
const json::Picks& node_members();
/// The launcher Jobs of MPIJobs, the services of tensorboards, and the ConfigMaps that say how GPUs
/// are linked.
const json::Picks& launcher_job_members();
const json::Picks& service_members();
const json::Picks& topology_members();

}  // namespace muster::cli
