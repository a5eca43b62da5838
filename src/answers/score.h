/// How good forecasts are: a trace is replayed, and now and then what waits is foretold from what is
/// known at that moment alone; when the replay is over, what was said is held against what came.
///
/// Moments: S, the decision at its submission left a job waiting (every so many-th job); L, every two
/// hours three of those that wait. Figures: see Figures; what others would have said at the same
/// moments stands beside it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "answers/figures.h"
#include "answers/shapes.h"
#include "engine/model/model.h"
#include "json/json.h"
#include "sim/policy.h"
#include "sim/trace.h"

namespace muster::answers {

enum class Told : std::uint8_t {
  kAll,   ///< The engine and the forecast are told how long each job takes.
  kNone,  ///< Neither is: both learn.
  kHalf,  ///< Of half of the jobs.
};

struct ScoreSettings {
  Told told = Told::kNone;
  Duration from{}, to{};  ///< Only moments of jobs submitted in [from, to) count; zero: all.
  /// So long before that ranges learn already how often they hold. What came before a crowded time
  /// makes them too wide for it, so none by default.
  Duration warm_up{};
  std::int32_t every = 1;  ///< Only every so many-th moment is scored.
  std::int32_t draws = 40;
  Duration horizon = std::chrono::hours(24 * 7);
  bool baselines = true;
  bool check_harness = true;  ///< Also with true durations and arrivals, which must be exact.
};

struct Scored {
  std::string moments;  ///< "S", "L", "S > 8 GPUs" …
  std::vector<Figures> rows;
};

struct Score {
  std::vector<Scored> sets;
  double soon = 0;  ///< Of those that waited for less than a minute more: share that was told so.
  std::int64_t soon_moments = 0;
  double worst_harness = 0;  ///< Largest error with true durations and arrivals; must be 0.
};

/// `seconds` gives CPU time, for the figures; null: they stay zero.
Score score(const std::vector<sim::Job>& jobs,
            const std::vector<engine::Node>& nodes,
            const sim::Policy& policy,
            const ScoreSettings& settings,
            const std::function<double()>& seconds);

/// As a table for people.
std::string score_table(const Score& score);

json::Value score_json(const Score& score);

/// Names of the rows.
inline constexpr std::string_view kShared = "shared draws";
inline constexpr std::string_view kIndependent = "independent draws";
inline constexpr std::string_view kCalibrated = "independent draws, calibrated";
inline constexpr std::string_view kLastWait = "last wait of its size";
inline constexpr std::string_view kPastWaits = "quantiles of past waits";
inline constexpr std::string_view kOneEstimate = "one course, engine's estimate";
inline constexpr std::string_view kOneMedian = "one course, median of 50";
inline constexpr std::string_view kTrue = "true durations";

}  // namespace muster::answers
