#include "main/components.h"

#include "main/scheduler_component.h"

namespace muster {

std::vector<std::unique_ptr<Component>> make_components(ComponentContext& context) {
  std::vector<std::unique_ptr<Component>> components;
  if (!context.without.contains("scheduler")) components.push_back(make_scheduler_component(context));
  return components;
}

}  // namespace muster
