/// When what waits will start: the engine itself, played forward in a number of courses that differ
/// in how long work lasts.
///
/// One set of courses answers for all that wait. Pure: the same engine, durations and question give
/// the same answer, and the engine is left as it was.
#pragma once

#include <string>

#include "answers/lasting.h"
#include "answers/shapes.h"
#include "base/time.h"
#include "engine/engine.h"

namespace muster::answers {

/// For the jobs asked about; those that are unknown or do not wait say so.
Forecasts forecast_all(const engine::Engine& engine,
                       Time now,
                       const Lasting& lasting,
                       const Ask& ask);

/// For the first of the jobs asked about.
Forecast forecast(const engine::Engine& engine, Time now, const Lasting& lasting, const Ask& ask);

}  // namespace muster::answers
