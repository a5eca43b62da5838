// Groups whose members must be near each other. A domain is one value of a node label (a HyperNode
// of one tier, a rack).
//
// The narrowest level is tried first: in each of its domains the group is placed as a trial; of
// those that take it the fullest wins. Then the next wider level, up to the one that must hold; a
// group that only prefers goes anywhere in the end.
#include <algorithm>

#include "engine/state/match.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

/// The domains of the label that hold every member that is placed already, by value.
std::vector<std::vector<NodeId>> Session::domains_of(JobIx j, const std::string& key) const {
  std::map<std::string, std::vector<NodeId>> by_value;
  for (const NodeId n : nodes_) {
    if (const std::string* value = find_label(state_.node(n).spec.labels, key))
      by_value[*value].push_back(n);
  }
  std::vector<std::vector<NodeId>> out;
  for (auto& [value, nodes] : by_value) {
    const auto& tasks = jobs_[j].tasks;
    const bool holds = std::all_of(tasks.begin(), tasks.end(), [&](TaskIx t) {
      const Status s = tasks_[t].status;
      const bool placed = s == Status::kAllocated || s == Status::kBinding ||
                          s == Status::kRunning || s == Status::kPipelined;
      return !placed || std::find(nodes.begin(), nodes.end(), tasks_[t].node) != nodes.end();
    });
    if (holds) out.push_back(std::move(nodes));
  }
  return out;
}

/// How full the domain is in what the group asks for, in millionths summed over the dimensions.
Wide Session::domain_fill(JobIx j, const std::vector<NodeId>& nodes) const {
  Amounts used;
  Amounts all;
  Amounts request;
  for (const NodeId n : nodes) {
    used += rooms_[n.index()].used;
    all += rooms_[n.index()].allocatable;
  }
  for (const TaskIx t : jobs_[j].tasks) request += tasks_[t].request;
  Wide fill = 0;
  for (std::size_t i = 0; i < dims_; ++i) {
    if (compared(i) && request[i] > 0 && all[i] > 0) fill += used[i] * 1'000'000 / all[i];
  }
  return fill;
}

/// False: no domain takes the group, and it must have one. Otherwise `within_` says where it goes.
bool Session::choose_domain(JobIx j, const std::vector<TaskIx>& pending) {
  Job& job = jobs_[j];
  const std::vector<TopologyLevel>& levels = state_.gang(job.gang).spec.topology;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    std::optional<std::vector<NodeId>> best;
    Outcome best_outcome = Outcome::kNothing;
    Wide best_fill = 0;
    for (auto& nodes : domains_of(j, level->key)) {
      std::vector<TaskIx> trial = pending;
      std::vector<Op> ops;
      const auto failed = job.failed_roles;
      within_ = nodes;
      const Outcome outcome = try_tasks(j, trial, ops);
      const Wide fill = domain_fill(j, nodes);
      discard(ops);
      job.failed_roles = failed;
      if (outcome == Outcome::kNothing) continue;
      if (best && (outcome < best_outcome || (outcome == best_outcome && fill <= best_fill)))
        continue;
      best = std::move(nodes);
      best_outcome = outcome;
      best_fill = fill;
    }
    within_ = std::move(best);
    if (within_) return true;
    if (level->required) return false;
  }
  return true;
}

}  // namespace muster::engine::volcano
