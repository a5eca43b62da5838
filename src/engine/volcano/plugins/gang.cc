// gang: a job runs with its minimum of members, in all and of each role, or not at all.
#include <map>

#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Gang : public Plugin {
 public:
  using Plugin::Plugin;

  /// Jobs that are not ready go first.
  [[nodiscard]] int job_order(JobIx a, JobIx b) const override {
    const bool x = has_minimum(snapshot_.jobs[a], 0);
    const bool y = has_minimum(snapshot_.jobs[b], 0);
    return x == y ? 0 : y ? -1 : 1;
  }

  [[nodiscard]] bool job_valid(const Job& job) const override {
    std::map<std::string, std::int32_t> roles;
    std::int32_t valid = 0;
    for (const TaskIx t : job.tasks) {
      const Status s = snapshot_.tasks[t].status;
      if (s == Status::kReleasing || s == Status::kFailed) continue;
      ++valid;
      ++roles[snapshot_.pod_of(t).role];
    }
    if (valid < job.min_member) return false;
    if (job.min_member < job.role_min_total) return true;
    for (const auto& [role, n] : job.role_min) {
      if (n > 0 && roles[role] < n) return false;
    }
    return true;
  }

  [[nodiscard]] bool job_ready(const Job& job) const override {
    return has_minimum(job, 0) && roles_hold(job, false);
  }

  [[nodiscard]] Vote job_pipelined(const Job& job) const override {
    return has_minimum(job, job.count(Status::kPipelined)) && roles_hold(job, true) ? Vote::kPermit
                                                                                    : Vote::kReject;
  }

  [[nodiscard]] Vote job_starving(const Job& job) const override {
    const std::int32_t occupied = job.ready_tasks() + job.count(Status::kPipelined);
    return occupied >= job.min_member ? Vote::kReject : Vote::kPermit;
  }

  /// Members above the minimum.
  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    std::map<JobIx, std::int32_t> occupied;
    std::vector<TaskIx> out;
    for (const TaskIx t : question.candidates) {
      const JobIx job = snapshot_.tasks[t].job;
      const auto [it, fresh] = occupied.try_emplace(job, snapshot_.jobs[job].ready_tasks());
      if (it->second <= snapshot_.jobs[job].min_member) continue;
      --it->second;
      out.push_back(t);
    }
    return out;
  }

 private:
  [[nodiscard]] bool has_minimum(const Job& job, std::int32_t more) const {
    return job.ready_tasks() + more + snapshot_.pending_best_effort(job) >= job.min_member;
  }

  [[nodiscard]] bool roles_hold(const Job& job, bool pipelined) const {
    if (job.min_member < job.role_min_total) return true;
    std::map<std::string, std::int32_t> have;
    for (const TaskIx t : job.tasks) {
      const Status s = snapshot_.tasks[t].status;
      const bool counts = is_allocated(s) || s == Status::kSucceeded ||
                          (pipelined && s == Status::kPipelined) ||
                          (s == Status::kPending && snapshot_.best_effort(t));
      if (counts) ++have[snapshot_.pod_of(t).role];
    }
    for (const auto& [role, n] : job.role_min) {
      if (have[role] < n) return false;
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_gang(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Gang>(config, snapshot);
}

}  // namespace muster::engine::volcano
