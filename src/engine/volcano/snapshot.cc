#include "engine/volcano/snapshot.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/strings.h"

namespace muster::engine::volcano {

namespace {

/// "job-worker-12" -> 12; names with fewer than three parts have no index.
std::int64_t task_index(std::string_view key) {
  const auto slash = key.find('/');
  if (slash != std::string_view::npos) key.remove_prefix(slash + 1);
  if (std::count(key.begin(), key.end(), '-') < 2) return -1;
  const auto number = parse_int(key.substr(key.rfind('-') + 1));
  return number.value_or(-1);
}

Status status_of(const PodState& pod) {
  switch (pod.phase) {
    case PodPhase::kPending:
      return Status::kPending;
    case PodPhase::kBound:
      return Status::kRunning;
    case PodPhase::kReleasing:
      return Status::kReleasing;
    case PodPhase::kFinished:
      return pod.succeeded ? Status::kSucceeded : Status::kFailed;
  }
  return Status::kPending;
}

void apply(Amounts& to, const Amounts& amount, bool add) {
  if (add) {
    to += amount;
  } else {
    to -= amount;
  }
}

}  // namespace

Snapshot::Snapshot(State& world, Time at)
    : state(world), now(at), dims(world.names().size()), total(Amounts::of(world.total())) {
  load_queues();
  load_nodes();
  load_jobs();
}

void Snapshot::load_queues() {
  queues.resize(state.tenant_count());
  for (std::uint32_t t = 0; t < state.tenant_count(); ++t) {
    const TenantState& tenant = state.tenant(TenantId(t));
    QueueAttr& q = queues[t];
    q.tenant = TenantId(t);
    for (std::size_t i = 0; i < dims; ++i) q.capability[i] = kInfinite;
    const Amounts limit = Amounts::of(tenant.capability);
    for (std::size_t i = 0; i < dims; ++i) {
      const bool basic = i == ResourceNames::kCpu || i == ResourceNames::kMemory;
      const bool named = (tenant.capability_mask & (1U << i)) != 0;
      if (named && (!basic || limit[i] > 0)) q.capability[i] = limit[i];
    }
    q.guarantee = Amounts::of(tenant.guarantee);
    q.deserved = Amounts::of(tenant.deserved);
    for (const auto& a : tenant.spec.deserved) {
      const std::size_t i = state.names().find(a.name);
      if (i != ResourceNames::kNone) q.deserved_named[i] = true;
    }
  }
}

void Snapshot::load_nodes() {
  rooms.resize(state.node_count());
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    const NodeState& node = state.node(NodeId(n));
    NodeRoom& room = rooms[n];
    room.allocatable = Amounts::of(node.allocatable);
    room.used = Amounts::of(node.used);
    room.releasing = Amounts::of(node.releasing);
    room.idle = room.allocatable - room.used;
    if (node.live && node.spec->ready) nodes.push_back(NodeId(n));
  }
}

void Snapshot::load_jobs() {
  std::vector<GangId> gangs;
  for (std::uint32_t g = 0; g < state.gang_count(); ++g) {
    const GangState& gang = state.gang(GangId(g));
    if (gang.live && (gang.has_group || gang.described) && state.tenant(gang.tenant).live)
      gangs.push_back(GangId(g));
  }
  std::sort(gangs.begin(), gangs.end(), [&](GangId a, GangId b) {
    return state.gang(a).seq < state.gang(b).seq;
  });
  for (const GangId id : gangs) load_job(id);
}

void Snapshot::load_job(GangId id) {
  const GangState& gang = state.gang(id);
  const JobIx ix = jobs.size();
  Job& job = jobs.emplace_back();
  job.gang = id;
  job.queue = gang.tenant.index();
  job.min_member = gang.spec->min_member;
  for (const auto& [role, n] : gang.spec->min_task_member) {
    job.role_min[role] = n;
    job.role_min_total += n;
  }
  job.phase = gang.has_group ? gang.phase : GroupPhase::kInqueue;
  if (gang.spec->min_resources) {
    job.has_min_resources = true;
    job.min_resources = Amounts::of(state.vector_of(*gang.spec->min_resources));
  }
  std::vector<PodId> pods = gang.pods;
  std::sort(pods.begin(), pods.end(), [&](PodId a, PodId b) {
    return state.pod(a).seq < state.pod(b).seq;
  });
  for (const PodId p : pods) load_task(p, ix);
}

void Snapshot::load_task(PodId id, JobIx ix) {
  const PodState& pod = state.pod(id);
  Job& job = jobs[ix];
  Task t;
  t.pod = id;
  t.job = ix;
  t.node = pod.node;
  t.request = Amounts::of(state.cls_of(id).request);
  t.index = task_index(*pod.key);
  t.status = status_of(pod);
  if (t.status == Status::kPending && pod.gated) job.gated += t.request;
  ++job.by_status[static_cast<std::size_t>(t.status)];
  if (is_allocated(t.status)) {
    job.allocated += t.request;
    job.drf += t.request;
  }
  const TaskIx task = tasks.size();
  if (t.node.valid() && (is_allocated(t.status) || t.status == Status::kReleasing))
    rooms[t.node.index()].tasks.push_back(task);
  job.tasks.push_back(task);
  tasks.push_back(std::move(t));
}

// ------------------------------------------------------------------ questions

std::int32_t Snapshot::pending_best_effort(const Job& job) const {
  std::int32_t n = 0;
  for (const TaskIx t : job.tasks)
    n += tasks[t].status == Status::kPending && best_effort(t) ? 1 : 0;
  return n;
}

Amounts Snapshot::not_yet_allocated(const Job& job) const {
  Amounts left;
  for (std::size_t i = 0; i < dims; ++i) {
    if (job.min_resources[i] > 0)
      left[i] = std::max<Wide>(job.min_resources[i] - job.allocated[i], 0);
  }
  for (std::size_t i = 0; i < dims; ++i) left[i] = std::max<Wide>(left[i] - job.gated[i], 0);
  return left;
}

bool Snapshot::counts_as_inqueue(const Job& job) const {
  return job.has_min_resources &&
         (job.phase == GroupPhase::kInqueue ||
          (job.phase == GroupPhase::kRunning && job.allocated_tasks() >= job.min_member));
}

std::vector<QueueIx> Snapshot::chain(QueueIx queue, bool up) const {
  std::vector<QueueIx> out = {queue};
  const auto& above = queues[queue].ancestors;
  if (up) out.insert(out.end(), above.begin(), above.end());
  return out;
}

std::size_t Snapshot::common_level(QueueIx a, QueueIx b) const {
  const auto& x = queues[a].ancestors;
  const auto& y = queues[b].ancestors;
  std::size_t level = 0;
  for (std::size_t i = 0; i < std::min(x.size(), y.size()) && x[i] == y[i]; ++i) level = i;
  return level;
}

std::vector<TaskIx> Snapshot::placeable_tasks(JobIx j) const {
  std::vector<TaskIx> out;
  for (const TaskIx t : jobs[j].tasks) {
    const PodState& pod = pod_of(t);
    if (tasks[t].status == Status::kPending && !pod.gated && pod.ours) out.push_back(t);
  }
  return out;
}

// ------------------------------------------------------------------ books

void Snapshot::sum_queues(bool up) {
  for (const Job& job : jobs) {
    Amounts request;
    Amounts inqueue;
    for (const TaskIx t : job.tasks) {
      if (is_allocated(tasks[t].status) || tasks[t].status == Status::kPending)
        request += tasks[t].request;
    }
    if (counts_as_inqueue(job)) inqueue = not_yet_allocated(job);
    const Amounts elastic = exceeded(job.allocated, job.min_resources);
    for (const QueueIx q : chain(job.queue, up)) {
      queues[q].used = true;
      queues[q].allocated += job.allocated;
      queues[q].request += request;
      queues[q].inqueue += inqueue;
      queues[q].elastic += elastic;
    }
  }
}

void Snapshot::update_share(QueueIx ix) {
  QueueAttr& q = queues[ix];
  if (!by_weight && is_empty(q.deserved)) {
    q.share = kWhole;
    return;
  }
  q.share = 0;
  for (std::size_t i = 0; i < dims; ++i) {
    if (q.deserved[i] >= kTolerance)
      q.share = std::max(q.share, share_of(q.allocated[i], q.deserved[i]));
  }
}

void Snapshot::charge(JobIx ix, const Amounts& request, bool add) {
  Job& job = jobs[ix];
  apply(job.drf, request, add);
  apply(queues[job.queue].allocated, request, add);
  update_share(job.queue);
  if (!tree) return;
  // Volcano leaves the ancestors' share as it was when the session opened.
  for (const QueueIx q : queues[job.queue].ancestors) apply(queues[q].allocated, request, add);
}

void Snapshot::set_status(TaskIx ix, Status status) {
  Task& task = tasks[ix];
  Job& job = jobs[task.job];
  std::int32_t& before = job.by_status[static_cast<std::size_t>(task.status)];
  MUSTER_CHECK(before > 0, "a job counts its tasks by their status");
  --before;
  if (is_allocated(task.status)) job.allocated -= task.request;
  task.status = status;
  ++job.by_status[static_cast<std::size_t>(status)];
  if (is_allocated(status)) job.allocated += task.request;
}

}  // namespace muster::engine::volcano
