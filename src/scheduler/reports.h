/// The texts and patches that tell people what the scheduler decided. Pure.
#pragma once

#include <string>
#include <string_view>

#include "base/time.h"
#include "engine/model/plan.h"
#include "engine/model/resources.h"
#include "json/json.h"

namespace muster::scheduler {

/// What a waiting pod shows in PodScheduled and FailedScheduling. `pod_in_group`: the pod waits
/// with its gang.
std::string wait_message(const engine::Refusal& refusal, bool pod_in_group);
/// Strategic merge patch for pods/status: PodScheduled=False. Reason Unschedulable, or
/// SchedulerError for a bad group.
json::Value unschedulable_patch(const engine::Refusal& refusal,
                                std::string_view message,
                                std::int64_t generation,
                                Time now);
/// Strategic merge patch for pods/status of a victim.
json::Value disruption_patch(std::string_view scheduler, Time now);
/// The eviction was refused: the pod is nobody's victim.
json::Value spared_patch();
json::Value nomination_patch(std::string_view node);
/// "0,2"
std::string indexes_text(const std::vector<std::int32_t>& indexes);
/// The Binding object; GPU indices travel as its annotation, which the API server puts on the pod.
json::Value binding(const engine::Bind& bind, std::string_view name);
/// The same as text.
std::string binding_text(const engine::Bind& bind, std::string_view name);
/// `by default/critical-worker-0 on node 192.168.0.23`: what a victim's Preempted event says.
std::string preempted_message(const engine::Evict& evict);
/// Volcano's PodGroup condition about a gang that waits or has been placed.
json::Value volcano_condition(bool scheduled,
                              std::string_view reason,
                              std::string_view message,
                              Time now);
/// An amount as a quantity: cpu comes in milli, the rest in units.
std::string amount_text(const engine::Amount& amount);

struct GroupCounts {
  int pending = 0, running = 0, succeeded = 0, failed = 0;
  bool operator==(const GroupCounts&) const = default;
};

}  // namespace muster::scheduler
