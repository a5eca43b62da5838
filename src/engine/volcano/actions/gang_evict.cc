// A bundle is what one group has above its minimum (safe), or all the rest of it (whole). Safe
// bundles go first; then, in one queue, the group that would be served last, and between queues the
// queue that gives first; then the bundle that gives most of what is needed for what its group
// holds. Bundles are added until the sums suffice and the group can be placed.
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/actions/jobs.h"
#include "engine/volcano/statement.h"
#include "engine/volcano/topology.h"

namespace muster::engine::volcano {

namespace {

struct Bundle {
  /// Breaks its group; otherwise the surplus above the group's minimum.
  bool whole = false;
  JobIx job = kNoIx;
  std::vector<TaskIx> tasks;
};

/// A group that wants room for all its waiting tasks.
struct Group {
  JobIx job = kNoIx;
  std::vector<TaskIx> pending;
  /// What they ask for in sum.
  Amounts need;
};

class GangEvict {
 public:
  GangEvict(Session& session, bool across_queues)
      : session_(session), snapshot_(session.snapshot()), across_queues_(across_queues) {}

  void run();

 private:
  void make_room(JobIx job);
  [[nodiscard]] std::optional<std::vector<NodeId>> cheapest_domain(const Group& group,
                                                                   const std::string& key);
  std::optional<std::size_t> evict_bundles(const Group& group, bool carry_out);
  bool place_all(const Group& group, Statement& statement);
  [[nodiscard]] std::vector<Bundle> bundles_for(const Group& group) const;
  [[nodiscard]] bool may_give(JobIx victim, JobIx job) const;
  void add_bundles(JobIx victim, std::vector<Bundle>& bundles) const;
  void sort_bundles(std::vector<Bundle>& bundles, const Group& group) const;
  void keep_evictable(std::vector<Bundle>& bundles, TaskIx task) const;
  [[nodiscard]] Wide benefit(const Bundle& bundle, const Amounts& need) const;

  Session& session_;
  Snapshot& snapshot_;
  bool across_queues_;
};

void GangEvict::run() {
  JobsByQueue work = starving_jobs(session_, [](JobIx) { return true; });
  while (!work.queues.empty()) {
    const QueueIx q = pop_queue(session_, work.queues);
    if (across_queues_ && session_.ask().overused(q)) continue;
    while (!work.jobs[q].empty()) make_room(pop_job(session_, work.jobs[q]));
  }
}

void GangEvict::make_room(JobIx j) {
  const Job& job = snapshot_.jobs[j];
  Group group{j, session_.ask().pending_tasks(j), {}};
  if (group.pending.empty() ||
      snapshot_.pod_of(group.pending[0]).preemption_policy == PreemptionPolicy::kNever)
    return;
  for (const TaskIx t : group.pending) group.need += snapshot_.tasks[t].request;
  if (across_queues_ && !session_.ask().preemptive(job.queue, group.need)) return;

  // The narrowest level first.
  const auto& levels = snapshot_.state.gang(job.gang).spec->topology;
  bool anywhere = true;
  for (auto level = levels.rbegin(); level != levels.rend() && anywhere; ++level) {
    snapshot_.within = cheapest_domain(group, level->key);
    if (snapshot_.within) break;
    if (level->required) anywhere = false;
  }
  if (anywhere) (void)evict_bundles(group, true);
  snapshot_.within.reset();
}

/// The domain that costs the fewest pods.
std::optional<std::vector<NodeId>> GangEvict::cheapest_domain(const Group& group,
                                                              const std::string& key) {
  std::optional<std::vector<NodeId>> best;
  std::size_t fewest = 0;
  for (auto& nodes : domains_of(snapshot_, group.job, key)) {
    snapshot_.within = nodes;
    const auto cost = evict_bundles(group, false);
    if (!cost || (best && *cost >= fewest)) continue;
    best = std::move(nodes);
    fewest = *cost;
  }
  return best;
}

/// How many pods go so that the group fits, inside `within` where that is given. Nothing: it cannot
/// be done.
std::optional<std::size_t> GangEvict::evict_bundles(const Group& group, bool carry_out) {
  const std::vector<NodeId>& nodes = snapshot_.open_nodes();
  const auto inside = [&](TaskIx t) {
    return !snapshot_.within ||
           std::find(nodes.begin(), nodes.end(), snapshot_.tasks[t].node) != nodes.end();
  };
  std::vector<Bundle> bundles = bundles_for(group);
  std::erase_if(bundles, [&](const Bundle& b) {
    return std::none_of(b.tasks.begin(), b.tasks.end(), inside);
  });
  Amounts available;
  for (const NodeId n : nodes) available += snapshot_.rooms[n.index()].future();
  for (std::size_t n = 1; n <= bundles.size(); ++n) {
    for (const TaskIx t : bundles[n - 1].tasks) {
      if (inside(t)) available += snapshot_.tasks[t].request;
    }
    if (!fits(group.need, available)) continue;
    Statement statement(session_);
    for (std::size_t i = 0; i < n; ++i) {
      for (const TaskIx t : bundles[i].tasks) statement.evict(t);
    }
    const std::size_t cost = statement.evicted().size();
    const bool placed = place_all(group, statement) && session_.ask().job_pipelined(group.job);
    if (placed && carry_out) {
      statement.commit(group.job, across_queues_ ? EvictKind::kReclaim : EvictKind::kPreempt);
    } else {
      statement.discard();
    }
    if (placed) return cost;
  }
  return std::nullopt;
}

/// Every pending task somewhere in the room that is or comes free.
bool GangEvict::place_all(const Group& group, Statement& statement) {
  for (const TaskIx t : group.pending) {
    const Amounts& request = snapshot_.tasks[t].request;
    if (!session_.ask().allocatable(t)) return false;
    const std::vector<NodeId>& nodes = snapshot_.open_nodes();
    const auto node = std::find_if(nodes.begin(), nodes.end(), [&](NodeId n) {
      return fits(request, snapshot_.rooms[n.index()].future()) &&
             session_.ask().predicate(t, n, false);
    });
    if (node == nodes.end()) return false;
    statement.pipeline(t, *node, true);
  }
  return true;
}

// ------------------------------------------------------------------ bundles

/// All that may go for the group, in the order in which they would.
std::vector<Bundle> GangEvict::bundles_for(const Group& group) const {
  std::vector<Bundle> bundles;
  for (JobIx v = 0; v < snapshot_.jobs.size(); ++v) {
    if (v != group.job && may_give(v, group.job)) add_bundles(v, bundles);
  }
  const char* action = across_queues_ ? "gangreclaim" : "gangpreempt";
  if (!session_.action_flag(action, "allowWholeBundle", true))
    std::erase_if(bundles, [](const Bundle& b) { return b.whole; });
  sort_bundles(bundles, group);
  keep_evictable(bundles, group.pending[0]);
  sort_bundles(bundles, group);
  return bundles;
}

/// Of other queues those that may be reclaimed from, or in the same queue those of lower priority.
bool GangEvict::may_give(JobIx v, JobIx j) const {
  const State& state = snapshot_.state;
  const Job& victim = snapshot_.jobs[v];
  const Job& job = snapshot_.jobs[j];
  if ((victim.queue == job.queue) == across_queues_) return false;
  if (across_queues_) return state.tenant(snapshot_.queues[victim.queue].tenant).spec.reclaimable;
  return state.gang(victim.gang).spec->priority < state.gang(job.gang).spec->priority;
}

void GangEvict::add_bundles(JobIx v, std::vector<Bundle>& bundles) const {
  const Job& job = snapshot_.jobs[v];
  std::vector<TaskIx> running;
  std::map<std::string, std::int32_t> roles;
  for (const TaskIx t : job.tasks) {
    const PodState& pod = snapshot_.pod_of(t);
    const Status s = snapshot_.tasks[t].status;
    if (s == Status::kRunning && pod.preemptable && pod.ours) running.push_back(t);
    if (s == Status::kRunning || s == Status::kSucceeded) ++roles[pod.role];
  }
  // The least important pods are the first to be spared.
  std::stable_sort(running.begin(), running.end(), [&](TaskIx a, TaskIx b) {
    const auto x = snapshot_.pod_of(a).priority;
    const auto y = snapshot_.pod_of(b).priority;
    return x != y ? x < y : session_.ask().task_before(b, a);
  });
  std::int32_t slack = job.ready_tasks() - job.min_member;
  if (slack < 0) {
    // Already broken: losing more costs it nothing.
    if (!running.empty()) bundles.push_back({false, v, running});
    return;
  }
  const bool by_role = job.min_member >= job.role_min_total;
  Bundle safe{false, v, {}};
  Bundle whole{true, v, {}};
  for (const TaskIx t : running) {
    const std::string& role = snapshot_.pod_of(t).role;
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

/// What it gives of the need, for what its group holds of it; in millionths.
Wide GangEvict::benefit(const Bundle& bundle, const Amounts& need) const {
  Wide local = 0;
  Wide global = 0;
  for (std::size_t i = 0; i < snapshot_.dims; ++i) {
    if (need[i] <= 0) continue;
    Wide mine = 0;
    Wide all = 0;
    for (const TaskIx t : bundle.tasks) mine += snapshot_.tasks[t].request[i];
    for (const TaskIx t : snapshot_.jobs[bundle.job].tasks) all += snapshot_.tasks[t].request[i];
    local += std::min(mine, need[i]) * 1'000'000 / need[i];
    global += all * 1'000'000 / need[i];
  }
  return !bundle.whole || global == 0 ? kInfinite : local * 1'000'000 / global;
}

void GangEvict::sort_bundles(std::vector<Bundle>& bundles, const Group& group) const {
  const QueueIx mine = snapshot_.jobs[group.job].queue;
  std::stable_sort(bundles.begin(), bundles.end(), [&](const Bundle& a, const Bundle& b) {
    if (a.whole != b.whole) return !a.whole;
    const QueueIx x = snapshot_.jobs[a.job].queue;
    const QueueIx y = snapshot_.jobs[b.job].queue;
    if (across_queues_ && x != y) return session_.ask().victim_queue_before(x, y, mine);
    if (!across_queues_ && a.job != b.job) return session_.ask().job_before(b.job, a.job);
    return benefit(a, group.need) > benefit(b, group.need);
  });
}

/// Safe bundles shrink to what may go; a whole one goes whole or not at all.
void GangEvict::keep_evictable(std::vector<Bundle>& bundles, TaskIx task) const {
  std::vector<TaskIx> allowed;
  for (const Bundle& b : bundles) allowed.insert(allowed.end(), b.tasks.begin(), b.tasks.end());
  for (const auto& tier : session_.ask().tiers()) {
    for (const auto& p : tier) {
      if (!p->judges_bundles() ||
          !p->on(across_queues_ ? "enableReclaimable" : "enablePreemptable"))
        continue;
      if (auto answer = p->victims({task, allowed, allowed, across_queues_}))
        allowed = std::move(*answer);
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

}  // namespace

void gang_evict(Session& session, bool across_queues) { GangEvict(session, across_queues).run(); }

}  // namespace muster::engine::volcano
