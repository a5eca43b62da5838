/// The nodes of the cluster as the portal shows them, from an informer. On the loop.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "client/informer.h"
#include "portal/jobs/row.h"

namespace muster::portal {

enum class NodeState : std::uint8_t { kReady, kCordoned, kNotReady };
std::string_view node_state_name(NodeState state);

struct NodeFacts {
  std::string name, model, rack;
  NodeState state = NodeState::kNotReady;
  Millis since = 0;  // of its state
  std::int32_t gpus = 0;
  std::int64_t cpu_milli = 0, memory = 0, pods = 0;
  std::vector<std::int32_t> bad;
  std::vector<std::string> taints;
  std::uint64_t version = 0;
};
NodeFacts node_facts(const json::Value& node);

class Nodes {
 public:
  explicit Nodes(client::Informers& informers)
      : informer_(informers.get(client::resources::kNodes)) {}
  void begin();
  [[nodiscard]] const std::map<std::string, NodeFacts>& all() const { return nodes_; }
  [[nodiscard]] const NodeFacts* find(const std::string& name) const;
  [[nodiscard]] client::ObjectPtr object(const std::string& name) const {
    return informer_.find(name);
  }
  [[nodiscard]] std::uint64_t version() const { return version_; }
  /// Grows when a node comes or goes.
  [[nodiscard]] std::uint64_t membership() const { return membership_; }
  std::function<void()> on_change;

 private:
  client::Informer& informer_;
  bool begun_ = false;
  std::map<std::string, NodeFacts> nodes_;
  std::uint64_t version_ = 1, membership_ = 1;
};

}  // namespace muster::portal
