#include "engine/volcano/topology.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/state/match.h"

namespace muster::engine::volcano {

std::vector<std::vector<NodeId>> domains_of(const Snapshot& snapshot,
                                            JobIx j,
                                            const std::string& key) {
  std::map<std::string, std::vector<NodeId>> by_value;
  for (const NodeId n : snapshot.nodes) {
    if (const std::string* value = find_label(snapshot.state.node(n).spec->labels, key))
      by_value[*value].push_back(n);
  }
  std::vector<std::vector<NodeId>> out;
  for (auto& [value, nodes] : by_value) {
    const auto& tasks = snapshot.jobs[j].tasks;
    const bool holds = std::all_of(tasks.begin(), tasks.end(), [&](TaskIx t) {
      const Task& task = snapshot.tasks[t];
      const bool placed = is_allocated(task.status) || task.status == Status::kPipelined;
      return !placed || std::find(nodes.begin(), nodes.end(), task.node) != nodes.end();
    });
    if (holds) out.push_back(std::move(nodes));
  }
  return out;
}

Wide domain_fill(const Snapshot& snapshot, JobIx j, const std::vector<NodeId>& nodes) {
  Amounts used;
  Amounts all;
  Amounts request;
  for (const NodeId n : nodes) {
    used += snapshot.rooms[n.index()].used;
    all += snapshot.rooms[n.index()].allocatable;
  }
  for (const TaskIx t : snapshot.jobs[j].tasks) request += snapshot.tasks[t].request;
  Wide fill = 0;
  for (std::size_t i = 0; i < snapshot.dims; ++i) {
    if (compared(i) && request[i] > 0 && all[i] > 0) fill += used[i] * 1'000'000 / all[i];
  }
  return fill;
}

}  // namespace muster::engine::volcano
