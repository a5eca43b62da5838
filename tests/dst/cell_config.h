/// Random clusters of cells, as HiveD's configuration file describes them.
#pragma once

#include "base/random.h"
#include "engine/model/cell_config.h"

namespace muster::dst {

/// A random forest of cells, split among virtual clusters so that it fits (mostly).
engine::cells::Config random_config(Random& random, bool large);
/// The same with something changed: a share moved, a node renamed, a virtual cluster gone or grown.
engine::cells::Config changed_config(const engine::cells::Config& config, Random& random);

}  // namespace muster::dst
