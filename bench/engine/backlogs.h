/// Full clusters with many that wait, for what one release costs: who listens to the engine is told
/// as the scheduler tells it (scheduler::Options).
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "bench.h"

namespace muster::bench {

/// CPU time of this thread: what the work costs, whatever else the machine does.
double thread_seconds();
inline double seconds_since(double start) { return thread_seconds() - start; }

/// No reservations and no evictions.
engine::Config plain();

class Backlog {
 public:
  explicit Backlog(const engine::Config& config) : e(config) {}
  virtual ~Backlog() = default;

  /// One pod ends, and what that enables is decided.
  struct Release {
    double us = 0;
    std::size_t binds = 0;
  };
  virtual Release release(Time now) = 0;
  /// One more comes, and is decided about.
  virtual void refill(Time now) = 0;

  engine::Engine e;
  // Null: nobody listens.
  std::function<void(const engine::Event& event)> heard;
  std::function<void(Time now, const engine::Plan& plan)> decided;

 protected:
  void tell(const engine::Event& event) {
    e.apply(event);
    if (heard) heard(event);
  }
  engine::Plan decide(Time now) {
    engine::Plan plan = e.decide(now);
    if (decided) decided(now, plan);
    return plan;
  }
  void add(int nodes, int queues);
  Release release_of(const std::string& pod, Time now, engine::Plan& plan);

  int made_ = 0;
};

/// Pods as large as nodes, all alike, in a thousand queues.
class Deep : public Backlog {
 public:
  Deep(int nodes, int pending, Time begun);
  Release release(Time now) override;
  void refill(Time now) override;
  static constexpr int kQueues = 1000;

 private:
  void submit(int i, Time at);

  std::deque<std::string> running_;
  int refilled_ = 0;
};

/// As clusters are: reservations, pods of every size and gangs, and nobody says how long anything
/// takes. Three in ten of the pods run.
class Busy : public Backlog {
 public:
  /// It has stood like that for twenty minutes at `now`.
  Busy(int nodes, int queues, int pods, Time begun);
  Release release(Time now) override;
  void refill(Time now) override;
  [[nodiscard]] std::size_t running() const { return running_.size(); }

  Time now;

 private:
  int submit(Time at);

  Random random_{3};
  std::vector<std::string> running_;
  int queues_;
};

}  // namespace muster::bench
