/// Keeps lists that are sorted by start in the order in which what waits is expected to start. The
/// rows of a hundred thousand jobs are looked at in small steps, so that they do not hold the loop,
/// and only for as long as somebody looks at such a list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/env.h"
#include "portal/cluster/forecasts.h"
#include "portal/jobs/index.h"

namespace muster::portal {

class Starts {
 public:
  Starts(Env& env, JobIndex& jobs, Forecasts& forecasts)
      : env_(env), jobs_(jobs), forecasts_(forecasts) {}

  /// Somebody looks: if there are forecasts that the order does not show yet, it soon will. A few
  /// thousand rows are in order at once.
  void want();
  void stop();

  std::function<void()> on_change;

 private:
  void step();

  Env& env_;
  JobIndex& jobs_;
  Forecasts& forecasts_;
  std::unique_ptr<Timer> timer_;
  std::vector<Ahead> ahead_;            // of the rows that have been looked at
  std::size_t next_ = 0;                // the row after those
  std::uint64_t since_ = 0;             // version of the table when the first was looked at
  std::uint64_t doing_ = 0, done_ = 0;  // versions of the forecasts
  bool stopped_ = false;
};

}  // namespace muster::portal
