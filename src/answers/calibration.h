/// Ranges that learn how often they hold.
///
/// What was said is judged when the job starts, in x = ln(60 s + wait): the range is widened by `a`
/// below and `b` above, and after each judgement both move a step, up when the start lay outside on
/// that side and down when not, so that in the long run one start in ten lies below and one above.
/// Kept apart by what the answer rested on and by how long a wait was foretold. The middle is left
/// alone.
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
  static constexpr std::int64_t kJudgedForUse = 20;

  /// The range as it is to be said at `now`. One that rests on nothing, or has no middle, stays.
  [[nodiscard]] Quantiles widen(Basis basis, Time now, const Quantiles& range) const;
  /// Something that was said at `said`, widened already, has started. Absent quantiles lay beyond the
  /// horizon.
  void judge(Basis basis, Time said, const Quantiles& range, Time started);

  [[nodiscard]] const Side& side(Basis basis, std::size_t band) const {
    return sides_[basis == Basis::kKnown ? 1 : 0][band];
  }
  /// To take up again what was kept.
  void set(Basis basis, std::size_t band, const Side& side) {
    sides_[basis == Basis::kKnown ? 1 : 0][band] = side;
  }
  static std::size_t band_of(Time now, const Quantiles& range);

 private:
  std::array<std::array<Side, kBands>, 2> sides_{};  ///< Learned, known.
};

}  // namespace muster::answers
