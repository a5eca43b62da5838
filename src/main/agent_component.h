/// The node agent as a component of the embedded cluster.
#pragma once

#include <memory>

#include "main/components.h"

namespace muster {

std::unique_ptr<Component> make_agent_component(ComponentContext& context);

}  // namespace muster
