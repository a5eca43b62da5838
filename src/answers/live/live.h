/// Forecasts of a cluster that lives: made when somebody asks, on a copy of the engine and on a
/// worker, and kept for a while, so that many questions cost as much as one.
///
/// On the loop; the courses run on a worker, on a copy of the engine's follower (follower.h). What
/// they cost bounds how often they are made anew: never more than a tenth of a core's time. Where all of
/// them take long, who asks is told what the first ones say, and who asks next what all of them do.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "answers/alternatives.h"
#include "answers/live/follower.h"
#include "answers/shapes.h"
#include "base/env.h"
#include "base/gate.h"
#include "engine/engine.h"

namespace muster::answers {

/// One set of courses, and the copy that they were played from.
struct Outlook {
  Time asked;
  Forecasts forecasts;
  std::shared_ptr<const engine::Engine> copy;
  double cpu_s = 0;
};
using OutlookPtr = std::shared_ptr<const Outlook>;

class Live {
 public:
  struct Options {
    /// The engine that decides; null while there is none.
    std::function<const engine::Engine*()> engine;
    /// As in Follower::Options.
    std::function<Task<void>(std::function<void(engine::Engine)> take)> copy;
    Duration fresh = std::chrono::seconds(5);
    /// Of a core's time, for courses.
    double cpu_share = 0.1;
    /// CPU that one set of courses may take; fewer are played then.
    Duration cpu_most = std::chrono::seconds(2);
    /// The same until there are enough of them for a range. What has been played by `cpu_most` is told.
    Duration cpu_range = std::chrono::seconds(60);
    /// If all courses take longer than this, the first ones answer as soon as they have been played.
    Duration cpu_first = std::chrono::milliseconds(150);
    /// Makes of what the courses gave what is said.
    std::function<void(Forecasts& forecasts, Time asked)> adjust;
    /// Called with each new outlook, when its last course has been played.
    std::function<void(const OutlookPtr&)> made;
  };
  Live(Env& env, Options options);

  /// No older than `fresh`, or as old as what they cost demands. Fails while nothing is decided here.
  Task<Result<OutlookPtr>> outlook();
  /// What would start the gang now, tried on the outlook's copy.
  Task<std::vector<Alternative>> alternatives(OutlookPtr outlook, AlternativesAsk ask);
  /// Questions of the moment: `work` gets an engine of its own, on a worker, and the time that it
  /// shows. CPU time of it counts as that of forecasts.
  Task<Result<void>> look(std::function<void(engine::Engine& engine, Time now)> work);

  Task<void> stop();
  [[nodiscard]] Follower& follower() { return follower_; }

  // For metrics.
  [[nodiscard]] double cpu_s() const { return cpu_s_; }
  [[nodiscard]] const OutlookPtr& last() const { return last_; }

 private:
  /// What is played, where and for how long.
  struct Playing;

  Task<Result<OutlookPtr>> make();
  Task<void> play_on(std::shared_ptr<Playing> playing);
  /// From now on this is what there is to tell.
  OutlookPtr show(Playing& playing);
  void finish(const OutlookPtr& whole);
  /// On a worker: whole engines may go with them.
  Task<void> drop(OutlookPtr before, std::shared_ptr<Playing> done);

  Env& env_;
  Options options_;
  Follower follower_;
  OutlookPtr last_;
  Duration last_made_{};
  Duration rests_{};  // how long what was made must do
  bool making_ = false, stopped_ = false;
  const std::shared_ptr<std::atomic<bool>> ended_ =
      std::make_shared<std::atomic<bool>>(false);  // for workers
  bool playing_on_ = false;                        // behind an outlook that can be told already
  std::unique_ptr<Signal> made_;
  double cpu_s_ = 0;
  Gate gate_;
};

/// CPU time of this thread.
double thread_cpu_s();

}  // namespace muster::answers
