/// What a simulation compares: the engine's settings and what the engine is told.
///
/// Policies have a name ("backfill") or come from a YAML file with one or several of them;
/// docs/simulate.md lists the keys.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/model/config.h"
#include "engine/model/model.h"

namespace muster::sim {

/// What the size of a virtual cluster in a quota table means for its queue.
enum class Quota : std::uint8_t {
  kDeserved,    ///< Idle GPUs of others may be borrowed; they are taken back by reclaim.
  kGuarantee,   ///< Kept for the queue even while it is idle; more may be borrowed.
  kCapability,  ///< A hard limit.
};

struct Policy {
  std::string name;
  engine::Config engine;
  engine::BackfillMode backfill = engine::BackfillMode::kReservation;
  /// The engine sees each job's duration; otherwise it learns from those that ended.
  bool durations_known = true;
  bool resume = false;  ///< A preempted job keeps its progress (it checkpoints).
  /// Each queue of the trace is a queue of the engine; otherwise one queue for all.
  bool tenants = false;
  Quota quota = Quota::kDeserved;
  std::vector<engine::Queue> queues;  ///< Settings of single queues, by name.
};

/// "fifo", "skip", "backfill", "backfill-unknown", "spread", "fragmentation".
Result<Policy> named_policy(std::string_view name);
std::vector<std::string> policy_names();

/// The policies of a file: `policies:` with a list, or one policy's keys at the top. Errors name
/// the policy and the key.
Result<std::vector<Policy>> parse_policies(std::string_view yaml);

/// The same for a cluster that runs: one policy, without what only a simulation can be told. Its
/// name may be left out.
Result<Policy> parse_cluster_policy(std::string_view yaml);

}  // namespace muster::sim
