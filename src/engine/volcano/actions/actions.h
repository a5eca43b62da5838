/// Volcano's actions, one file each, in its own order of steps.
#pragma once

#include <string_view>

#include "engine/volcano/session.h"

namespace muster::engine::volcano {

/// Which Pending groups become Inqueue.
void enqueue(Session& session);
/// Places groups that are let in.
void allocate(Session& session);
/// Best-effort pods only.
void backfill(Session& session);
/// Room for starving groups at the cost of others in the same queue; then inside each group.
void preempt(Session& session);
/// Room for starving groups of queues below their due, at the cost of other queues.
void reclaim(Session& session);
/// gangpreempt and, across queues, gangreclaim: room for whole groups.
void gang_evict(Session& session, bool across_queues);

/// The action of that name; nothing when there is none.
void run_action(std::string_view name, Session& session);

}  // namespace muster::engine::volcano
