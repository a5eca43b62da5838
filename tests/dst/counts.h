/// Compares what the engine counts incrementally with a count from scratch.
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
