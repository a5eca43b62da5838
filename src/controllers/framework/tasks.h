/// The tasks of a Framework's attempt: each is tried until its retry policy has had enough.
#pragma once

#include <cstdint>
#include <string>

#include "controllers/framework/look.h"

namespace muster::controllers::framework {

/// Brings the lists of tasks in step with the spec: new ones are added, those beyond taskNumber are
/// marked for deletion, and forgotten once they have ended.
void match_tasks(Look& look);

/// One step of every task. `ending` is not 0 when the attempt is over: whatever still runs is stopped
/// with that code.
void step_tasks(Look& look, std::int64_t ending);

/// Stops only the tasks whose pods have no node yet.
void stop_waiting_tasks(Look& look, std::int64_t ending);

struct Counts {
  std::int64_t tasks = 0, completed = 0, running = 0;
};
Counts count_tasks(const json::Value& attempt_status);

}  // namespace muster::controllers::framework
