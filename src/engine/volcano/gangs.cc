// gangpreempt and gangreclaim: room for a whole group at the cost of bundles of others.
//
// A bundle is what one group has above its minimum (safe), or all the rest of it (whole). Safe
// bundles go first; then, in one queue, the group that would be served last, and between queues the
// queue that gives first; then the bundle that gives most of what is needed for what its group
// holds. Bundles are added until the sums suffice and the group can be placed.
#include <algorithm>
#include <set>

#include "engine/volcano/session.h"

namespace muster::engine::volcano {

void Session::gang_evict(bool across_queues) {
  std::vector<QueueIx> queues;
  std::vector<std::vector<JobIx>> starving(queues_.size());
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    if (jobs_[j].phase == GroupPhase::kPending || !job_valid(j) || !job_starving(j)) continue;
    if (starving[jobs_[j].queue].empty()) queues.push_back(jobs_[j].queue);
    starving[jobs_[j].queue].push_back(j);
  }
  while (!queues.empty()) {
    const QueueIx q = pop_best(queues, [&](QueueIx a, QueueIx b) { return queue_before(a, b); });
    if (across_queues && overused(q)) continue;
    while (!starving[q].empty())
      gang_evict_for(pop_best(starving[q], [&](JobIx a, JobIx b) { return job_before(a, b); }),
                     across_queues);
  }
}

void Session::gang_evict_for(JobIx j, bool across_queues) {
  const Job& job = jobs_[j];
  const std::vector<TaskIx> pending = pending_tasks(j);
  if (pending.empty() ||
      state_.pod(tasks_[pending[0]].pod).preemption_policy == PreemptionPolicy::kNever)
    return;
  Amounts need;
  for (const TaskIx t : pending) need += tasks_[t].request;
  if (across_queues && !preemptive(job.queue, need)) return;

  // The narrowest level first; in it the domain that costs the fewest pods.
  const std::vector<TopologyLevel>& levels = state_.gang(job.gang).spec.topology;
  bool anywhere = true;
  for (auto level = levels.rbegin(); level != levels.rend() && anywhere; ++level) {
    std::optional<std::vector<NodeId>> best;
    std::size_t fewest = 0;
    for (auto& nodes : domains_of(j, level->key)) {
      within_ = nodes;
      const auto cost = evict_bundles(j, pending, need, across_queues, false);
      if (!cost || (best && *cost >= fewest)) continue;
      best = std::move(nodes);
      fewest = *cost;
    }
    within_ = std::move(best);
    if (within_) break;
    if (level->required) anywhere = false;
  }
  if (anywhere) (void)evict_bundles(j, pending, need, across_queues, true);
  within_.reset();
}

/// How many pods go so that the group fits, inside `within_` where that is given. Nothing: it
/// cannot be done.
std::optional<std::size_t> Session::evict_bundles(JobIx j,
                                                  const std::vector<TaskIx>& pending,
                                                  const Amounts& need,
                                                  bool across_queues,
                                                  bool carry_out) {
  const Job& job = jobs_[j];
  const std::vector<NodeId>& nodes = within_ ? *within_ : nodes_;
  std::vector<Bundle> bundles;
  for (JobIx v = 0; v < jobs_.size(); ++v) {
    const Job& other = jobs_[v];
    if (v == j || (other.queue == job.queue) == across_queues) continue;
    if (across_queues && !state_.tenant(queues_[other.queue].tenant).spec.reclaimable) continue;
    if (!across_queues &&
        state_.gang(other.gang).spec.priority >= state_.gang(job.gang).spec.priority)
      continue;
    add_bundles(v, bundles);
  }
  if (!action_flag(across_queues ? "gangreclaim" : "gangpreempt", "allowWholeBundle", true)) {
    std::erase_if(bundles, [](const Bundle& b) { return b.whole; });
  }
  sort_bundles(bundles, need, j, across_queues);
  keep_evictable(bundles, pending[0], across_queues);
  sort_bundles(bundles, need, j, across_queues);

  const auto inside = [&](TaskIx t) {
    return !within_ || std::find(nodes.begin(), nodes.end(), tasks_[t].node) != nodes.end();
  };
  std::erase_if(bundles, [&](const Bundle& b) {
    return std::none_of(b.tasks.begin(), b.tasks.end(), inside);
  });
  Amounts available;
  for (const NodeId n : nodes) available += rooms_[n.index()].future();
  for (std::size_t n = 1; n <= bundles.size(); ++n) {
    for (const TaskIx t : bundles[n - 1].tasks) {
      if (inside(t)) available += tasks_[t].request;
    }
    if (!fits(need, available)) continue;
    std::vector<Op> ops;
    for (std::size_t i = 0; i < n; ++i) {
      for (const TaskIx t : bundles[i].tasks) do_evict(t, ops);
    }
    if (place_all(j, pending, ops) && job_pipelined(j)) {
      const auto cost = static_cast<std::size_t>(std::count_if(
          ops.begin(), ops.end(), [](const Op& op) { return op.what == Op::What::kEvict; }));
      if (carry_out) {
        commit(ops, j, across_queues ? EvictKind::kReclaim : EvictKind::kPreempt);
      } else {
        discard(ops);
      }
      return cost;
    }
    discard(ops);
  }
  return std::nullopt;
}

/// Every pending task somewhere in the room that is or comes free.
bool Session::place_all(JobIx j, const std::vector<TaskIx>& pending, std::vector<Op>& ops) {
  for (const TaskIx t : pending) {
    const Amounts& request = tasks_[t].request;
    if (!allocatable(jobs_[j].queue, t)) return false;
    const std::vector<NodeId>& nodes = within_ ? *within_ : nodes_;
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](NodeId n) {
      return fits(request, rooms_[n.index()].future()) && predicate(t, n, false);
    });
    if (node == nodes.end()) return false;
    do_pipeline(t, *node, true, ops);
  }
  return true;
}

void Session::add_bundles(JobIx v, std::vector<Bundle>& bundles) const {
  const Job& job = jobs_[v];
  std::vector<TaskIx> running;
  for (const TaskIx t : job.tasks) {
    const PodState& pod = state_.pod(tasks_[t].pod);
    if (tasks_[t].status == Status::kRunning && pod.preemptable && pod.ours) running.push_back(t);
  }
  // The least important pods are the first to be spared.
  std::stable_sort(running.begin(), running.end(), [&](TaskIx a, TaskIx b) {
    const auto x = state_.pod(tasks_[a].pod).priority;
    const auto y = state_.pod(tasks_[b].pod).priority;
    return x != y ? x < y : task_before(b, a);
  });
  std::int32_t slack = ready_tasks(job) - job.min_member;
  if (slack < 0) {
    // Already broken: losing more costs it nothing.
    if (!running.empty()) bundles.push_back({false, v, running});
    return;
  }
  std::map<std::string, std::int32_t> roles;
  for (const TaskIx t : job.tasks) {
    if (tasks_[t].status == Status::kRunning || tasks_[t].status == Status::kSucceeded)
      ++roles[state_.pod(tasks_[t].pod).role];
  }
  const bool by_role = job.min_member >= job.role_min_total;
  Bundle safe{false, v, {}};
  Bundle whole{true, v, {}};
  for (const TaskIx t : running) {
    const std::string& role = state_.pod(tasks_[t].pod).role;
    const auto least = job.role_min.find(role);
    if (slack > 0 && (!by_role || least == job.role_min.end() || roles[role] > least->second)) {
      --slack;
      --roles[role];
      safe.tasks.push_back(t);
    } else {
      whole.tasks.push_back(t);
    }
  }
  if (!safe.tasks.empty()) bundles.push_back(std::move(safe));
  if (!whole.tasks.empty()) bundles.push_back(std::move(whole));
}

void Session::sort_bundles(std::vector<Bundle>& bundles,
                           const Amounts& need,
                           JobIx preemptor,
                           bool across_queues) const {
  // What it gives of the need, for what its group holds of it; in millionths.
  const auto benefit = [&](const Bundle& b) {
    Wide local = 0;
    Wide global = 0;
    for (std::size_t i = 0; i < dims_; ++i) {
      if (need[i] <= 0) continue;
      Wide mine = 0;
      Wide all = 0;
      for (const TaskIx t : b.tasks) mine += tasks_[t].request[i];
      for (const TaskIx t : jobs_[b.job].tasks) all += tasks_[t].request[i];
      local += std::min(mine, need[i]) * 1'000'000 / need[i];
      global += all * 1'000'000 / need[i];
    }
    return !b.whole || global == 0 ? kInfinite : local * 1'000'000 / global;
  };
  std::stable_sort(bundles.begin(), bundles.end(), [&](const Bundle& a, const Bundle& b) {
    if (a.whole != b.whole) return !a.whole;
    const QueueIx x = jobs_[a.job].queue;
    const QueueIx y = jobs_[b.job].queue;
    if (across_queues && x != y) return victim_queue_before(x, y, jobs_[preemptor].queue);
    if (!across_queues && a.job != b.job) return job_before(b.job, a.job);
    return benefit(a) > benefit(b);
  });
}

/// Safe bundles shrink to what may go; a whole one goes whole or not at all.
void Session::keep_evictable(std::vector<Bundle>& bundles, TaskIx task, bool across_queues) const {
  std::vector<TaskIx> allowed;
  for (const Bundle& b : bundles) allowed.insert(allowed.end(), b.tasks.begin(), b.tasks.end());
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on(across_queues ? "enableReclaimable" : "enablePreemptable")) continue;
      if (p.kind == Kind::kConformance)
        std::erase_if(allowed, [&](TaskIx t) { return state_.pod(tasks_[t].pod).critical; });
      if (p.kind == Kind::kPdb) allowed = pdb_victims(allowed);
      if (across_queues && p.kind == Kind::kProportion) allowed = proportion_victims(allowed);
      if (across_queues && p.kind == Kind::kCapacity) allowed = capacity_victims(p, task, allowed);
    }
  }
  const std::set<TaskIx> may(allowed.begin(), allowed.end());
  for (Bundle& b : bundles) {
    const std::size_t before = b.tasks.size();
    std::erase_if(b.tasks, [&](TaskIx t) { return !may.contains(t); });
    if (b.whole && b.tasks.size() != before) b.tasks.clear();
  }
  std::erase_if(bundles, [](const Bundle& b) { return b.tasks.empty(); });
}

}  // namespace muster::engine::volcano
