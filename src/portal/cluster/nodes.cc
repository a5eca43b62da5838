#include "portal/cluster/nodes.h"

#include <fmt/core.h>

#include <algorithm>

#include "answers/jobs/facts.h"
#include "base/strings.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/portal_names.h"

namespace muster::portal {

std::string_view node_state_name(NodeState state) {
  return state == NodeState::kReady      ? "ready"
         : state == NodeState::kCordoned ? "cordoned"
                                         : "not-ready";
}

NodeFacts node_facts(const json::Value& node) {
  namespace names = kube::names;
  NodeFacts facts;
  facts.name = kube::name_of(node);
  const json::Value& ready = kube::condition(node, "Ready");
  facts.since = millis_at(json::at(ready, "lastTransitionTime"));
  const bool works = json::string_at(ready, "status") == "True";
  facts.state = !works                                         ? NodeState::kNotReady
                : json::bool_at(node, "spec", "unschedulable") ? NodeState::kCordoned
                                                               : NodeState::kReady;
  for (const auto& [name, amount] :
       kube::resource_amounts(json::at(node, "status", "allocatable"))) {
    if (name == "cpu") facts.cpu_milli = amount;
    if (name == "memory") facts.memory = amount;
    if (name == "pods") facts.pods = amount;
    if (name.ends_with("/gpu"))
      facts.gpus = static_cast<std::int32_t>(std::clamp<std::int64_t>(amount, 0, 4096));
  }
  facts.model = kube::label(node, names::kGpuModel);
  for (const std::string_view key : {std::string_view("rack"), names::portal::kRack}) {
    if (facts.rack.empty()) facts.rack = kube::label(node, key);
  }
  if (facts.rack.empty())
    facts.rack = kube::label(node, std::string(names::volcano::kHyperNodeTierPrefix) + "1");
  for (const std::string& one : split_nonempty(kube::annotation(node, names::kGpuUnhealthy), ',')) {
    if (const auto index = parse_int(trim(one)); index && *index >= 0 && *index < 4096)
      facts.bad.push_back(static_cast<std::int32_t>(*index));
  }
  for (const json::Value& taint : json::array_at(node, "spec", "taints")) {
    const std::string_view value = json::string_at(taint, "value");
    facts.taints.push_back(fmt::format("{}{}{}:{}",
                                       json::string_at(taint, "key"),
                                       value.empty() ? "" : "=",
                                       value,
                                       json::string_at(taint, "effect")));
  }
  return facts;
}

void Nodes::begin() {
  if (begun_) return;
  begun_ = true;
  informer_.add_handlers(
      {[this](const client::ObjectPtr& old_object, const client::ObjectPtr& new_object) {
         const std::string name(kube::name_of(new_object ? *new_object : *old_object));
         if (!new_object) {
           nodes_.erase(name);
           ++membership_;
         } else {
           NodeFacts facts = node_facts(*new_object);
           NodeFacts& kept = nodes_[name];
           if (kept.name.empty() || kept.gpus != facts.gpus) ++membership_;
           // Heartbeats change nothing that is shown.
           const bool same = kept.state == facts.state && kept.since == facts.since &&
                             kept.model == facts.model && kept.rack == facts.rack &&
                             kept.gpus == facts.gpus && kept.cpu_milli == facts.cpu_milli &&
                             kept.memory == facts.memory && kept.bad == facts.bad &&
                             kept.taints == facts.taints && kept.name == facts.name;
           if (same) return;
           facts.version = version_ + 1;
           kept = std::move(facts);
         }
         ++version_;
         if (on_change) on_change();
       },
       {}});
  informer_.start();
}

const NodeFacts* Nodes::find(const std::string& name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

}  // namespace muster::portal
