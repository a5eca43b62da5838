/// A trace as a course: its jobs arrive at an engine that begins with empty nodes, and last as long as
/// the trace says. It can be stopped at any moment, asked, copied and played on.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/course.h"
#include "sim/policy.h"
#include "sim/trace.h"

namespace muster::sim {

class TraceWorld : public Course {
 public:
  /// The trace begins at this time, so that zero keeps meaning "no time".
  static constexpr Time kBegin{1'000'000'000'000};

  /// The jobs must outlive it. `told`: does the engine know how long the job takes?
  TraceWorld(const std::vector<Job>& jobs,
             const std::vector<engine::Node>& nodes,
             const Policy& policy,
             std::function<bool(std::size_t)> told);
  /// As far as the other one is; each goes on for itself.
  TraceWorld(const TraceWorld& other) = default;

  [[nodiscard]] const std::vector<Job>& jobs() const { return jobs_; }
  /// Gangs are called as their jobs are.
  [[nodiscard]] std::size_t job_named(std::string_view name) const;

 protected:
  Duration lasts(Ix gang, Duration age) override;
  [[nodiscard]] std::optional<Time> next_change() const override;
  void change() override;

  [[nodiscard]] std::size_t job_of(Ix gang) const { return job_named(view(gang).key); }
  /// Has yet to arrive.
  [[nodiscard]] std::size_t next_job() const { return next_; }

 private:
  void submit(std::size_t job);

  const std::vector<Job>& jobs_;
  std::string queue_;  ///< Of all jobs; empty: each has its own.
  std::string device_;
  std::function<bool(std::size_t)> told_;
  std::shared_ptr<const std::unordered_map<std::string, std::size_t>> by_name_;
  std::size_t next_ = 0;
};

}  // namespace muster::sim
