/// How long gangs last in the courses of a forecast. Pure: the same draw of the same gang is always
/// the same.
#pragma once

#include <cstdint>

#include "base/time.h"
#include "engine/model/views.h"

namespace muster::answers {

/// Whose word a duration is.
enum class Source : std::uint8_t { kGuessed, kLearned, kDeclared };

struct Drawn {
  Duration lasts{};  ///< In all, from its start.
  Source source = Source::kGuessed;
  std::int32_t runs = 0;  ///< Ended runs that it was learned from.
  bool certain = false;   ///< The same in every course.
};

class Lasting {
 public:
  virtual ~Lasting() = default;

  /// In course number `draw`, of a gang that has run for `age` (zero: it has yet to start).
  [[nodiscard]] virtual Drawn draw(const engine::GangView& gang,
                                   Duration age,
                                   std::int32_t draw) const = 0;
};

/// What owners declared, to the letter; without a word it lasts as long again as it has, at least an
/// hour.
class Declared : public Lasting {
 public:
  [[nodiscard]] Drawn draw(const engine::GangView& gang,
                           Duration age,
                           std::int32_t draw) const override;
};

/// No later than its limits allow: its own, and its queue's for a gang that began then.
Duration within_limits(const engine::GangView& gang, Duration lasts, Duration age);

}  // namespace muster::answers
