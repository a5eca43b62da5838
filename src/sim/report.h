/// What a simulation found, as a table, as JSON and as one HTML page with charts.
#pragma once

#include <string>
#include <vector>

#include "sim/replay.h"

namespace muster::sim {

std::string table(const std::vector<Summary>& rows);
std::string to_json(const std::vector<Outcome>& outcomes);
/// One file, no scripts, no links: utilisation and waiting jobs over time, waiting-time
/// distribution, share of each tenant, stranded GPUs.
std::string to_html(const std::vector<Outcome>& outcomes);

}  // namespace muster::sim
