#include <map>
#include <optional>
#include <utility>

#include "engine/volcano/actions/actions.h"
#include "engine/volcano/actions/jobs.h"
#include "engine/volcano/statement.h"
#include "engine/volcano/topology.h"

namespace muster::engine::volcano {

namespace {

class Allocate {
 public:
  explicit Allocate(Session& session) : session_(session), snapshot_(session.snapshot()) {}

  void run();

 private:
  enum class Outcome : std::uint8_t { kNothing, kHeld, kReady };

  void place_job(JobIx job, std::vector<TaskIx>& pending, std::vector<JobIx>& jobs);
  Outcome place_tasks(JobIx job, std::vector<TaskIx>& pending, Statement& statement);
  bool choose_domain(JobIx job, const std::vector<TaskIx>& pending);
  [[nodiscard]] std::optional<std::vector<NodeId>> best_domain(JobIx job,
                                                               const std::string& key,
                                                               const std::vector<TaskIx>& pending);
  [[nodiscard]] bool worth_going_on(const Job& job) const;

  Session& session_;
  Snapshot& snapshot_;
};

void Allocate::run() {
  JobsByQueue work(session_);
  std::vector<std::vector<TaskIx>> pending(snapshot_.jobs.size());
  for (JobIx j = 0; j < snapshot_.jobs.size(); ++j) {
    Job& job = snapshot_.jobs[j];
    if (job.phase == GroupPhase::kPending) {
      if (session_.has_enqueue()) continue;
      job.phase = GroupPhase::kInqueue;
    }
    if (!session_.ask().job_valid(j) || snapshot_.state.gang(job.gang).spec->hold) continue;
    work.add(job.queue, j);
    pending[j] = session_.ask().pending_tasks(j);
    std::erase_if(pending[j], [&](TaskIx t) { return snapshot_.best_effort(t); });
  }
  while (!work.queues.empty()) {
    const QueueIx q = pop_queue(session_, work.queues);
    if (session_.ask().overused(q) || work.jobs[q].empty()) continue;
    const JobIx j = pop_job(session_, work.jobs[q]);
    if (!pending[j].empty()) place_job(j, pending[j], work.jobs[q]);
    work.queues.push_back(q);
  }
}

/// One attempt: as many tasks as it takes to be ready. What is left waits for its turn behind the
/// others.
void Allocate::place_job(JobIx j, std::vector<TaskIx>& pending, std::vector<JobIx>& jobs) {
  ++snapshot_.state.attempts;
  const auto& levels = snapshot_.state.gang(snapshot_.jobs[j].gang).spec->topology;
  if (!levels.empty() && !choose_domain(j, pending)) return;
  Statement statement(session_);
  const Outcome outcome = place_tasks(j, pending, statement);
  snapshot_.within.reset();
  if (outcome == Outcome::kReady) {
    statement.commit(j, EvictKind::kPreempt);
    if (!pending.empty()) jobs.push_back(j);
  } else if (outcome == Outcome::kNothing) {
    statement.discard();
  }
}

Allocate::Outcome Allocate::place_tasks(JobIx j,
                                        std::vector<TaskIx>& pending,
                                        Statement& statement) {
  Job& job = snapshot_.jobs[j];
  const bool error_cache = session_.action_flag("allocate", "predicateErrorCacheEnable", true);
  while (!pending.empty()) {
    const TaskIx t = pending.front();
    pending.erase(pending.begin());
    if (!session_.ask().allocatable(t)) continue;
    const std::string& role = snapshot_.pod_of(t).role;
    if (!role.empty() && error_cache && job.failed_roles.contains(role)) continue;
    const BestNode best = session_.ask().best_node(t, false);
    if (!best.node.valid()) {
      job.failed_roles.insert(role);
      if (worth_going_on(job)) continue;
      break;
    }
    if (best.idle) {
      statement.allocate(t, best.node);
    } else {
      statement.pipeline(t, best.node, false);
    }
    if (session_.ask().job_ready(j)) break;
  }
  if (session_.ask().job_ready(j)) return Outcome::kReady;
  return session_.ask().job_pipelined(j) ? Outcome::kHeld : Outcome::kNothing;
}

/// After one member of a role found no node: is it worth trying the rest?
bool Allocate::worth_going_on(const Job& job) const {
  if (job.min_member >= static_cast<std::int32_t>(job.tasks.size())) return false;
  if (job.min_member < job.role_min_total) {
    std::int32_t left = 0;
    for (const TaskIx t : job.tasks) {
      const bool may_fit = snapshot_.tasks[t].status == Status::kPending &&
                           !job.failed_roles.contains(snapshot_.pod_of(t).role);
      left += may_fit ? 1 : 0;
    }
    return job.ready_tasks() + left >= job.min_member;
  }
  std::map<std::string, std::int32_t> have;
  for (const TaskIx t : job.tasks) {
    const Status s = snapshot_.tasks[t].status;
    const bool counts = is_allocated(s) || s == Status::kSucceeded ||
                        (s == Status::kPending && snapshot_.best_effort(t));
    if (counts) ++have[snapshot_.pod_of(t).role];
  }
  for (const auto& role : job.failed_roles) {
    const auto it = job.role_min.find(role);
    if (it != job.role_min.end() && have[role] < it->second) return false;
  }
  return true;
}

/// In each domain of the label the group is placed as a trial; of those that take it the fullest
/// wins.
std::optional<std::vector<NodeId>> Allocate::best_domain(JobIx j,
                                                         const std::string& key,
                                                         const std::vector<TaskIx>& pending) {
  Job& job = snapshot_.jobs[j];
  std::optional<std::vector<NodeId>> best;
  Outcome best_outcome = Outcome::kNothing;
  Wide best_fill = 0;
  for (auto& nodes : domains_of(snapshot_, j, key)) {
    std::vector<TaskIx> trial = pending;
    Statement statement(session_);
    const auto failed = job.failed_roles;
    snapshot_.within = nodes;
    const Outcome outcome = place_tasks(j, trial, statement);
    const Wide fill = domain_fill(snapshot_, j, nodes);
    statement.discard();
    job.failed_roles = failed;
    if (outcome == Outcome::kNothing) continue;
    if (best && (outcome < best_outcome || (outcome == best_outcome && fill <= best_fill)))
      continue;
    best = std::move(nodes);
    best_outcome = outcome;
    best_fill = fill;
  }
  return best;
}

/// The narrowest level is tried first, then the next wider one, up to the one that must hold; a
/// group that only prefers goes anywhere in the end. False: no domain takes the group, and it must
/// have one. Otherwise `within` says where it goes.
bool Allocate::choose_domain(JobIx j, const std::vector<TaskIx>& pending) {
  const auto& levels = snapshot_.state.gang(snapshot_.jobs[j].gang).spec->topology;
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    snapshot_.within = best_domain(j, level->key, pending);
    if (snapshot_.within) return true;
    if (level->required) return false;
  }
  return true;
}

}  // namespace

void allocate(Session& session) { Allocate(session).run(); }

}  // namespace muster::engine::volcano
