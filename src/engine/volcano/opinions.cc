// What the plugins say. Tiers are asked in order, plugins inside a tier in order; how answers
// combine differs by question and is written at each.
#include <algorithm>
#include <set>

#include "base/strings.h"
#include "engine/state/fit.h"
#include "engine/state/match.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

// ---------------------------------------------------------------------------------------- ordering

std::size_t Session::common_level(QueueIx a, QueueIx b) const {
  const auto& x = queues_[a].ancestors;
  const auto& y = queues_[b].ancestors;
  std::size_t level = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()) && x[i] == y[i]; ++i) level = i;
  return level;
}

int Session::queue_order(QueueIx a, QueueIx b) const {
  const auto by_share = [&](QueueIx x, QueueIx y, bool deserved_first) {
    if (queues_[x].share != queues_[y].share) return queues_[x].share < queues_[y].share ? -1 : 1;
    if (!deserved_first) return 0;
    const bool dx = !is_empty(queues_[x].deserved);
    const bool dy = !is_empty(queues_[y].deserved);
    return dx == dy ? 0 : dx ? -1 : 1;
  };
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on("enableQueueOrder")) continue;
      if (p.kind == Kind::kDrf && p.config->hierarchy) {
        const int r = hierarchy_->compare(a, b);
        if (r != 0) return r;
      }
      if (p.kind != Kind::kProportion && p.kind != Kind::kCapacity) continue;
      const auto pa = state_.tenant(queues_[a].tenant).spec.priority;
      const auto pb = state_.tenant(queues_[b].tenant).spec.priority;
      if (pa != pb) return pa > pb ? -1 : 1;
      int r = 0;
      if (p.kind == Kind::kProportion) {
        r = by_share(a, b, false);
      } else if (!p.config->hierarchy) {
        r = by_share(a, b, true);
      } else {
        const bool leaf_a = queues_[a].children.empty();
        const bool leaf_b = queues_[b].children.empty();
        if (leaf_a != leaf_b) return leaf_a ? -1 : 1;
        QueueIx x = a;
        QueueIx y = b;
        if (leaf_a) {
          // The two branches just below the lowest common ancestor are compared.
          const std::size_t level = common_level(a, b) + 1;
          if (level < queues_[a].ancestors.size()) x = queues_[a].ancestors[level];
          if (level < queues_[b].ancestors.size()) y = queues_[b].ancestors[level];
        }
        r = by_share(x, y, true);
      }
      if (r != 0) return r;
    }
  }
  return 0;
}

bool Session::queue_before(QueueIx a, QueueIx b) const {
  const int r = queue_order(a, b);
  if (r != 0) return r < 0;
  return state_.tenant(queues_[a].tenant).created < state_.tenant(queues_[b].tenant).created;
}

bool Session::victim_queue_before(QueueIx a, QueueIx b, QueueIx preemptor) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind != Kind::kCapacity || !p.config->hierarchy) continue;
      const std::size_t x = common_level(a, preemptor);
      const std::size_t y = common_level(b, preemptor);
      if (x != y) return x > y;
    }
  }
  return !queue_before(a, b);
}

std::int64_t Session::sla_deadline(const Plugin& plugin, const Job& job) const {
  const GangState& gang = state_.gang(job.gang);
  if (gang.spec.sla_waiting_time) return (gang.created + *gang.spec.sla_waiting_time).us;
  const std::string text = plugin.argument("sla-waiting-time");
  if (text.empty()) return 0;
  const auto wait = parse_duration(text);
  return wait && wait->count() > 0 ? (gang.created + *wait).us : 0;
}

bool Session::sla_overdue(const Plugin& plugin, const Job& job) const {
  const std::int64_t at = sla_deadline(plugin, job);
  return at != 0 && at <= now_.us;
}

/// What the plugins say; 0 where they have nothing to say between the two.
int Session::job_order(JobIx a, JobIx b) const {
  const Job& x = jobs_[a];
  const Job& y = jobs_[b];
  const GangState& gx = state_.gang(x.gang);
  const GangState& gy = state_.gang(y.gang);
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on("enableJobOrder")) continue;
      if (p.kind == Kind::kPriority && gx.spec.priority != gy.spec.priority)
        return gx.spec.priority > gy.spec.priority ? -1 : 1;
      if (p.kind == Kind::kGang) {
        const bool rx = ready_tasks(x) + pending_best_effort(x) >= x.min_member;
        const bool ry = ready_tasks(y) + pending_best_effort(y) >= y.min_member;
        if (rx != ry) return ry ? -1 : 1;
      }
      if (p.kind == Kind::kDrf) {
        const Share sx = drf_share(x.drf);
        const Share sy = drf_share(y.drf);
        if (sx != sy) return sx < sy ? -1 : 1;
      }
      if (p.kind == Kind::kSla) {
        const std::int64_t dx = sla_deadline(p, x);
        const std::int64_t dy = sla_deadline(p, y);
        if (dx != dy) return dx != 0 && (dy == 0 || dx < dy) ? -1 : 1;
      }
    }
  }
  return 0;
}

bool Session::job_before(JobIx a, JobIx b) const {
  const int r = job_order(a, b);
  if (r != 0) return r < 0;
  const GangState& gx = state_.gang(jobs_[a].gang);
  const GangState& gy = state_.gang(jobs_[b].gang);
  if (gx.created != gy.created) return gx.created < gy.created;
  return gx.seq < gy.seq;
}

bool Session::task_before(TaskIx a, TaskIx b) const {
  const PodState& x = state_.pod(tasks_[a].pod);
  const PodState& y = state_.pod(tasks_[b].pod);
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind == Kind::kPriority && p.on("enableTaskOrder") && x.priority != y.priority)
        return x.priority > y.priority;
    }
  }
  const bool indexed = tasks_[a].index >= 0 && tasks_[b].index >= 0;
  if (indexed && tasks_[a].index != tasks_[b].index) return tasks_[a].index < tasks_[b].index;
  if (x.created != y.created) return x.created < y.created;
  return x.seq < y.seq;
}

// ------------------------------------------------------------------------------------------- gangs

bool Session::best_effort(const Task& task) const { return state_.cls_of(task.pod).best_effort; }

std::int32_t Session::ready_tasks(const Job& job) const {
  return job.count(Status::kAllocated) + job.count(Status::kBinding) + job.count(Status::kRunning) +
         job.count(Status::kSucceeded);
}

std::int32_t Session::pending_best_effort(const Job& job) const {
  std::int32_t n = 0;
  for (const TaskIx t : job.tasks)
    n += tasks_[t].status == Status::kPending && best_effort(tasks_[t]) ? 1 : 0;
  return n;
}

bool Session::roles_hold(const Job& job, bool pipelined) const {
  if (job.min_member < job.role_min_total) return true;
  std::map<std::string, std::int32_t> have;
  for (const TaskIx t : job.tasks) {
    const Task& task = tasks_[t];
    const bool counts = task.status == Status::kAllocated || task.status == Status::kBinding ||
                        task.status == Status::kRunning || task.status == Status::kSucceeded ||
                        (pipelined && task.status == Status::kPipelined) ||
                        (task.status == Status::kPending && best_effort(task));
    if (counts) ++have[state_.pod(task.pod).role];
  }
  for (const auto& [role, n] : job.role_min) {
    if (have[role] < n) return false;
  }
  return true;
}

bool Session::gang_ready(const Job& job) const {
  return ready_tasks(job) + pending_best_effort(job) >= job.min_member && roles_hold(job, false);
}

bool Session::gang_pipelined(const Job& job) const {
  return ready_tasks(job) + job.count(Status::kPipelined) + pending_best_effort(job) >=
             job.min_member &&
         roles_hold(job, true);
}

/// All plugins with an opinion must agree.
bool Session::job_valid(JobIx ix) const {
  const Job& job = jobs_[ix];
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind != Kind::kGang) continue;
      std::map<std::string, std::int32_t> roles;
      std::int32_t valid = 0;
      for (const TaskIx t : job.tasks) {
        const Status s = tasks_[t].status;
        if (s == Status::kReleasing || s == Status::kFailed) continue;
        ++valid;
        ++roles[state_.pod(tasks_[t].pod).role];
      }
      if (valid < job.min_member) return false;
      if (job.min_member < job.role_min_total) continue;
      for (const auto& [role, n] : job.role_min) {
        if (n > 0 && roles[role] < n) return false;
      }
    }
  }
  return true;
}

bool Session::job_ready(JobIx ix) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind == Kind::kGang && p.on("enableJobReady") && !gang_ready(jobs_[ix])) return false;
    }
  }
  return true;
}

/// One reject is a no; a permit ends the evaluation after its own tier.
bool Session::job_pipelined(JobIx ix) const {
  for (const auto& tier : tiers_) {
    bool permitted = false;
    for (const auto& p : tier) {
      if (!p.on("enableJobPipelined")) continue;
      if (p.kind == Kind::kGang) {
        if (!gang_pipelined(jobs_[ix])) return false;
        permitted = true;
      }
      if (p.kind == Kind::kSla && sla_overdue(p, jobs_[ix])) permitted = true;
    }
    if (permitted) return true;
  }
  return true;
}

/// The first tier that has such a function decides; all of its plugins must agree.
bool Session::job_starving(JobIx ix) const {
  const Job& job = jobs_[ix];
  const std::int32_t occupied = ready_tasks(job) + job.count(Status::kPipelined);
  for (const auto& tier : tiers_) {
    bool found = false;
    for (const auto& p : tier) {
      if (!p.on("enableJobStarving")) continue;
      if (p.kind == Kind::kPriority) {
        found = true;
        if (occupied >= static_cast<std::int32_t>(job.tasks.size())) return false;
      }
      if (p.kind == Kind::kGang) {
        found = true;
        if (occupied >= job.min_member) return false;
      }
    }
    if (found) return true;
  }
  return false;
}

// ------------------------------------------------------------------------------------------ queues

bool Session::capacity_enqueueable(const Plugin& plugin, const Job& job) const {
  if (state_.tenant(queues_[job.queue].tenant).spec.state != QueueState::kOpen) return false;
  const bool tree = plugin.kind == Kind::kCapacity && plugin.config->hierarchy;
  if (tree && (!tree_ready_ || !queues_[job.queue].children.empty())) return false;
  std::vector<QueueIx> chain = {job.queue};
  if (tree)
    chain.insert(
        chain.end(), queues_[job.queue].ancestors.begin(), queues_[job.queue].ancestors.end());
  return std::all_of(chain.begin(), chain.end(), [&](QueueIx q) {
    const QueueAttr& attr = queues_[q];
    return requested_less_equal(job.min_resources + attr.allocated + attr.inqueue - attr.elastic,
                                attr.real,
                                job.min_resources);
  });
}

bool Session::overcommit_enqueueable(const Job& job) const {
  return requested_less_equal(
      overcommit_inqueue_ + job.min_resources, overcommit_idle_, job.min_resources);
}

/// One reject is a no; a permit ends the evaluation after its own tier.
bool Session::job_enqueueable(JobIx ix) const {
  const Job& job = jobs_[ix];
  for (const auto& tier : tiers_) {
    bool permitted = false;
    for (const auto& p : tier) {
      if (!p.on("enableJobEnqueued")) continue;
      if (p.kind == Kind::kProportion || p.kind == Kind::kCapacity) {
        if (!capacity_enqueueable(p, job)) return false;
        permitted = true;
      }
      if (p.kind == Kind::kOvercommit) {
        if (!overcommit_enqueueable(job)) return false;
        permitted = true;
      }
      if (p.kind == Kind::kSla && sla_overdue(p, job)) permitted = true;
    }
    if (permitted) return true;
  }
  return true;
}

bool Session::overused(QueueIx q) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind == Kind::kProportion && p.on("enabledOverused") &&
          everywhere_less_equal(queues_[q].deserved, queues_[q].allocated)) {
        return true;
      }
    }
  }
  return false;
}

/// Every plugin must agree.
bool Session::allocatable(QueueIx q, TaskIx t) const {
  const Amounts& request = tasks_[t].request;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on("enabledAllocatable") || (p.kind != Kind::kProportion && p.kind != Kind::kCapacity))
        continue;
      if (state_.tenant(queues_[q].tenant).spec.state != QueueState::kOpen) return false;
      if (p.kind == Kind::kProportion) {
        if (!requested_less_equal(queues_[q].allocated + request, queues_[q].deserved, request))
          return false;
        continue;
      }
      const bool tree = p.config->hierarchy;
      if (tree && (!tree_ready_ || !queues_[q].children.empty())) return false;
      if (!requested_less_equal(queues_[q].allocated + request, queues_[q].real, request))
        return false;
      if (!tree) continue;
      for (const QueueIx up : queues_[q].ancestors) {
        if (!requested_less_equal(queues_[up].allocated + request, queues_[up].real, request))
          return false;
      }
    }
  }
  return true;
}

/// May the queue start to take back? Every plugin must agree.
bool Session::preemptive(QueueIx q, const Amounts& request) const {
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on("enablePreemptive") || (p.kind != Kind::kProportion && p.kind != Kind::kCapacity))
        continue;
      const QueueAttr& attr = queues_[q];
      if (state_.tenant(attr.tenant).spec.state != QueueState::kOpen) return false;
      const Amounts after = attr.allocated + request;
      if (p.kind == Kind::kProportion) {
        if (!requested_less_equal(after, attr.deserved, request)) return false;
        continue;
      }
      if (p.config->hierarchy && !tree_ready_) return false;
      if (!requested_less_equal(after, attr.real, request)) return false;
      const auto partly = [&](const Amounts& used, const Amounts& deserved) {
        for (std::size_t i = 0; i < dims_; ++i) {
          if (!compared(i) || request[i] <= 0 || (used[i] < kTolerance && deserved[i] < kTolerance))
            continue;
          if (less_equal(used[i], deserved[i])) return true;
        }
        return false;
      };
      bool may = partly(after, attr.deserved);
      if (!may && p.config->hierarchy) {
        const auto levels = parse_int(p.argument("ancestorReclaimLevel")).value_or(0);
        for (std::int64_t level = 1; level <= levels && !may; ++level) {
          const QueueIx up = ancestor_at(q, level);
          if (up == kNoIx) break;  // The root is never asked.
          may = partly(queues_[up].allocated + request, queues_[up].deserved);
        }
      }
      if (!may) return false;
    }
  }
  return true;
}

// ----------------------------------------------------------------------------------------- victims

Share Session::drf_share(const Amounts& allocated) const {
  Share s = 0;
  for (std::size_t i = 0; i < dims_; ++i) {
    if (total_[i] > 0) s = std::max(s, share_of(allocated[i], total_[i]));
  }
  return s;
}

std::vector<TaskIx> Session::gang_victims(const std::vector<TaskIx>& candidates) const {
  std::map<JobIx, std::int32_t> occupied;
  std::vector<TaskIx> out;
  for (const TaskIx t : candidates) {
    const JobIx job = tasks_[t].job;
    const auto [it, fresh] = occupied.try_emplace(job, ready_tasks(jobs_[job]));
    if (it->second <= jobs_[job].min_member) continue;
    --it->second;
    out.push_back(t);
  }
  return out;
}

std::vector<TaskIx> Session::drf_victims(TaskIx preemptor,
                                         const std::vector<TaskIx>& candidates) const {
  constexpr Share kDelta = 1000;  // 1e-6
  const Share mine = drf_share(jobs_[tasks_[preemptor].job].drf + tasks_[preemptor].request);
  std::map<JobIx, Amounts> left;
  std::vector<TaskIx> out;
  for (const TaskIx t : candidates) {
    const auto [it, fresh] = left.try_emplace(tasks_[t].job, jobs_[tasks_[t].job].drf);
    it->second -= tasks_[t].request;
    const Share theirs = drf_share(it->second);
    if (mine < theirs || std::abs(mine - theirs) <= kDelta) out.push_back(t);
  }
  return out;
}

/// Whose queue would stand behind the reclaimer's even with the task there and the victim gone.
/// Each is judged alone.
std::vector<TaskIx> Session::hierarchy_victims(TaskIx reclaimer,
                                               const std::vector<TaskIx>& candidates) const {
  const JobIx mine = tasks_[reclaimer].job;
  std::vector<TaskIx> out;
  hierarchy_->charge(mine, tasks_[reclaimer].request, true);
  for (const TaskIx t : candidates) {
    const JobIx theirs = tasks_[t].job;
    hierarchy_->charge(theirs, tasks_[t].request, false);
    if (hierarchy_->compare(jobs_[mine].queue, jobs_[theirs].queue) < 0) out.push_back(t);
    hierarchy_->charge(theirs, tasks_[t].request, true);
  }
  hierarchy_->charge(mine, tasks_[reclaimer].request, false);
  return out;
}

std::vector<TaskIx> Session::proportion_victims(const std::vector<TaskIx>& candidates) const {
  std::map<QueueIx, Amounts> left;
  std::vector<TaskIx> out;
  for (const TaskIx t : candidates) {
    const QueueIx q = jobs_[tasks_[t].job].queue;
    const auto [it, fresh] = left.try_emplace(q, queues_[q].allocated);
    if (everywhere_less_equal(it->second, queues_[q].deserved)) continue;
    it->second -= tasks_[t].request;
    out.push_back(t);
  }
  return out;
}

bool Session::has_relevant_deserved(const Amounts& request, QueueIx q) const {
  for (std::size_t i = 0; i < dims_; ++i) {
    if (request[i] >= kTolerance && queues_[q].deserved[i] >= kTolerance) return true;
  }
  return false;
}

/// More than deserved in a dimension that the victim uses and the queue has a word on?
bool Session::above_deserved(const Amounts& allocated, const Amounts& request, QueueIx q) const {
  const QueueAttr& attr = queues_[q];
  for (std::size_t i = 0; i < dims_; ++i) {
    const bool relevant =
        attr.deserved[i] >= kTolerance ||
        (attr.deserved_named[i] && i != ResourceNames::kCpu && i != ResourceNames::kMemory);
    if (compared(i) && request[i] > 0 && relevant && allocated[i] > attr.deserved[i]) return true;
  }
  return false;
}

/// The ancestor `level` steps up (1 = the parent); kNoIx when there is none or it is the root.
QueueIx Session::ancestor_at(QueueIx q, std::int64_t level) const {
  const auto n = static_cast<std::int64_t>(queues_[q].ancestors.size()) - level;
  return n <= 0 ? kNoIx : queues_[q].ancestors[static_cast<std::size_t>(n)];
}

/// `candidates` in the order in which they would go.
std::vector<TaskIx> Session::capacity_victims(const Plugin& plugin,
                                              TaskIx preemptor,
                                              const std::vector<TaskIx>& candidates) const {
  std::vector<TaskIx> out;
  const bool tree = plugin.config->hierarchy;
  if (tree && !tree_ready_) return out;
  const std::int64_t levels =
      tree ? parse_int(plugin.argument("ancestorReclaimLevel")).value_or(0) : 0;
  const QueueIx mine = jobs_[tasks_[preemptor].job].queue;
  const Amounts& wanted = tasks_[preemptor].request;
  std::map<QueueIx, Amounts> left;
  const auto left_of = [&](QueueIx q) -> Amounts& {
    return left.try_emplace(q, queues_[q].allocated).first->second;
  };
  for (const TaskIx t : candidates) {
    const Amounts& request = tasks_[t].request;
    const QueueIx q = jobs_[tasks_[t].job].queue;
    bool shares_dimension = false;
    for (std::size_t i = 0; i < dims_; ++i)
      shares_dimension |= compared(i) && request[i] > 0 && wanted[i] > 0;
    if (!shares_dimension) continue;
    if (!everywhere_less_equal(queues_[q].guarantee, left_of(q) - request)) continue;
    if (!has_relevant_deserved(request, q)) {
      // Two queues without a word on the matter do not take from each other below a common
      // ancestor.
      bool related = false;
      for (std::int64_t a = 1; a <= levels; ++a) {
        for (std::int64_t b = 1; b <= levels; ++b)
          related |= ancestor_at(q, a) != kNoIx && ancestor_at(q, a) == ancestor_at(mine, b);
      }
      if (related && !has_relevant_deserved(wanted, mine)) continue;
    } else if (!above_deserved(left_of(q), request, q)) {
      continue;
    }
    std::vector<QueueIx> charged = {q};
    bool may = true;
    for (std::int64_t level = 1; level <= levels && may; ++level) {
      const QueueIx up = ancestor_at(q, level);
      if (up == kNoIx || up == ancestor_at(mine, level)) continue;
      charged.push_back(up);
      may = !has_relevant_deserved(request, up) || above_deserved(left_of(up), request, up);
    }
    if (!may) continue;
    for (const QueueIx c : charged) left_of(c) -= request;
    out.push_back(t);
  }
  return out;
}

std::vector<TaskIx> Session::pdb_victims(const std::vector<TaskIx>& candidates) const {
  std::map<std::string, std::int32_t> allowed;
  for (const auto& [key, b] : state_.budgets()) allowed[key] = b.disruptions_allowed;
  std::vector<TaskIx> out;
  for (const TaskIx t : candidates) {
    const PodState& pod = state_.pod(tasks_[t].pod);
    bool ok = true;
    for (const auto& [key, b] : state_.budgets()) {
      if (b.ns != pod.ns || !b.selector || !matches(*b.selector, pod.labels)) continue;
      if (--allowed[key] < 0) ok = false;
    }
    if (ok) out.push_back(t);
  }
  return out;
}

bool Session::lower_priority(TaskIx victim, TaskIx preemptor) const {
  const JobIx x = tasks_[victim].job;
  const JobIx y = tasks_[preemptor].job;
  if (x == y)
    return state_.pod(tasks_[victim].pod).priority < state_.pod(tasks_[preemptor].pod).priority;
  return state_.gang(jobs_[x].gang).spec.priority < state_.gang(jobs_[y].gang).spec.priority;
}

/// Volcano's plugins see the candidates in any order, and some count along: who is asked about
/// first uses up what may be taken. In victim order that may be those whom another plugin spares,
/// and nobody is named in common; Volcano's next cycle has another order, ours has not. So these
/// come last.
std::vector<TaskIx> Session::spared_last(std::vector<TaskIx> candidates,
                                         TaskIx preemptor,
                                         bool reclaiming) const {
  std::vector<TaskIx> likely = candidates;
  for (const Kind kind : {Kind::kConformance, Kind::kPriority, Kind::kGang}) {
    for (const auto& tier : tiers_) {
      for (const auto& p : tier) {
        if (p.kind != kind || !p.on(reclaiming ? "enableReclaimable" : "enablePreemptable"))
          continue;
        if (kind == Kind::kConformance)
          std::erase_if(likely, [&](TaskIx t) { return state_.pod(tasks_[t].pod).critical; });
        if (kind == Kind::kPriority && !reclaiming)
          std::erase_if(likely, [&](TaskIx t) { return !lower_priority(t, preemptor); });
        if (kind == Kind::kGang) likely = gang_victims(likely);
      }
    }
  }
  const std::set<TaskIx> first(likely.begin(), likely.end());
  std::stable_partition(
      candidates.begin(), candidates.end(), [&](TaskIx t) { return first.contains(t); });
  return candidates;
}

/// Inside a tier the answers are intersected; the first tier with a non-empty answer decides.
/// "Nobody" is therefore not a veto but a question to the next: a plugin that names nobody hands
/// over to the next tier, and where two plugins name nobody in common, the next plugin of their
/// tier starts anew.
std::vector<TaskIx> Session::victims(TaskIx preemptor,
                                     std::vector<TaskIx> candidates,
                                     bool reclaiming) const {
  const std::vector<TaskIx> sorted = sort_victims(std::move(candidates), preemptor);
  candidates = spared_last(sorted, preemptor, reclaiming);
  std::vector<TaskIx> chosen;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (!p.on(reclaiming ? "enableReclaimable" : "enablePreemptable")) continue;
      std::vector<TaskIx> answer;
      if (p.kind == Kind::kPriority && !reclaiming) {
        for (const TaskIx t : candidates) {
          if (lower_priority(t, preemptor)) answer.push_back(t);
        }
      } else if (p.kind == Kind::kGang) {
        answer = gang_victims(candidates);
      } else if (p.kind == Kind::kConformance) {
        for (const TaskIx t : candidates) {
          if (!state_.pod(tasks_[t].pod).critical) answer.push_back(t);
        }
      } else if (p.kind == Kind::kDrf && !reclaiming) {
        answer = drf_victims(preemptor, candidates);
      } else if (p.kind == Kind::kDrf && p.config->hierarchy) {
        answer = hierarchy_victims(preemptor, candidates);
      } else if (p.kind == Kind::kProportion && reclaiming) {
        answer = proportion_victims(candidates);
      } else if (p.kind == Kind::kCapacity && reclaiming) {
        answer = capacity_victims(p, preemptor, sorted);
      } else if (p.kind == Kind::kPdb) {
        answer = pdb_victims(candidates);
      } else {
        continue;
      }
      if (answer.empty()) {
        chosen.clear();
        break;
      }
      if (chosen.empty()) {
        chosen = std::move(answer);
      } else {
        const std::set<TaskIx> in(answer.begin(), answer.end());
        std::erase_if(chosen, [&](TaskIx t) { return !in.contains(t); });
      }
    }
    if (!chosen.empty()) return chosen;
  }
  return chosen;
}

/// Same job: last task first. Same queue: the job that the plugins would serve last first; where
/// they do not care, the last task first as if it were one job. Otherwise by queue.
std::vector<TaskIx> Session::sort_victims(std::vector<TaskIx> tasks, TaskIx preemptor) const {
  // stable_sort, which bears it that names with and without an index form circles.
  std::stable_sort(tasks.begin(), tasks.end(), [&](TaskIx a, TaskIx b) {
    if (a == b) return false;
    const JobIx x = tasks_[a].job;
    const JobIx y = tasks_[b].job;
    if (x == y) return task_before(b, a);
    const QueueIx qx = jobs_[x].queue;
    const QueueIx qy = jobs_[y].queue;
    if (qx != qy) return victim_queue_before(qx, qy, jobs_[tasks_[preemptor].job].queue);
    const int r = job_order(x, y);
    return r != 0 ? r > 0 : task_before(b, a);
  });
  return tasks;
}

// ------------------------------------------------------------------------------------------- nodes

bool Session::predicate(TaskIx t, NodeId node, bool preempting) const {
  bool asked = false;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) asked |= p.kind == Kind::kPredicates && p.on("enablePredicate");
  }
  if (!asked) return true;
  const TaskClass& cls = state_.cls_of(tasks_[t].pod);
  if (!fit_static(state_, cls, state_.node(node)).ok()) return false;
  if (!cls.spec.host_ports.empty()) {
    for (const TaskIx other : rooms_[node.index()].tasks) {
      if (tasks_[other].status == Status::kReleasing &&
          state_.pod(tasks_[other].pod).phase == PodPhase::kBound)
        continue;  // Just evicted.
      for (const auto& taken : state_.cls_of(tasks_[other].pod).spec.host_ports) {
        for (const auto& wanted : cls.spec.host_ports) {
          if (!preempting && ports_conflict(wanted, taken)) return false;
        }
      }
    }
  }
  const NodeRoom& room = rooms_[node.index()];
  if (!preempting && room.used[ResourceNames::kPods] + room.pipelined[ResourceNames::kPods] -
                             room.releasing[ResourceNames::kPods] +
                             tasks_[t].request[ResourceNames::kPods] >
                         room.allocatable[ResourceNames::kPods]) {
    return false;
  }
  return preempting || !needs_between(state_, tasks_[t].pod) ||
         fit_between(state_, tasks_[t].pod, node, &gone_).ok();
}

/// Nodes with the room now go before nodes with the room soon; then the best score; then the lowest
/// id.
NodeId Session::best_node(TaskIx t, bool for_best_effort, bool& idle) const {
  NodeId best;
  bool best_idle = false;
  std::int64_t best_score = 0;
  const Amounts& request = tasks_[t].request;
  const std::string& nominated = state_.pod(tasks_[t].pod).nominated_hint;
  for (const NodeId n : within_ ? *within_ : nodes_) {
    const NodeRoom& room = rooms_[n.index()];
    const bool now = fits(request, room.idle);
    if (for_best_effort && !now) continue;  // A pod slot is all it needs.
    // Room that is idle may be promised to pipelined tasks already.
    if (!for_best_effort && !fits(request, room.future())) continue;
    if (!predicate(t, n, false)) continue;
    // The room may be there in sum and not as whole (or shareable) devices.
    if (now &&
        fit_room(state_, state_.cls_of(tasks_[t].pod), state_.node(n)).cause == Cause::kDevices)
      continue;
    if (now && !nominated.empty() && state_.node(n).spec.name == nominated) {
      idle = true;
      return n;
    }
    const std::int64_t points = score(t, n);
    if (!best.valid() || (now && !best_idle) || (now == best_idle && points > best_score)) {
      best = n;
      best_idle = now;
      best_score = points;
    }
  }
  idle = best_idle;
  return best;
}

}  // namespace muster::engine::volcano
