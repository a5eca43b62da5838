#include "engine/cells/request.h"

namespace muster::engine::cells {

std::string insufficient_capacity(const std::string& vc) {
  return "insufficient capacity when scheduling in VC " + vc;
}

void Suggested::load(const Cells& cells, const ScheduleRequest& request) {
  ignored_ = request.spec.ignore_suggested || request.suggested == nullptr;
  if (ignored_) return;
  if (stamps_.size() < cells.nodes.size()) stamps_.resize(cells.nodes.size(), 0);
  ++stamp_;
  for (const std::string& name : *request.suggested) {
    const auto found = cells.node_index.find(name);
    if (found != cells.node_index.end()) stamps_[static_cast<std::size_t>(found->second)] = stamp_;
  }
}

}  // namespace muster::engine::cells
