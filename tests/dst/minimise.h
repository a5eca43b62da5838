/// Makes a failing run small: leaves out as many steps as possible while it still fails in the same
/// way, and prints what is left.
#pragma once

#include <cstdint>

#include "world.h"

namespace muster::dst {

void minimise(std::uint64_t seed, const Failure& failure);

}  // namespace muster::dst
