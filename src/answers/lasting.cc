#include "answers/lasting.h"

#include <algorithm>

namespace muster::answers {

Duration within_limits(const engine::GangView& gang, Duration lasts, Duration age) {
  if (gang.limit.count() > 0) lasts = std::min(lasts, gang.limit);
  if (gang.latest_end && gang.started) lasts = std::min(lasts, gang.latest_end - gang.started);
  return std::max(lasts, age);
}

Drawn Declared::draw(const engine::GangView& gang, Duration age, std::int32_t) const {
  Drawn out;
  if (gang.declared > age) {
    out = {gang.declared, Source::kDeclared, 0, true};
  } else {
    out = {std::max<Duration>(age * 2, std::chrono::hours(1)), Source::kGuessed, 0};
  }
  out.lasts = within_limits(gang, out.lasts, age);
  return out;
}

}  // namespace muster::answers
