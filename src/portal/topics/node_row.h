/// A node as the portal shows it. Pure but for what it reads.
#pragma once

#include "portal/topics/topics.h"

namespace muster::portal {

/// Who is on each GPU of a node, by index: what scheduler and agent wrote on the pods. Pods that say
/// no index take the free ones from the lowest.
std::vector<JobIndex::OnNode> gpu_owners(const World& world, const NodeFacts& node);
/// NodeRow of web/src/shapes/cluster.ts.
json::Value node_row(const World& world, const Visible& visible, const NodeFacts& node);

}  // namespace muster::portal
