#include "portal/topics/node_row.h"

#include <algorithm>
#include <set>

namespace muster::portal {

std::vector<JobIndex::OnNode> gpu_owners(const World& world, const NodeFacts& node) {
  std::vector<JobIndex::OnNode> owners(static_cast<std::size_t>(std::max(0, node.gpus)));
  const auto& here = world.jobs.on_node(node.name);
  for (const auto& [pod, on] : here) {
    for (const std::int16_t index : on.task->devices) {
      if (static_cast<std::size_t>(index) < owners.size())
        owners[static_cast<std::size_t>(index)] = on;
    }
  }
  for (const auto& [pod, on] : here) {
    if (!on.task->devices.empty()) continue;
    std::int32_t left = on.task->gpus;
    for (auto& owner : owners) {
      if (left == 0) break;
      if (owner.task != nullptr) continue;
      owner = on;
      --left;
    }
  }
  return owners;
}

json::Value node_row(const World& world, const Visible& visible, const NodeFacts& node) {
  json::Array gpus;
  const auto owners = gpu_owners(world, node);
  for (std::size_t i = 0; i < owners.size(); ++i) {
    const auto& owner = owners[i];
    const bool shown = owner.entry != nullptr && owner.entry->shown && sees(visible, *owner.entry);
    // Somebody is on it, whom this user may not know.
    const bool taken = owner.entry != nullptr;
    gpus.push_back({{"index", i},
                    {"job",
                     shown   ? json::Value(owner.entry->facts.id)
                     : taken ? json::Value("")
                             : json::Value(nullptr)},
                    {"user", shown ? owner.entry->facts.user : ""},
                    {"oppo", taken && owner.task->opportunistic},
                    {"held", false},
                    {"bad",
                     std::find(node.bad.begin(), node.bad.end(), static_cast<std::int32_t>(i)) !=
                         node.bad.end()},
                    {"use", nullptr},
                    {"memoryUsed", nullptr},
                    {"memoryTotal", nullptr}});
  }
  std::int64_t cpu = 0, memory = 0, pods = 0;
  std::set<std::string> vcs;
  for (const auto& [pod, on] : world.jobs.on_node(node.name)) {
    cpu += on.task->cpu_milli;
    memory += on.task->memory;
    ++pods;
    if (!on.entry->facts.vc.empty()) vcs.insert(on.entry->facts.vc);
  }
  json::Array taints, vc_names;
  for (const std::string& taint : node.taints) taints.push_back(json::Value(taint));
  for (const std::string& vc : vcs) vc_names.push_back(json::Value(vc));
  return {{"id", node.name},
          {"state", node_state_name(node.state)},
          {"model", node.model},
          {"rack", node.rack},
          {"vcs", std::move(vc_names)},
          {"gpus", std::move(gpus)},
          {"cpuMilli", {{"used", cpu}, {"total", node.cpu_milli}}},
          {"memoryBytes", {{"used", memory}, {"total", node.memory}}},
          {"pods", {{"used", pods}, {"total", node.pods}}},
          {"taints", std::move(taints)},
          {"since", node.since == 0 ? json::Value(nullptr) : json::Value(node.since)}};
}

}  // namespace muster::portal
