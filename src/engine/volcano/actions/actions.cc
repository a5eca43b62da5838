#include "engine/volcano/actions/actions.h"

namespace muster::engine::volcano {

void run_action(std::string_view name, Session& session) {
  if (name == "enqueue") enqueue(session);
  if (name == "allocate") allocate(session);
  if (name == "backfill") backfill(session);
  if (name == "preempt") preempt(session);
  if (name == "reclaim") reclaim(session);
  if (name == "gangpreempt") gang_evict(session, false);
  if (name == "gangreclaim") gang_evict(session, true);
}

}  // namespace muster::engine::volcano
