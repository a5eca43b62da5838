/// What records teach an engine that was not there: how long the runs of a job took. An engine that
/// saw them itself learned the same. Pure.
#pragma once

#include <vector>

#include "answers/records/record.h"
#include "engine/model/event.h"

namespace muster::answers {

/// The runs that were over before that time, the oldest first.
std::vector<engine::PastRun> past_runs(const Record& record, Time before);

}  // namespace muster::answers
