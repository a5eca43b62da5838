/// What each tenant used, deserved and waited for, over time: every 10 s for 6 hours, every 5 minutes
/// for 30 days. Kept in a file, so that a restart leaves no hole but its own. On the loop.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/env.h"
#include "portal/options.h"
#include "portal/topics/tenants.h"

namespace muster::portal {

struct Sample {
  float used = 0, oppo = 0, guarantee = 0, deserved = 0, capability = -1, waiting = 0;
};
struct SampleRow {
  std::int64_t at = 0;  // milliseconds since 1970
  std::map<std::string, Sample> tenants;
};

/// Fine rows, and coarse ones for what is older.
class SampleShelf {
 public:
  void add(SampleRow row);
  /// Those of [from, to), at most one for each `step`.
  [[nodiscard]] std::vector<const SampleRow*> between(std::int64_t from,
                                                      std::int64_t to,
                                                      std::int64_t step) const;
  [[nodiscard]] std::string text() const;
  /// A line of the file; wrong ones are passed over.
  void read(std::string_view line);

  static constexpr std::int64_t kFineMs = 10'000, kCoarseMs = 300'000;
  static constexpr std::int64_t kFineKeptMs = 6 * 3600 * 1000LL,
                                kCoarseKeptMs = 30 * 86400 * 1000LL;

 private:
  std::deque<SampleRow> fine_, coarse_;
};
std::string line_of(const SampleRow& row);

class Samples {
 public:
  /// `tenants` empty: nothing is sampled.
  Samples(Env& env, std::function<std::vector<TenantFacts>()> tenants, std::string file);
  void start();
  void stop() { timer_.reset(); }
  [[nodiscard]] const SampleShelf& shelf() const { return shelf_; }

 private:
  void take();
  void next();
  void write(std::string text, bool whole);

  Env& env_;
  std::function<std::vector<TenantFacts>()> tenants_;
  std::string file_;
  SampleShelf shelf_;
  std::unique_ptr<Timer> timer_;
  int since_written_ = 0;
};

}  // namespace muster::portal
