/// How good what was foretold turned out to be, and what that teaches: ranges are widened by how often
/// earlier ones held (calibration.h).
///
/// Of each job its first forecast counts, and after that one every two hours; they are judged when it
/// starts, as its record says. Pure: the caller finds the records.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "answers/calibration.h"
#include "answers/figures.h"
#include "answers/records/record.h"
#include "answers/shapes.h"

namespace muster::answers {

/// What was said on one basis, against what came.
struct Judged {
  Tally tally;
  std::int64_t unanswered = 0;
};
/// All that was said before the runs of a record, by basis, as a replay would be scored.
void judge_by_basis(const Record& record, std::map<std::string, Judged>& by_basis);

class Accuracy {
 public:
  /// The ranges as they are to be said.
  void widen(Forecasts& forecasts, Time asked) const;

  /// Something was said of the job with this uid: it will be judged.
  void said(std::string uid) { open_.insert(std::move(uid)); }
  /// It has begun or ended, or may have.
  void turned(const std::string& uid) {
    if (open_.contains(uid)) turned_.insert(uid);
  }
  /// Judges those of them that have started; absent: nobody knows it any more. Those that only wait,
  /// a hundred thousand perhaps, cost nothing.
  void judge_started(const std::function<std::optional<Record>(const std::string& uid)>& find);
  /// Judges all that was said before the runs of a record.
  void judge(const Record& record);

  [[nodiscard]] const Calibration& calibration() const { return calibration_; }
  [[nodiscard]] std::int64_t judged() const { return judged_; }
  /// The median error of the middle of what was said last, as a share of the wait; zero while there is
  /// none.
  [[nodiscard]] double error() const;
  /// The share of starts inside what was said; zero while nothing was judged.
  [[nodiscard]] double holds() const {
    return judged_ == 0 ? 0 : static_cast<double>(held_) / static_cast<double>(judged_);
  }

 private:
  void judge_run(const Record& record, std::size_t run);

  Calibration calibration_;
  std::set<std::string> open_;    // of jobs that wait; by uid
  std::set<std::string> turned_;  // those of them to be looked at
  std::int64_t judged_ = 0, held_ = 0;
  static constexpr std::size_t kErrorsMax = 200;
  std::deque<double> errors_;  // the newest last
};

}  // namespace muster::answers
