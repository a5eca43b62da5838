// drf: jobs by their dominant share of the cluster; with hierarchy, queues by the tree of their
// annotations (hierarchy.h).
#include <cstdlib>
#include <map>
#include <set>

#include "engine/volcano/hierarchy.h"
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Drf : public Plugin {
 public:
  using Plugin::Plugin;

  void open() override {
    if (!hierarchy()) return;
    std::set<QueueIx> queues;
    for (const Job& job : snapshot_.jobs) queues.insert(job.queue);
    tree_.emplace(snapshot_.total, snapshot_.dims);
    for (const QueueIx q : queues) {
      const engine::Queue& spec = state_.tenant(snapshot_.queues[q].tenant).spec;
      tree_->add_queue(q, {spec.hierarchy, spec.hierarchy_weights, spec.name, spec.weight});
    }
    for (JobIx j = 0; j < snapshot_.jobs.size(); ++j) add_to_tree(j);
  }

  [[nodiscard]] int queue_order(QueueIx a, QueueIx b) override {
    return tree_ ? tree_->compare(a, b) : 0;
  }

  [[nodiscard]] int job_order(JobIx a, JobIx b) const override {
    const Share x = share(snapshot_.jobs[a].drf);
    const Share y = share(snapshot_.jobs[b].drf);
    return x == y ? 0 : x < y ? -1 : 1;
  }

  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    if (!question.reclaiming) return of_larger_share(question);
    if (tree_) return of_later_queues(question);
    return std::nullopt;
  }

  void charged(JobIx job, const Amounts& request, bool add) override {
    if (tree_) tree_->charge(job, request, add);
  }

 private:
  /// Pods that ended are not wanted any more; those of a group without any are still to come.
  void add_to_tree(JobIx j) {
    const Job& job = snapshot_.jobs[j];
    Amounts wanted;
    bool over = job.phase == GroupPhase::kCompleted || !job.tasks.empty();
    for (const TaskIx t : job.tasks) {
      const Task& task = snapshot_.tasks[t];
      if (task.status == Status::kSucceeded || task.status == Status::kFailed) continue;
      wanted += task.request;
      over = false;
    }
    if (!over) tree_->add_job(j, job.queue, job.drf, wanted);
  }

  [[nodiscard]] Share share(const Amounts& allocated) const {
    Share s = 0;
    for (std::size_t i = 0; i < snapshot_.dims; ++i) {
      if (snapshot_.total[i] > 0) s = std::max(s, share_of(allocated[i], snapshot_.total[i]));
    }
    return s;
  }

  /// Whose jobs would have no less than the preemptor's without them.
  [[nodiscard]] std::vector<TaskIx> of_larger_share(const VictimQuestion& question) const {
    constexpr Share kDelta = 1000;  // 1e-6
    const auto& tasks = snapshot_.tasks;
    const Task& preemptor = tasks[question.preemptor];
    const Share mine = share(snapshot_.jobs[preemptor.job].drf + preemptor.request);
    std::map<JobIx, Amounts> left;
    std::vector<TaskIx> out;
    for (const TaskIx t : question.candidates) {
      const JobIx job = tasks[t].job;
      const auto [it, fresh] = left.try_emplace(job, snapshot_.jobs[job].drf);
      it->second -= tasks[t].request;
      const Share theirs = share(it->second);
      if (mine < theirs || std::abs(mine - theirs) <= kDelta) out.push_back(t);
    }
    return out;
  }

  /// Whose queue would stand behind the reclaimer's even with the task there and the victim gone.
  /// Each is judged alone.
  [[nodiscard]] std::vector<TaskIx> of_later_queues(const VictimQuestion& question) {
    const Task& reclaimer = snapshot_.tasks[question.preemptor];
    std::vector<TaskIx> out;
    tree_->charge(reclaimer.job, reclaimer.request, true);
    for (const TaskIx t : question.candidates) {
      const Task& victim = snapshot_.tasks[t];
      tree_->charge(victim.job, victim.request, false);
      const QueueIx mine = snapshot_.jobs[reclaimer.job].queue;
      if (tree_->compare(mine, snapshot_.jobs[victim.job].queue) < 0) out.push_back(t);
      tree_->charge(victim.job, victim.request, true);
    }
    tree_->charge(reclaimer.job, reclaimer.request, false);
    return out;
  }

  /// With hierarchy. It weighs itself anew when it is asked.
  std::optional<Hierarchy> tree_;
};

}  // namespace

std::unique_ptr<Plugin> make_drf(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Drf>(config, snapshot);
}

}  // namespace muster::engine::volcano
