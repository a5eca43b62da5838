/// When a job starts, in words: what `when` and `explain` say of a forecast. Pure.
#pragma once

#include <string>

#include "base/time.h"
#include "json/json.h"

namespace muster::cli {

/// A moment to come, as exact as it can be told: minutes below two hours, tens of minutes below a
/// day, hours above. "11:05", "Tue 09:00", "2026-12-01 09:00".
std::string moment_text(const json::Value& time, Time now);
/// "10:20 to 14:40"; "-" when nothing is told. What lies beyond the horizon is "later".
std::string range_text(const json::Value& start, Time now);
/// The two parts of `explain`: when it starts, and what would start it now. Empty without an answer.
std::string starts_part(const json::Value& forecast, Time now);

/// What would become of a job that is not submitted: the whole story of a decision. `what` is how the
/// job is called.
std::string decision_text(const json::Value& decision, const std::string& what, Time now);

}  // namespace muster::cli
