/// What was foretold, when, and why it changed: kept in the records of jobs, for their timelines and
/// for judging forecasts. Said is a job's first forecast, one every two hours of its wait, and each
/// whose middle is more than twice as far away as was said last, or less than half.
///
/// On the loop, a few jobs at a time.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "answers/live/live.h"
#include "answers/records/recorder.h"
#include "base/env.h"
#include "base/gate.h"

namespace muster::answers {

class Sayings {
 public:
  /// `said` is told of each job of which something is kept.
  Sayings(Env& env, Recorder& recorder, std::function<void(const Tracked& job)> said)
      : env_(env), recorder_(recorder), said_(std::move(said)), gate_(env) {}

  /// Keeps what of the outlook is worth keeping.
  Task<void> note(OutlookPtr outlook);
  Task<void> stop();

 private:
  [[nodiscard]] std::string reason_of(const Outlook& outlook,
                                      const Forecast& forecast,
                                      const std::string& ns,
                                      Time since) const;

  Env& env_;
  Recorder& recorder_;
  std::function<void(const Tracked& job)> said_;
  Gate gate_;
};

/// Whether a forecast is worth keeping beside what was said last. Pure.
bool is_news(const std::optional<Foretold>& last, const Forecast& forecast);

}  // namespace muster::answers
