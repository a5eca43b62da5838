// priority: jobs, tasks and victims by their priority; a job starves until all its tasks have room.
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Priority : public Plugin {
 public:
  using Plugin::Plugin;

  [[nodiscard]] int job_order(JobIx a, JobIx b) const override {
    return higher_first(of_job(a), of_job(b));
  }

  [[nodiscard]] int task_order(TaskIx a, TaskIx b) const override {
    return higher_first(snapshot_.pod_of(a).priority, snapshot_.pod_of(b).priority);
  }

  [[nodiscard]] Vote job_starving(const Job& job) const override {
    const std::int32_t occupied = job.ready_tasks() + job.count(Status::kPipelined);
    return occupied >= static_cast<std::int32_t>(job.tasks.size()) ? Vote::kReject : Vote::kPermit;
  }

  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    if (question.reclaiming) return std::nullopt;
    std::vector<TaskIx> out;
    for (const TaskIx t : question.candidates) {
      if (lower(t, question.preemptor)) out.push_back(t);
    }
    return out;
  }

 private:
  static int higher_first(std::int32_t a, std::int32_t b) { return a == b ? 0 : a > b ? -1 : 1; }

  [[nodiscard]] std::int32_t of_job(JobIx job) const {
    return state_.gang(snapshot_.jobs[job].gang).spec->priority;
  }

  /// Inside a job tasks are compared, otherwise jobs.
  [[nodiscard]] bool lower(TaskIx victim, TaskIx preemptor) const {
    const JobIx x = snapshot_.tasks[victim].job;
    const JobIx y = snapshot_.tasks[preemptor].job;
    if (x == y) return snapshot_.pod_of(victim).priority < snapshot_.pod_of(preemptor).priority;
    return of_job(x) < of_job(y);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_priority(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Priority>(config, snapshot);
}

}  // namespace muster::engine::volcano
