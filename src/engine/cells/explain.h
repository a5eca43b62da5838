/// Why a gang waits, in cells: what it needs, what its virtual cluster has, who sits there.
#pragma once

#include <string>

#include "engine/cells/cells.h"
#include "engine/cells/groups.h"

namespace muster::engine::cells {

/// Looks at the nodes of the views; not for hot paths. Empty: there is nothing to say.
[[nodiscard]] std::string explain(const Cells& cells, const Groups& groups, const PodSpec& spec);

/// Whether the gang would find room in its virtual cluster's cells (opportunistic: anywhere) if
/// nobody else used them.
[[nodiscard]] bool could_hold(const Cells& cells, const PodSpec& spec);

}  // namespace muster::engine::cells
