/// When what waits will start: the engine itself, played forward in a number of courses that differ
/// in how long work lasts.
///
/// One set of courses answers for all that wait. Pure: the same engine, durations and question give
/// the same answer, and the engine is left as it was.
#pragma once

#include <cstdint>
#include <memory>

#include "answers/lasting.h"
#include "answers/shapes.h"
#include "base/time.h"
#include "engine/engine.h"

namespace muster::answers {

/// The courses of one question, played a few at a time: what some of them say can be told while the
/// others are played. On any thread, one at a time; after the construction the engine may go on.
class Courses {
 public:
  /// The durations must outlive it.
  Courses(const engine::Engine& engine, Time now, const Lasting& lasting, Ask ask);
  ~Courses();
  Courses(const Courses&) = delete;
  Courses& operator=(const Courses&) = delete;

  /// Until so many have been played in all, or until Ask::go_on ends it.
  void play(std::int32_t draws);
  [[nodiscard]] std::int32_t played() const;
  /// All that were asked for have been played, or none will be any more.
  [[nodiscard]] bool over() const;
  /// What those that have been played say.
  [[nodiscard]] Forecasts told() const;

 private:
  class Played;
  std::unique_ptr<Played> played_;
};

/// For the jobs asked about; those that are unknown or do not wait say so.
Forecasts forecast_all(const engine::Engine& engine,
                       Time now,
                       const Lasting& lasting,
                       const Ask& ask);

/// For the first of the jobs asked about.
Forecast forecast(const engine::Engine& engine, Time now, const Lasting& lasting, const Ask& ask);

}  // namespace muster::answers
