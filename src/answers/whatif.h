/// A change tried on a copy of the cluster: the world as it is and the world with the change are
/// played with the same draws, so that what differs comes from the change and not from luck. Pure:
/// nothing is written, and equal questions about equal states have equal answers.
#pragma once

#include <vector>

#include "answers/lasting.h"
#include "answers/shapes.h"
#include "engine/engine.h"

namespace muster::answers {

/// `ask.jobs`: whose starts are shown; empty: all that wait. Jobs that move by less than a tenth and
/// five minutes are left out.
WhatIf what_if(const engine::Engine& engine,
               Time now,
               const Lasting& lasting,
               const std::vector<Change>& changes,
               const Ask& ask);

}  // namespace muster::answers
