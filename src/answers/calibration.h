/// Ranges that learn how often they hold.
///
/// What was said is judged when the job starts, in x = ln(60 s + wait): the range is widened by `a`
/// below and `b` above, and after each judgement both move a step, up when the start lay outside on
/// that side and down when not, so that in the long run one start in ten lies below and one above.
/// Kept apart by what the answer rested on, by how long a wait was foretold, and by whether the job
/// had just come: those that are asked about later are those that were not lucky, and what is said of
/// them errs otherwise. The middle is left alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "answers/shapes.h"
#include "base/time.h"

namespace muster::answers {

class Calibration {
 public:
  struct Side {
    double below = 0;  ///< In x.
    double above = 0;
    std::int64_t judged = 0;
    std::int64_t held = 0;

    bool operator==(const Side&) const = default;
  };
  static constexpr std::size_t kBands = 3;  ///< Foretold waits below 1 h, below 8 h, longer.
  static constexpr std::size_t kAges = 2;   ///< It came in the last 5 minutes, or earlier.
  static constexpr std::int64_t kJudgedForUse = 20;

  /// What is said, when, and of a job that has waited for how long.
  struct Said {
    Basis basis = Basis::kNone;
    Time at;
    Duration waited{};
    Quantiles range;
  };
  /// The range as it is to be said. One that rests on nothing, or has no middle, stays.
  [[nodiscard]] Quantiles widen(const Said& said) const;
  /// Something that was said, widened already, has started. Absent quantiles lay beyond the horizon.
  void judge(const Said& said, Time started);

  [[nodiscard]] const Side& side(const Said& said) const {
    return sides_[said.basis == Basis::kKnown ? 1 : 0][age_of(said)][band_of(said)];
  }

 private:
  static std::size_t band_of(const Said& said);
  static std::size_t age_of(const Said& said);

  std::array<std::array<std::array<Side, kBands>, kAges>, 2> sides_{};  ///< Learned, known.
};

}  // namespace muster::answers
