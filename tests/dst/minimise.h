/// Makes a failing run small: leaves out as many steps as possible while it still fails in the same
/// way, and prints what is left.
#pragma once

#include "world.h"

namespace muster::dst {

void minimise(const Run& failed, const Failure& failure);

}  // namespace muster::dst
