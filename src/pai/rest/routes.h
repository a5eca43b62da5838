/// The groups of routes; each is a file of this folder.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "client/client.h"
#include "pai/cells/cells.h"
#include "pai/people/people.h"
#include "pai/rest/api.h"

namespace muster::pai::rest {

std::vector<Route> login_routes(People& people, std::string version);
std::vector<Route> user_routes(People& people);
std::vector<Route> group_routes(People& people);
std::vector<Route> cluster_routes(People& people, Cells& cells, client::Client& client);

/// 429 with the time to wait.
Refusal too_often(Duration wait);

}  // namespace muster::pai::rest
