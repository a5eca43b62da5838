/// What the scheduler calls a job that waits, and what is foretold of it.
#pragma once

#include <string>
#include <vector>

#include "portal/topics/topics.h"

namespace muster::portal {

/// Its group and the first of its pods that waits, "ns/name", the likeliest first.
std::vector<std::string> gang_keys(const JobIndex::Entry& entry);

/// Null: nothing is foretold of it, or not yet.
const answers::Forecast* forecast_of(Forecasts& forecasts, const JobIndex::Entry& entry);
const answers::Forecast* forecast_of(const World& world, const JobIndex::Entry& entry);

/// The job of a gang or pod "ns/name", also with a kind and a colon before it; null: none, or this user
/// may not see it.
const JobIndex::Entry* job_of_gang(const World& world, const Visible& visible, std::string key);

}  // namespace muster::portal
