/// A container's own list of system calls: a profile in the format of the Open Container Initiative,
/// as `seccompProfile: {type: Localhost}` names one. Pure.
#pragma once

#include <linux/filter.h>

#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::agent::process {

/// The filter that the profile means for this processor. Calls that it does not have are passed
/// over, as profiles are written for many. Of several rules for one call the first that fits counts.
Result<std::vector<sock_filter>> filter_of_profile(std::string_view text);

}  // namespace muster::agent::process
