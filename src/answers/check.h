/// What would become of a job that is submitted now: decided by the engine on a copy, and tried no
/// further than that. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/alternatives.h"
#include "answers/draft.h"
#include "answers/shapes.h"
#include "engine/engine.h"

namespace muster::answers {

enum class Fate : std::uint8_t { kStarts, kEvicts, kWaits, kNever, kRefused };
/// "starts" (also by evicting), "waits", "never", "refused".
std::string_view fate_name(Fate fate);

struct Decision {
  Fate fate = Fate::kWaits;
  /// One sentence, without a full stop; where something of it waits, the refusal's follows.
  std::string text;
  bool waits = false;
  std::int32_t tasks = 0;
  std::int64_t gpu_milli = 0;
  std::vector<Seat> placement;
  std::vector<std::string> victims;  ///< Keys of gangs.
  Forecast forecast;                 ///< Of the first part of it that waits.
  std::vector<Alternative> alternatives;
  Time at;
  std::uint64_t revision = 0;  ///< 0: nobody asked for it.
};

struct CheckAsk {
  Asker asker;
  bool alternatives = true;
  bool forecast = true;
  bool revision = true;  ///< Takes a look at all of the state.
  Duration horizon = std::chrono::hours(24 * 7);
  std::function<bool()> go_on;  ///< Asked before each trial and course; null: always.
};

/// `engine` is the asker's own: the job is submitted to it. A job that is refused or idle is not.
Decision check(engine::Engine& engine, Time now, const Draft& draft, const CheckAsk& ask);

}  // namespace muster::answers
