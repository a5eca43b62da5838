/// The plugins there are, one file each.
#pragma once

#include <memory>

#include "engine/volcano/plugin.h"

namespace muster::engine::volcano {

using MakePlugin = std::unique_ptr<Plugin>(const VolcanoPlugin& config, Snapshot& snapshot);

MakePlugin make_binpack;
MakePlugin make_capacity;
MakePlugin make_conformance;
MakePlugin make_drf;
MakePlugin make_gang;
MakePlugin make_nodeorder;
MakePlugin make_overcommit;
MakePlugin make_pdb;
MakePlugin make_predicates;
MakePlugin make_priority;
MakePlugin make_proportion;
MakePlugin make_sla;

}  // namespace muster::engine::volcano
