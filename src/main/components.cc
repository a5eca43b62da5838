#include "main/components.h"

#include "main/agent_component.h"
#include "main/controllers_component.h"
#include "main/scheduler_component.h"

namespace muster {

std::vector<std::unique_ptr<Component>> make_components(ComponentContext& context) {
  std::vector<std::unique_ptr<Component>> components;
  if (!context.without.contains("scheduler"))
    components.push_back(make_scheduler_component(context));
  if (!context.without.contains("controllers"))
    components.push_back(make_controllers_component(context));
  if (!context.without.contains("agent")) components.push_back(make_agent_component(context));
  return components;
}

}  // namespace muster
