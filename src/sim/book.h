/// What every replay shares: jobs arrive, start and end on a virtual clock, and a book is kept
/// about them. Who decides which job starts, and where, is the derived class's business.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "base/time.h"
#include "sim/replay.h"

namespace muster::sim {

class Book {
 public:
  virtual ~Book() = default;

  /// Until the last job has ended, or nothing more can happen.
  Outcome run(const std::function<void(double)>& progress);

 protected:
  /// The schedulers' clock starts here, so that zero keeps meaning "no time".
  static constexpr Time kStart{1'000'000'000'000};

  struct JobState {
    /// How often it started; a completion of an earlier, evicted run is stale.
    std::int32_t run = 0;
    bool running = false;
    Duration started{};
    Duration left{};  ///< Of its duration, for those that resume.
    std::size_t queue = 0;
  };

  Book(const std::vector<Job>& jobs, const Policy& policy);

  virtual void submit(std::size_t job) = 0;
  /// The job's time is over: what it holds comes free.
  virtual void release(std::size_t job, bool finished) = 0;
  virtual void decide(Duration now) = 0;
  /// Before arrivals are looked at: what else has changed by now.
  virtual void advance(Duration now) { (void)now; }
  /// To be asked again then, though nothing arrives or ends.
  [[nodiscard]] virtual std::optional<Duration> wake() const { return std::nullopt; }
  /// Fills in free and stranded GPUs.
  virtual void measure(Sample& sample) const = 0;

  void start(std::size_t job, Duration now);
  /// Back to the queue; the caller puts it there.
  void evict(std::size_t job, Duration now);
  void use(std::size_t job, std::int64_t gpu_milli);  ///< Negative: given back.
  void sample(Duration now);

  const std::vector<Job>& jobs_;
  const Policy& policy_;
  std::vector<JobState> state_;
  Outcome outcome_;
  std::int64_t waiting_ = 0;

 private:
  struct Completion {
    Duration at{};
    std::size_t job = 0;
    std::int32_t run = 0;
    bool operator>(const Completion& other) const {
      return std::tie(at, job) > std::tie(other.at, other.job);
    }
  };

  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> completions_;
  std::vector<std::int64_t> used_by_queue_;
  std::int64_t used_milli_ = 0;
  Duration last_{};
};

}  // namespace muster::sim
