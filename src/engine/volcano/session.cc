#include "engine/volcano/session.h"

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "engine/state/fit.h"
#include "engine/state/shares.h"

namespace muster::engine::volcano {

namespace {

Kind kind_of(std::string_view name) {
  if (name == "priority") return Kind::kPriority;
  if (name == "gang") return Kind::kGang;
  if (name == "conformance") return Kind::kConformance;
  if (name == "drf") return Kind::kDrf;
  if (name == "predicates") return Kind::kPredicates;
  if (name == "proportion") return Kind::kProportion;
  if (name == "capacity") return Kind::kCapacity;
  if (name == "overcommit") return Kind::kOvercommit;
  if (name == "sla") return Kind::kSla;
  if (name == "binpack") return Kind::kBinpack;
  if (name == "nodeorder") return Kind::kNodeorder;
  if (name == "pdb") return Kind::kPdb;
  return Kind::kOther;
}

/// "job-worker-12" -> 12; names with fewer than three parts have no index.
std::int64_t task_index(std::string_view key) {
  const auto slash = key.find('/');
  if (slash != std::string_view::npos) key.remove_prefix(slash + 1);
  if (std::count(key.begin(), key.end(), '-') < 2) return -1;
  const auto number = parse_int(key.substr(key.rfind('-') + 1));
  return number.value_or(-1);
}

/// "1.25" -> 1250000.
std::optional<std::int64_t> millionths(std::string_view text) {
  const auto dot = text.find('.');
  std::string digits(text.substr(0, dot));
  std::string fraction(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  fraction.resize(6, '0');
  const auto number = parse_int(digits + fraction);
  return number ? std::optional<std::int64_t>(*number) : std::nullopt;
}

bool is_allocated(Status s) {
  return s == Status::kAllocated || s == Status::kBinding || s == Status::kRunning;
}

}  // namespace

bool Plugin::on(std::string_view flag) const {
  return std::find(config->off.begin(), config->off.end(), flag) == config->off.end();
}

std::string Plugin::argument(std::string_view name) const {
  for (const auto& [k, v] : config->arguments) {
    if (k == name) return v;
  }
  return "";
}

bool Session::action_flag(std::string_view action, std::string_view key, bool fallback) const {
  for (const VolcanoAction& a : state_.config().volcano.configurations) {
    if (a.name != action) continue;
    for (const auto& [k, v] : a.arguments) {
      if (k == key && (v == "true" || v == "false")) return v == "true";
    }
  }
  return fallback;
}

Session::Session(State& state, Memory& memory, Time now)
    : state_(state), memory_(memory), now_(now), dims_(state.names().size()) {
  for (const auto& tier : state.config().volcano.tiers) {
    auto& plugins = tiers_.emplace_back();
    for (const auto& p : tier) plugins.push_back({kind_of(p.name), &p});
  }
  const auto& actions = state.config().volcano.actions;
  has_enqueue_ = std::find(actions.begin(), actions.end(), "enqueue") != actions.end();
  total_ = Amounts::of(state.total());
  load_queues();
  load_tasks();
  for (const auto& tier : tiers_) {
    for (const auto& plugin : tier) {
      if (plugin.kind == Kind::kProportion) open_proportion();
      if (plugin.kind == Kind::kCapacity && plugin.config->hierarchy) {
        tree_ = true;
        open_capacity_tree();
      }
      if (plugin.kind == Kind::kCapacity && !plugin.config->hierarchy) open_capacity_flat();
      if (plugin.kind == Kind::kOvercommit) open_overcommit();
      if (plugin.kind == Kind::kDrf && plugin.config->hierarchy) open_hierarchy();
    }
  }
}

void Session::load_queues() {
  queues_.resize(state_.tenant_count());
  for (std::uint32_t t = 0; t < state_.tenant_count(); ++t) {
    const TenantState& tenant = state_.tenant(TenantId(t));
    QueueAttr& q = queues_[t];
    q.tenant = TenantId(t);
    for (std::size_t i = 0; i < dims_; ++i) q.capability[i] = kInfinite;
    const Amounts limit = Amounts::of(tenant.capability);
    for (std::size_t i = 0; i < dims_; ++i) {
      const bool basic = i == ResourceNames::kCpu || i == ResourceNames::kMemory;
      const bool named = (tenant.capability_mask & (1U << i)) != 0;
      if (named && (!basic || limit[i] > 0)) q.capability[i] = limit[i];
    }
    q.guarantee = Amounts::of(tenant.guarantee);
    q.deserved = Amounts::of(tenant.deserved);
    for (const auto& a : tenant.spec.deserved) {
      const std::size_t i = state_.names().find(a.name);
      if (i != ResourceNames::kNone) q.deserved_named[i] = true;
    }
  }
}

void Session::load_tasks() {
  rooms_.resize(state_.node_count());
  for (std::uint32_t n = 0; n < state_.node_count(); ++n) {
    const NodeState& node = state_.node(NodeId(n));
    NodeRoom& room = rooms_[n];
    room.allocatable = Amounts::of(node.allocatable);
    room.used = Amounts::of(node.used);
    room.releasing = Amounts::of(node.releasing);
    room.idle = room.allocatable - room.used;
    if (node.live && node.spec.ready) nodes_.push_back(NodeId(n));
  }
  std::vector<GangId> gangs;
  for (std::uint32_t g = 0; g < state_.gang_count(); ++g) {
    const GangState& gang = state_.gang(GangId(g));
    if (gang.live && (gang.has_group || !gang.spec.key.empty()) && state_.tenant(gang.tenant).live)
      gangs.push_back(GangId(g));
  }
  std::sort(gangs.begin(), gangs.end(), [&](GangId a, GangId b) {
    return state_.gang(a).seq < state_.gang(b).seq;
  });
  for (const GangId id : gangs) {
    const GangState& gang = state_.gang(id);
    const JobIx ix = jobs_.size();
    Job& job = jobs_.emplace_back();
    job.gang = id;
    job.queue = gang.tenant.index();
    job.min_member = gang.spec.min_member;
    for (const auto& [role, n] : gang.spec.min_task_member) {
      job.role_min[role] = n;
      job.role_min_total += n;
    }
    job.phase = gang.has_group ? gang.phase : GroupPhase::kInqueue;
    if (gang.spec.min_resources) {
      job.has_min_resources = true;
      job.min_resources = Amounts::of(state_.vector_of(*gang.spec.min_resources));
    }
    std::vector<PodId> pods = gang.pods;
    std::sort(pods.begin(), pods.end(), [&](PodId a, PodId b) {
      return state_.pod(a).seq < state_.pod(b).seq;
    });
    for (const PodId p : pods) {
      const PodState& pod = state_.pod(p);
      Task t;
      t.pod = p;
      t.job = ix;
      t.node = pod.node;
      t.request = Amounts::of(state_.cls_of(p).request);
      t.index = task_index(pod.key);
      switch (pod.phase) {
        case PodPhase::kPending:
          t.status = Status::kPending;
          if (pod.gated) job.gated += t.request;
          break;
        case PodPhase::kBound:
          t.status = Status::kRunning;
          break;
        case PodPhase::kReleasing:
          t.status = Status::kReleasing;
          break;
        case PodPhase::kFinished:
          t.status = pod.succeeded ? Status::kSucceeded : Status::kFailed;
          break;
      }
      ++job.by_status[static_cast<std::size_t>(t.status)];
      if (is_allocated(t.status)) {
        job.allocated += t.request;
        job.drf += t.request;
      }
      const TaskIx task = tasks_.size();
      if (t.node.valid() && (is_allocated(t.status) || t.status == Status::kReleasing)) {
        rooms_[t.node.index()].tasks.push_back(task);
      }
      job.tasks.push_back(task);
      tasks_.push_back(std::move(t));
    }
  }
}

// ------------------------------------------------------------------------------------------ queues

Amounts Session::not_yet_allocated(const Job& job) const {
  Amounts left;
  for (std::size_t i = 0; i < dims_; ++i) {
    if (job.min_resources[i] > 0)
      left[i] = std::max<Wide>(job.min_resources[i] - job.allocated[i], 0);
  }
  for (std::size_t i = 0; i < dims_; ++i) left[i] = std::max<Wide>(left[i] - job.gated[i], 0);
  return left;
}

void Session::sum_queues(bool tree) {
  for (const Job& job : jobs_) {
    Amounts request;
    Amounts inqueue;
    for (const TaskIx t : job.tasks) {
      if (is_allocated(tasks_[t].status) || tasks_[t].status == Status::kPending)
        request += tasks_[t].request;
    }
    const std::int32_t allocated =
        job.count(Status::kAllocated) + job.count(Status::kBinding) + job.count(Status::kRunning);
    const bool counts = job.phase == GroupPhase::kInqueue ||
                        (job.phase == GroupPhase::kRunning && allocated >= job.min_member);
    if (job.has_min_resources && counts) inqueue = not_yet_allocated(job);
    const Amounts elastic = exceeded(job.allocated, job.min_resources);
    std::vector<QueueIx> chain = {job.queue};
    if (tree)
      chain.insert(
          chain.end(), queues_[job.queue].ancestors.begin(), queues_[job.queue].ancestors.end());
    for (const QueueIx q : chain) {
      queues_[q].used = true;
      queues_[q].allocated += job.allocated;
      queues_[q].request += request;
      queues_[q].inqueue += inqueue;
      queues_[q].elastic += elastic;
    }
  }
}

void Session::update_share(QueueIx ix) {
  QueueAttr& q = queues_[ix];
  bool proportion = false;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) proportion |= p.kind == Kind::kProportion;
  }
  if (!proportion && is_empty(q.deserved)) {
    q.share = kWhole;
    return;
  }
  q.share = 0;
  for (std::size_t i = 0; i < dims_; ++i) {
    if (q.deserved[i] >= kTolerance)
      q.share = std::max(q.share, share_of(q.allocated[i], q.deserved[i]));
  }
}

namespace {

Amounts sum_of_guarantees(const State& state) {
  Amounts sum;
  for (std::uint32_t t = 0; t < state.tenant_count(); ++t) {
    if (state.tenant(TenantId(t)).live) sum += Amounts::of(state.tenant(TenantId(t)).guarantee);
  }
  return sum;
}

}  // namespace

void Session::open_proportion() {
  sum_queues(false);
  const Amounts guarantees = sum_of_guarantees(state_);
  std::vector<Claim> claims;
  std::vector<QueueIx> owners;
  for (QueueIx q = 0; q < queues_.size(); ++q) {
    QueueAttr& attr = queues_[q];
    attr.real = exceeded(total_, guarantees) + attr.guarantee;
    for (std::size_t i = 0; i < dims_; ++i)
      attr.real[i] = std::min(attr.real[i], attr.capability[i]);
    attr.deserved = Amounts();
    if (!attr.used) continue;
    owners.push_back(q);
    claims.push_back(
        {state_.tenant(attr.tenant).spec.weight, attr.real, attr.request, attr.guarantee, {}});
  }
  water_fill(total_, dims_, claims);
  for (std::size_t i = 0; i < owners.size(); ++i) queues_[owners[i]].deserved = claims[i].deserved;
  for (QueueIx q = 0; q < queues_.size(); ++q) update_share(q);
}

void Session::open_capacity_flat() {
  sum_queues(false);
  const Amounts guarantees = sum_of_guarantees(state_);
  for (QueueIx q = 0; q < queues_.size(); ++q) {
    QueueAttr& attr = queues_[q];
    attr.real = exceeded(total_, guarantees) + attr.guarantee;
    for (std::size_t i = 0; i < dims_; ++i) {
      attr.real[i] = std::min(attr.real[i], attr.capability[i]);
      attr.deserved[i] = std::max(std::min(attr.deserved[i], attr.real[i]), attr.guarantee[i]);
    }
    update_share(q);
  }
}

void Session::open_capacity_tree() {
  const TenantId root = state_.find_tenant("root");
  if (!root.valid() || !state_.tenant(root).live) {
    tree_ready_ = false;
    return;
  }
  for (QueueIx q = 0; q < queues_.size(); ++q) {
    if (!state_.tenant(TenantId(static_cast<std::uint32_t>(q))).live || q == root.index()) continue;
    const TenantId parent = state_.tenant(queues_[q].tenant).parent;
    queues_[q].parent = parent.valid() ? parent.index() : root.index();
    if (parent.valid() && !state_.tenant(parent).live) tree_ready_ = false;
    queues_[queues_[q].parent].children.push_back(q);
  }
  for (QueueIx q = 0; q < queues_.size(); ++q) {
    for (QueueIx up = queues_[q].parent; up != kNoIx && queues_[q].ancestors.size() < 32;
         up = queues_[up].parent) {
      queues_[q].ancestors.insert(queues_[q].ancestors.begin(), up);
    }
  }
  sum_queues(true);
  for (const Job& job : jobs_) {
    if (!queues_[job.queue].children.empty()) tree_ready_ = false;
  }
  // What no node has is not unlimited: the root covers the cluster's dimensions only.
  for (std::size_t i = 0; i < dims_; ++i) {
    const bool basic = i == ResourceNames::kCpu || i == ResourceNames::kMemory;
    if (!basic && total_[i] == 0 && queues_[root.index()].capability[i] == kInfinite)
      queues_[root.index()].capability[i] = 0;
  }
  queues_[root.index()].real = queues_[root.index()].capability;
  walk_tree(root.index());
  for (QueueIx q = 0; q < queues_.size(); ++q) update_share(q);
}

void Session::walk_tree(QueueIx ix) {
  Amounts guarantees;
  Amounts deserved;
  for (const QueueIx c : queues_[ix].children) {
    QueueAttr& child = queues_[c];
    for (std::size_t i = 0; i < dims_; ++i)
      child.deserved[i] = std::max(child.deserved[i], child.guarantee[i]);
    guarantees += child.guarantee;
    deserved += child.deserved;
    // An unlimited dimension is the parent's.
    for (std::size_t i = 0; i < dims_; ++i) {
      if (child.capability[i] == kInfinite) child.capability[i] = queues_[ix].capability[i];
    }
  }
  if (queues_[ix].parent == kNoIx) {
    queues_[ix].guarantee = guarantees;
    queues_[ix].deserved = deserved;
  }
  for (const QueueIx c : queues_[ix].children) {
    QueueAttr& child = queues_[c];
    child.real = exceeded(queues_[ix].real, guarantees) + child.guarantee;
    for (std::size_t i = 0; i < dims_; ++i)
      child.real[i] = std::min(child.real[i], child.capability[i]);
  }
  const std::vector<QueueIx> children = queues_[ix].children;
  for (const QueueIx c : children) walk_tree(c);
}

void Session::open_overcommit() {
  std::int64_t factor = 1'200'000;  // millionths
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      if (p.kind == Kind::kOvercommit)
        factor = millionths(p.argument("overcommit-factor")).value_or(factor);
    }
  }
  if (factor < 1'000'000) factor = 1'200'000;  // Below 1 counts as a mistake.
  for (std::size_t i = 0; i < dims_; ++i) overcommit_idle_[i] = total_[i] * factor / 1'000'000;
  for (const NodeId n : nodes_) overcommit_idle_ -= rooms_[n.index()].used;
  for (const Job& job : jobs_) {
    if (!job.has_min_resources) continue;
    const std::int32_t allocated =
        job.count(Status::kAllocated) + job.count(Status::kBinding) + job.count(Status::kRunning);
    if (job.phase == GroupPhase::kInqueue ||
        (job.phase == GroupPhase::kRunning && allocated >= job.min_member)) {
      overcommit_inqueue_ += not_yet_allocated(job);
    }
  }
}

void Session::open_hierarchy() {
  std::set<QueueIx> queues;
  for (const Job& job : jobs_) queues.insert(job.queue);
  hierarchy_.emplace(total_, dims_);
  for (const QueueIx q : queues) {
    const engine::Queue& spec = state_.tenant(queues_[q].tenant).spec;
    hierarchy_->add_queue(q, {spec.hierarchy, spec.hierarchy_weights, spec.name, spec.weight});
  }
  for (JobIx j = 0; j < jobs_.size(); ++j) {
    // Pods that ended are not wanted any more; those of a group without any are still to come.
    Amounts wanted;
    bool over = jobs_[j].phase == GroupPhase::kCompleted || !jobs_[j].tasks.empty();
    for (const TaskIx t : jobs_[j].tasks) {
      if (tasks_[t].status == Status::kSucceeded || tasks_[t].status == Status::kFailed) continue;
      wanted += tasks_[t].request;
      over = false;
    }
    if (!over) hierarchy_->add_job(j, jobs_[j].queue, jobs_[j].drf, wanted);
  }
}

// --------------------------------------------------------------------------------------- statement

void Session::charge(JobIx ix, const Amounts& request, bool add) {
  Job& job = jobs_[ix];
  const auto apply = [&](Amounts& a) {
    if (add) {
      a += request;
    } else {
      a -= request;
    }
  };
  apply(job.drf);
  if (hierarchy_) hierarchy_->charge(ix, request, add);
  apply(queues_[job.queue].allocated);
  update_share(job.queue);
  if (tree_) {
    // Volcano leaves the ancestors' share as it was when the session opened.
    for (const QueueIx q : queues_[job.queue].ancestors) apply(queues_[q].allocated);
  }
}

void Session::set_status(TaskIx ix, Status status) {
  Task& task = tasks_[ix];
  Job& job = jobs_[task.job];
  --job.by_status[static_cast<std::size_t>(task.status)];
  if (is_allocated(task.status)) job.allocated -= task.request;
  task.status = status;
  ++job.by_status[static_cast<std::size_t>(status)];
  if (is_allocated(status)) job.allocated += task.request;
}

void Session::do_allocate(TaskIx ix, NodeId node, std::vector<Op>& ops) {
  Task& task = tasks_[ix];
  NodeRoom& room = rooms_[node.index()];
  task.node = node;
  set_status(ix, Status::kAllocated);
  room.idle -= task.request;
  room.used += task.request;
  room.tasks.push_back(ix);
  state_.bind(task.pod, node, now_);
  charge(task.job, task.request, true);
  ops.push_back({Op::What::kAllocate, ix});
}

void Session::do_pipeline(TaskIx ix, NodeId node, bool eviction, std::vector<Op>& ops) {
  Task& task = tasks_[ix];
  task.node = node;
  task.eviction = eviction;
  set_status(ix, Status::kPipelined);
  rooms_[node.index()].pipelined += task.request;
  charge(task.job, task.request, true);
  ops.push_back({Op::What::kPipeline, ix});
}

void Session::do_evict(TaskIx ix, std::vector<Op>& ops) {
  Task& task = tasks_[ix];
  set_status(ix, Status::kReleasing);
  gone_.insert(task.pod);
  rooms_[task.node.index()].releasing += task.request;
  charge(task.job, task.request, false);
  ops.push_back({Op::What::kEvict, ix});
}

void Session::discard(std::vector<Op>& ops) {
  for (auto it = ops.rbegin(); it != ops.rend(); ++it) {
    Task& task = tasks_[it->task];
    NodeRoom& room = rooms_[task.node.index()];
    switch (it->what) {
      case Op::What::kAllocate:
        room.idle += task.request;
        room.used -= task.request;
        room.tasks.erase(std::find(room.tasks.begin(), room.tasks.end(), it->task));
        state_.unbind(task.pod);
        charge(task.job, task.request, false);
        set_status(it->task, Status::kPending);
        task.node = NodeId{};
        break;
      case Op::What::kPipeline:
        room.pipelined -= task.request;
        charge(task.job, task.request, false);
        set_status(it->task, Status::kPending);
        task.node = NodeId{};
        task.eviction = false;
        break;
      case Op::What::kEvict:
        gone_.erase(task.pod);
        room.releasing -= task.request;
        charge(task.job, task.request, true);
        set_status(it->task, Status::kRunning);
        break;
    }
  }
  ops.clear();
}

void Session::commit(std::vector<Op>& ops, JobIx on_behalf, EvictKind kind) {
  for (const Op& op : ops) {
    Task& task = tasks_[op.task];
    const PodState& pod = state_.pod(task.pod);
    if (op.what == Op::What::kAllocate) {
      set_status(op.task, Status::kBinding);
      bound_now_.push_back(op.task);
    } else if (op.what == Op::What::kEvict) {
      const GangState& winner = state_.gang(jobs_[on_behalf].gang);
      Evict e;
      e.pod = pod.key;
      e.uid = pod.uid;
      e.node = state_.node(task.node).spec.name;
      e.kind = kind;
      e.for_whom = winner.key;
      e.message = (kind == EvictKind::kPreempt ? "Preempted by " : "Reclaimed for ") + winner.key +
                  " on node " + e.node;
      plan_.evicts.push_back(std::move(e));
    } else if (task.eviction) {
      plan_.nominations.push_back({pod.key, state_.node(task.node).spec.name});
    }
  }
  ops.clear();
}

// --------------------------------------------------------------------------------------------- run

Plan Session::run() {
  const auto& actions = state_.config().volcano.actions;
  for (auto it = actions.begin(); it != actions.end(); ++it) {
    const std::string& action = *it;
    allocate_follows_ = std::find(std::next(it), actions.end(), "allocate") != actions.end();
    if (action == "enqueue") enqueue();
    if (action == "allocate") allocate();
    if (action == "backfill") backfill();
    if (action == "preempt") preempt();
    if (action == "reclaim") reclaim();
    if (action == "gangpreempt") gang_evict(false);
    if (action == "gangreclaim") gang_evict(true);
  }
  close();
  return std::move(plan_);
}

void Session::close() {
  bool gang_plugin = false;
  bool sla = false;
  for (const auto& tier : tiers_) {
    for (const auto& p : tier) {
      gang_plugin |= p.kind == Kind::kGang;
      sla |= p.kind == Kind::kSla;
    }
  }
  for (const Task& task : tasks_) {
    // Kept for the rest of the session only: the group is not whole.
    if (task.status == Status::kAllocated) state_.unbind(task.pod);
  }
  for (const TaskIx t : bound_now_) {
    const Task& task = tasks_[t];
    const PodState& pod = state_.pod(task.pod);
    Bind b;
    b.pod = pod.key;
    b.uid = pod.uid;
    b.node = state_.node(task.node).spec.name;
    for (const auto i : pod.devices) b.devices.push_back(state_.node(task.node).devices[i].index);
    b.device_share_milli = state_.cls(pod.cls).share_milli;
    plan_.binds.push_back(std::move(b));
  }
  for (const Evict& e : plan_.evicts) state_.evict(state_.find_pod(e.pod));
  tell_waits();
  for (const Job& job : jobs_) {
    GangState& gang = state_.gang(job.gang);
    if (!gang.has_group) continue;
    const std::int32_t running = job.count(Status::kRunning);
    const std::int32_t ended = job.count(Status::kSucceeded) + job.count(Status::kFailed);
    const std::int32_t scheduled = running + ended + job.count(Status::kReleasing);
    const std::int32_t ready = ready_tasks(job) + pending_best_effort(job);
    const bool leaving_whole =
        ready + job.count(Status::kReleasing) >= job.min_member && job.count(Status::kPending) == 0;
    GroupPhase phase = job.phase;
    if (gang_plugin && running > 0 && ready < job.min_member && !leaving_whole) {
      phase = GroupPhase::kUnknown;
    } else if (scheduled >= job.min_member) {
      phase = ended == scheduled ? GroupPhase::kCompleted : GroupPhase::kRunning;
    } else if (phase != GroupPhase::kInqueue) {
      phase = GroupPhase::kPending;
    }
    if (phase != gang.phase) {
      gang.phase = phase;
      plan_.phases.push_back({gang.key, phase});
    }
    if (sla && gang.phase == GroupPhase::kPending) {
      for (const auto& tier : tiers_) {
        for (const auto& p : tier) {
          if (p.kind != Kind::kSla) continue;
          const std::int64_t at = sla_deadline(p, job);
          if (at > now_.us && (!plan_.wake || at < plan_.wake->us)) plan_.wake = Time{at};
        }
      }
    }
  }
}

}  // namespace muster::engine::volcano
