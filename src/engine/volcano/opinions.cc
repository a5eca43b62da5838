#include "engine/volcano/opinions.h"

#include <algorithm>
#include <set>
#include <utility>

#include "engine/state/fit.h"

namespace muster::engine::volcano {

Opinions::Opinions(Snapshot& snapshot) : snapshot_(snapshot), state_(snapshot.state) {
  for (const auto& tier : state_.config().volcano.tiers) {
    auto& plugins = tiers_.emplace_back();
    for (const auto& config : tier) plugins.push_back(make_plugin(config, snapshot_));
  }
  snapshot_.by_weight = has("proportion");
  for (const auto& tier : tiers_) {
    for (const auto& plugin : tier) plugin->open();
  }
}

bool Opinions::has(std::string_view name) const {
  return std::any_of(tiers_.begin(), tiers_.end(), [&](const auto& tier) {
    return std::any_of(
        tier.begin(), tier.end(), [&](const auto& plugin) { return plugin->name() == name; });
  });
}

// ------------------------------------------------------------------ order

int Opinions::queue_order(QueueIx a, QueueIx b) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p->on("enableQueueOrder")) continue;
      if (const int r = p->queue_order(a, b); r != 0) return r;
    }
  }
  return 0;
}

bool Opinions::queue_before(QueueIx a, QueueIx b) const {
  if (const int r = queue_order(a, b); r != 0) return r < 0;
  const auto& queues = snapshot_.queues;
  return state_.tenant(queues[a].tenant).created < state_.tenant(queues[b].tenant).created;
}

bool Opinions::victim_queue_before(QueueIx a, QueueIx b, QueueIx preemptor) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (const int r = p->victim_queue_order(a, b, preemptor); r != 0) return r < 0;
    }
  }
  return !queue_before(a, b);
}

int Opinions::job_order(JobIx a, JobIx b) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p->on("enableJobOrder")) continue;
      if (const int r = p->job_order(a, b); r != 0) return r;
    }
  }
  return 0;
}

bool Opinions::job_before(JobIx a, JobIx b) const {
  if (const int r = job_order(a, b); r != 0) return r < 0;
  const GangState& x = state_.gang(snapshot_.jobs[a].gang);
  const GangState& y = state_.gang(snapshot_.jobs[b].gang);
  if (x.created != y.created) return x.created < y.created;
  return x.seq < y.seq;
}

bool Opinions::task_before(TaskIx a, TaskIx b) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p->on("enableTaskOrder")) continue;
      if (const int r = p->task_order(a, b); r != 0) return r < 0;
    }
  }
  const std::int64_t i = snapshot_.tasks[a].index;
  const std::int64_t k = snapshot_.tasks[b].index;
  if (i >= 0 && k >= 0 && i != k) return i < k;
  const PodState& x = snapshot_.pod_of(a);
  const PodState& y = snapshot_.pod_of(b);
  if (x.created != y.created) return x.created < y.created;
  return x.seq < y.seq;
}

std::vector<TaskIx> Opinions::pending_tasks(JobIx j) const {
  std::vector<TaskIx> tasks = snapshot_.placeable_tasks(j);
  std::stable_sort(
      tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) { return task_before(a, b); });
  return tasks;
}

std::vector<TaskIx> Opinions::sort_victims(std::vector<TaskIx> tasks, TaskIx preemptor) const {
  // stable_sort, which bears it that names with and without an index form circles.
  std::stable_sort(tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) {
    if (a == b) return false;
    const JobIx x = snapshot_.tasks[a].job;
    const JobIx y = snapshot_.tasks[b].job;
    if (x == y) return task_before(b, a);
    const QueueIx p = snapshot_.jobs[x].queue;
    const QueueIx q = snapshot_.jobs[y].queue;
    if (p != q) return victim_queue_before(p, q, snapshot_.queue_of(preemptor));
    const int r = job_order(x, y);
    return r != 0 ? r > 0 : task_before(b, a);
  });
  return tasks;
}

// ------------------------------------------------------------------ jobs

bool Opinions::job_valid(JobIx ix) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p->job_valid(snapshot_.jobs[ix])) return false;
    }
  }
  return true;
}

bool Opinions::job_ready(JobIx ix) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p->on("enableJobReady") && !p->job_ready(snapshot_.jobs[ix])) return false;
    }
  }
  return true;
}

bool Opinions::job_pipelined(JobIx ix) const {
  for (const auto& tier : tiers_) {
    bool permitted = false;
    for (const auto& p : tier) {
      if (!p->on("enableJobPipelined")) continue;
      const Vote vote = p->job_pipelined(snapshot_.jobs[ix]);
      if (vote == Vote::kReject) return false;
      permitted |= vote == Vote::kPermit;
    }
    if (permitted) return true;
  }
  return true;
}

bool Opinions::job_enqueueable(JobIx ix) const {
  for (const auto& tier : tiers_) {
    bool permitted = false;
    for (const auto& p : tier) {
      if (!p->on("enableJobEnqueued")) continue;
      const Vote vote = p->job_enqueueable(snapshot_.jobs[ix]);
      if (vote == Vote::kReject) return false;
      permitted |= vote == Vote::kPermit;
    }
    if (permitted) return true;
  }
  return true;
}

bool Opinions::job_starving(JobIx ix) const {
  for (const auto& tier : tiers_) {
    bool found = false;
    for (const auto& p : tier) {
      if (!p->on("enableJobStarving")) continue;
      const Vote vote = p->job_starving(snapshot_.jobs[ix]);
      if (vote == Vote::kReject) return false;
      found |= vote == Vote::kPermit;
    }
    if (found) return true;
  }
  return false;
}

// ------------------------------------------------------------------ queues

bool Opinions::overused(QueueIx q) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p->on("enabledOverused") && p->overused(q)) return true;
    }
  }
  return false;
}

bool Opinions::allocatable(TaskIx t) const {
  const QueueIx q = snapshot_.queue_of(t);
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p->on("enabledAllocatable") && !p->allocatable(q, snapshot_.tasks[t].request))
        return false;
    }
  }
  return true;
}

bool Opinions::preemptive(QueueIx q, const Amounts& request) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p->on("enablePreemptive") && !p->preemptive(q, request)) return false;
    }
  }
  return true;
}

// ------------------------------------------------------------------ victims

/// Volcano's plugins see the candidates in any order, and some count along: who is asked about
/// first uses up what may be taken. In victim order that may be those whom another plugin spares,
/// and nobody is named in common; Volcano's next cycle has another order, ours has not. So these
/// come last.
std::vector<TaskIx> Opinions::spared_last(std::vector<TaskIx> candidates,
                                          TaskIx preemptor,
                                          bool reclaiming) const {
  std::vector<TaskIx> likely = candidates;
  for (const std::string_view name : {"conformance", "priority", "gang"}) {
    for (const auto& tier : tiers_) {
      for (const auto& p : tier) {
        if (p->name() != name || !p->on(reclaiming ? "enableReclaimable" : "enablePreemptable"))
          continue;
        if (auto answer = p->victims({preemptor, likely, likely, reclaiming}))
          likely = std::move(*answer);
      }
    }
  }
  const std::set<TaskIx> first(likely.begin(), likely.end());
  std::stable_partition(
      candidates.begin(), candidates.end(), [&](TaskIx t) { return first.contains(t); });
  return candidates;
}

std::vector<TaskIx> Opinions::victims(TaskIx preemptor,
                                      std::vector<TaskIx> candidates,
                                      bool reclaiming) const {
  const std::vector<TaskIx> sorted = sort_victims(std::move(candidates), preemptor);
  candidates = spared_last(sorted, preemptor, reclaiming);
  std::vector<TaskIx> chosen;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p->on(reclaiming ? "enableReclaimable" : "enablePreemptable")) continue;
      Victims answer = p->victims({preemptor, candidates, sorted, reclaiming});
      if (!answer) continue;
      if (answer->empty()) {
        chosen.clear();
        break;
      }
      if (chosen.empty()) {
        chosen = std::move(*answer);
      } else {
        const std::set<TaskIx> in(answer->begin(), answer->end());
        std::erase_if(chosen, [&](TaskIx t) { return !in.contains(t); });
      }
    }
    if (!chosen.empty()) return chosen;
  }
  return chosen;
}

// ------------------------------------------------------------------ nodes

bool Opinions::predicate(TaskIx t, NodeId node, bool preempting) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p->on("enablePredicate") && !p->predicate(t, node, preempting)) return false;
    }
  }
  return true;
}

std::int64_t Opinions::score(TaskIx t, NodeId node) const {
  std::int64_t total = 0;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p->on("enableNodeOrder")) total += p->node_score(t, node);
    }
  }
  return total;
}

BestNode Opinions::best_node(TaskIx t, bool for_best_effort) const {
  BestNode best;
  std::int64_t best_score = 0;
  const Amounts& request = snapshot_.tasks[t].request;
  const TaskClass& cls = state_.cls_of(snapshot_.tasks[t].pod);
  const std::string& nominated = snapshot_.pod_of(t).nominated_hint;
  for (const NodeId n : snapshot_.open_nodes()) {
    const NodeRoom& room = snapshot_.rooms[n.index()];
    const bool idle = fits(request, room.idle);
    if (for_best_effort && !idle) continue;
    // Room that is idle may be promised to pipelined tasks already.
    if (!for_best_effort && !fits(request, room.future())) continue;
    if (!predicate(t, n, false)) continue;
    // The room may be there in sum and not as whole (or shareable) devices.
    if (idle && fit_room(state_, cls, state_.node(n)).cause == Cause::kDevices) continue;
    if (idle && !nominated.empty() && state_.node(n).spec->name == nominated) return {n, true};
    const std::int64_t points = score(t, n);
    if (!best.node.valid() || (idle && !best.idle) || (idle == best.idle && points > best_score)) {
      best = {n, idle};
      best_score = points;
    }
  }
  return best;
}

}  // namespace muster::engine::volcano
