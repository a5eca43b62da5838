/// How the GPUs of the bottle's nodes are divided between its two virtual clusters, which have the
/// names of its queues.
#pragma once

#include <string>

namespace muster::bottle {

struct Split {
  int nodes = 0;       // of the cluster
  int first = 0;       // nodes of virtual cluster `default`; team has the others
  bool pairs = false;  // team's are counted in halves of nodes
  bool operator==(const Split&) const = default;
};

inline constexpr const char* kTeam = "team";

/// HiveD's configuration file.
std::string cells_text(const Split& split);

}  // namespace muster::bottle
