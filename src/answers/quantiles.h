/// Quantiles of what courses say.
#pragma once

#include <cstddef>
#include <vector>

#include "answers/shapes.h"
#include "base/time.h"

namespace muster::answers {

/// Of so many draws, of which those that are not among the values lie beyond the horizon. Fewer than
/// eight give a middle and no range, unless they are `certain`.
Quantiles quantiles(std::vector<Time> values, std::size_t draws, bool certain = false);

}  // namespace muster::answers
