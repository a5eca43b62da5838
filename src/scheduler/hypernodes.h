/// Volcano's HyperNodes (topology.volcano.sh) as node labels: the engine knows domains by label
/// only.
///
/// A node below the HyperNode `s1` of tier 1 has the label `volcano.sh/hypernode-tier-1: s1`. A
/// group that may not leave tier 2 must share the label of tier 2 and would rather share that of
/// tier 1.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/informer.h"
#include "engine/model/model.h"
#include "json/json.h"

namespace muster::scheduler {

class HyperNodes {
 public:
  /// `nodes`: name -> labels.
  void rebuild(const std::vector<client::ObjectPtr>& hypernodes,
               const std::map<std::string, engine::Labels>& nodes);
  /// To be added to the node's own labels.
  [[nodiscard]] const engine::Labels& labels_of(const std::string& node) const;
  /// spec.networkTopology of a group; nothing when there is none, or no HyperNodes.
  [[nodiscard]] std::vector<engine::TopologyLevel> levels(
      const json::Value& network_topology) const;
  [[nodiscard]] bool empty() const { return tiers_.empty(); }

 private:
  std::map<std::int64_t, std::string> tiers_;  ///< Tier -> its name.
  std::map<std::string, engine::Labels> labels_;
};

}  // namespace muster::scheduler
