/// What T9k's objects mean that several rooms read.
#pragma once

#include <string_view>

#include "base/time.h"

namespace muster::kube {

/// A queue's maxDuration, such as 3w or 2h45m: years, weeks, days, hours, minutes, seconds,
/// milliseconds. Zero, which is no limit, for "", "0" and what cannot be read.
Duration t9k_duration(std::string_view text);

}  // namespace muster::kube
