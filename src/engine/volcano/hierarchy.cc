#include "engine/volcano/hierarchy.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"

namespace muster::engine::volcano {

Hierarchy::Hierarchy(const Amounts& total, std::size_t dims)
    : total_(total), dims_(dims), nodes_(1) {}

Hierarchy::NodeIx Hierarchy::add_node(NodeIx parent) {
  const NodeIx ix = nodes_.size();
  nodes_.emplace_back().parent = parent;
  nodes_[parent].children.push_back(ix);
  return ix;
}

void Hierarchy::add_queue(Queue queue, const Place& place) {
  std::vector<std::string> names = split_nonempty(place.path, '/');
  std::vector<std::string> weights = split_nonempty(place.weights, '/');
  // The root may be left out, in both.
  if (!names.empty() && names.front() == "root") {
    names.erase(names.begin());
    if (!weights.empty()) weights.erase(weights.begin());
  }
  if (names.empty()) {
    names.emplace_back(place.name);
    weights = {std::to_string(place.weight)};
  }
  weights.resize(names.size());
  if (paths_.size() <= queue) paths_.resize(queue + 1);
  NodeIx at = kRoot;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto [it, fresh] = inner_.try_emplace({at, names[i]}, kNone);
    if (fresh) {
      it->second = add_node(at);
      const auto weight = parse_quantity(weights[i]);
      if (weight && weight->milli() > 0) nodes_[it->second].weight_milli = weight->milli();
    }
    at = it->second;
    paths_[queue].push_back(at);
  }
}

void Hierarchy::add_job(Job job, Queue queue, const Amounts& allocated, const Amounts& request) {
  if (leaves_.size() <= job) leaves_.resize(job + 1, kNone);
  const NodeIx leaf = add_node(paths_[queue].back());
  nodes_[leaf].job = true;
  nodes_[leaf].allocated = allocated;
  nodes_[leaf].request = request;
  leaves_[job] = leaf;
  taken_ += allocated;
  mark(leaf);
}

void Hierarchy::charge(Job job, const Amounts& request, bool add) {
  const NodeIx leaf = leaves_[job];
  if (add) {
    nodes_[leaf].allocated += request;
    taken_ += request;
  } else {
    nodes_[leaf].allocated -= request;
    taken_ -= request;
  }
  mark(leaf);
}

void Hierarchy::mark(NodeIx node) {
  while (node != kNone && stale_.insert(node).second) node = nodes_[node].parent;
}

void Hierarchy::refresh() {
  if (stale_.empty()) return;
  std::uint32_t full = 0;
  for (std::size_t i = 0; i < dims_; ++i) {
    if (total_[i] < kTolerance || taken_[i] >= total_[i]) full |= 1U << i;
  }
  if (full != full_) {
    full_ = full;
    for (const NodeIx leaf : leaves_) mark(leaf);
  }
  for (const NodeIx ix : stale_) {
    Node& node = nodes_[ix];
    if (node.job) {
      weigh_job(node);
    } else {
      weigh_children(node);
    }
    node.share = *std::max_element(node.uses.begin(), node.uses.end());
  }
  stale_.clear();
}

void Hierarchy::weigh_job(Node& node) const {
  node.saturated = false;
  for (std::size_t i = 0; i < dims_; ++i) {
    node.uses[i] =
        total_[i] < kTolerance ? 0 : static_cast<Part>(node.allocated[i] * kAll / total_[i]);
    if (node.allocated[i] < kTolerance || node.request[i] == 0) continue;
    if (node.allocated[i] >= node.request[i] || (full_ & (1U << i)) != 0) node.saturated = true;
  }
}

void Hierarchy::weigh_children(Node& node) const {
  Part least = kAll;
  node.saturated = true;
  for (const NodeIx c : node.children) {
    const Node& child = nodes_[c];
    if (child.saturated) continue;
    node.saturated = false;
    if (child.share > 0) least = std::min(least, child.share);
  }
  node.uses.fill(0);
  for (const NodeIx c : node.children) {
    const Node& child = nodes_[c];
    for (std::size_t i = 0; i < dims_ && child.share > 0; ++i) {
      node.uses[i] +=
          child.saturated
              ? child.uses[i]
              : static_cast<Part>(static_cast<Wide>(child.uses[i]) * least / child.share);
    }
  }
}

int Hierarchy::compare(Queue a, Queue b) {
  refresh();
  const auto& x = paths_[a];
  const auto& y = paths_[b];
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    const Node& m = nodes_[x[i]];
    const Node& n = nodes_[y[i]];
    if (m.saturated != n.saturated) return n.saturated ? -1 : 1;
    const Wide left = static_cast<Wide>(m.share) * n.weight_milli;
    const Wide right = static_cast<Wide>(n.share) * m.weight_milli;
    const Wide noise = static_cast<Wide>(kNoise) * std::max(m.weight_milli, n.weight_milli);
    if (left + noise < right) return -1;
    if (right + noise < left) return 1;
  }
  return 0;
}

}  // namespace muster::engine::volcano
