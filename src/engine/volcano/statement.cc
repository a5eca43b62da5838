#include "engine/volcano/statement.h"

#include <algorithm>
#include <utility>

#include "base/result.h"

namespace muster::engine::volcano {

void Statement::charge(const Task& task, bool add) {
  snapshot_.charge(task.job, task.request, add);
  for (const auto& tier : session_.ask().tiers()) {
    for (const auto& plugin : tier) plugin->charged(task.job, task.request, add);
  }
}

void Statement::allocate(TaskIx ix, NodeId node) {
  Task& task = snapshot_.tasks[ix];
  NodeRoom& room = snapshot_.rooms[node.index()];
  task.node = node;
  snapshot_.set_status(ix, Status::kAllocated);
  room.idle -= task.request;
  room.used += task.request;
  room.tasks.push_back(ix);
  snapshot_.state.bind(task.pod, node, snapshot_.now);
  charge(task, true);
  ops_.push_back({What::kAllocate, ix});
}

void Statement::pipeline(TaskIx ix, NodeId node, bool eviction) {
  Task& task = snapshot_.tasks[ix];
  task.node = node;
  task.eviction = eviction;
  snapshot_.set_status(ix, Status::kPipelined);
  snapshot_.rooms[node.index()].pipelined += task.request;
  charge(task, true);
  ops_.push_back({What::kPipeline, ix});
}

void Statement::evict(TaskIx ix) {
  const Task& task = snapshot_.tasks[ix];
  snapshot_.set_status(ix, Status::kReleasing);
  snapshot_.gone.insert(task.pod);
  snapshot_.rooms[task.node.index()].releasing += task.request;
  charge(task, false);
  ops_.push_back({What::kEvict, ix});
}

void Statement::undo(const Op& op) {
  Task& task = snapshot_.tasks[op.task];
  NodeRoom& room = snapshot_.rooms[task.node.index()];
  switch (op.what) {
    case What::kAllocate: {
      room.idle += task.request;
      room.used -= task.request;
      const auto at = std::find(room.tasks.begin(), room.tasks.end(), op.task);
      MUSTER_CHECK(at != room.tasks.end(), "an allocated task is on the list of its node");
      room.tasks.erase(at);
      snapshot_.state.unbind(task.pod);
      charge(task, false);
      snapshot_.set_status(op.task, Status::kPending);
      task.node = NodeId{};
      break;
    }
    case What::kPipeline:
      room.pipelined -= task.request;
      charge(task, false);
      snapshot_.set_status(op.task, Status::kPending);
      task.node = NodeId{};
      task.eviction = false;
      break;
    case What::kEvict:
      snapshot_.gone.erase(task.pod);
      room.releasing -= task.request;
      charge(task, true);
      snapshot_.set_status(op.task, Status::kRunning);
      break;
  }
}

void Statement::discard() {
  for (auto it = ops_.rbegin(); it != ops_.rend(); ++it) undo(*it);
  ops_.clear();
}

void Statement::spare(TaskIx task) {
  undo({What::kEvict, task});
  std::erase_if(ops_, [&](const Op& op) { return op.task == task; });
}

void Statement::unpipeline(Session& session, TaskIx task) {
  Statement(session).undo({What::kPipeline, task});
}

void Statement::take(Statement& other) {
  ops_.insert(ops_.end(), other.ops_.begin(), other.ops_.end());
  other.ops_.clear();
}

std::vector<TaskIx> Statement::evicted() const {
  std::vector<TaskIx> out;
  for (const Op& op : ops_) {
    if (op.what == What::kEvict) out.push_back(op.task);
  }
  return out;
}

void Statement::commit(JobIx on_behalf, EvictKind kind) {
  const State& state = snapshot_.state;
  Plan& plan = session_.plan();
  for (const Op& op : ops_) {
    const Task& task = snapshot_.tasks[op.task];
    const PodState& pod = state.pod(task.pod);
    if (op.what == What::kAllocate) {
      snapshot_.set_status(op.task, Status::kBinding);
      session_.bind_at_end(op.task);
    } else if (op.what == What::kEvict) {
      const GangState& winner = state.gang(snapshot_.jobs[on_behalf].gang);
      Evict e;
      e.pod = pod.key;
      e.uid = pod.uid;
      e.node = state.node(task.node).spec->name;
      e.kind = kind;
      e.for_whom = winner.key;
      e.message = (kind == EvictKind::kPreempt ? "Preempted by " : "Reclaimed for ") + *winner.key +
                  " on node " + e.node;
      plan.evicts.push_back(std::move(e));
    } else if (task.eviction) {
      plan.nominations.push_back({pod.key, state.node(task.node).spec->name});
    }
  }
  ops_.clear();
}

void Statement::commit_evictions(JobIx job, EvictKind kind) {
  const bool evicts = !evicted().empty();
  if ((evicts || !session_.allocate_follows()) && session_.ask().job_pipelined(job)) {
    commit(job, kind);
  } else {
    discard();
  }
}

}  // namespace muster::engine::volcano
