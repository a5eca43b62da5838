/// What the engine counts along the way, against a count from nothing.
#pragma once

#include <optional>
#include <string>

#include "engine/engine.h"
#include "model.h"

namespace muster::dst {

/// The model's own sums, what the engine believes of every node and every queue, and its lists of
/// those that wait: what is wrong, or nothing.
std::optional<std::string> miscounted(const Model& model, const engine::Engine& engine);

}  // namespace muster::dst
