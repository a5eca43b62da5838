/// `muster sim`.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command/command.h"
#include "sim/policy.h"
#include "sim/trace.h"

namespace muster::sim {

/// A trace on which forecasts of starts are to be held against what came.
struct Scoring {
  const std::vector<Job>& jobs;
  const std::vector<engine::Node>& nodes;
  const Policy& policy;
  std::int32_t every = 1;   ///< Only every so many-th moment is scored.
  std::int32_t draws = 20;  ///< Courses of one forecast.
};
/// Gives the figures, as a table for people or as JSON. Whoever can forecast hands it in: this room
/// cannot.
using Score = std::function<std::string(const Scoring& scoring, bool json)>;

command::Command sim_command(Score score);

}  // namespace muster::sim
