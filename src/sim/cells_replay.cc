#include "sim/cells_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/strings.h"
#include "engine/cells/allocator.h"
#include "sim/course.h"

namespace muster::sim {
namespace {

using namespace engine::cells;

class CellsReplay : public Course {
 public:
  CellsReplay(const std::vector<Job>& jobs, CellAllocator cells, const Policy& policy)
      : Course(jobs, policy), cells_(std::move(cells)), tasks_(jobs.size()) {
    std::vector<std::string> names;
    for (const Node& node : cells_.cells().nodes) names.push_back(node.name);
    for (const std::string& name : names) cells_.set_node(name, true);
    outcome_.gpus_total = static_cast<std::int64_t>(cells_.cells().leaves.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) numbers_[fmt::format("{}", i)] = i;
  }

 private:
  struct Task {
    PodRef ref;
    PodSpec spec;
    BindInfo bind;
  };
  struct Rank {
    std::int32_t priority;
    std::size_t job;
    bool operator<(const Rank& other) const {
      return priority != other.priority ? priority > other.priority : job < other.job;
    }
  };

  void submit(std::size_t i) override { queue_.insert({jobs_[i].priority, i}); }

  PodSpec spec_of(std::size_t i) const {
    const Job& job = jobs_[i];
    PodSpec spec;
    spec.vc = job.queue;
    spec.priority = job.priority < 0 ? kOpportunistic : std::min(job.priority, kMaxPriority);
    if (!job.models.empty()) spec.leaf_type = job.models.front();
    spec.leaves = static_cast<std::int32_t>(std::max<std::int64_t>(job.gpus, 1));
    spec.group = fmt::format("{}", i);
    spec.members = {{job.tasks, spec.leaves}};
    return spec;
  }

  void decide(Duration now) override {
    std::set<std::string> blocked;  // virtual clusters whose first gang waits
    for (auto rank = queue_.begin(); rank != queue_.end();) {
      const Job& job = jobs_[rank->job];
      if (blocked.contains(job.queue)) {
        ++rank;
        continue;
      }
      const std::size_t number = rank->job;
      ++outcome_.decisions;
      if (place(number, now)) {
        rank = queue_.erase(rank);
        continue;
      }
      if (policy_.backfill == engine::BackfillMode::kFifo) blocked.insert(job.queue);
      ++rank;
    }
    sample(now);
  }

  /// The whole gang or nothing.
  bool place(std::size_t i, Duration now) {
    const PodSpec spec = spec_of(i);
    tasks_[i].clear();
    if (jobs_[i].gpus_total() > 0) {
      for (std::int32_t task = 0; task < jobs_[i].tasks; ++task) {
        const std::string uid = fmt::format("{}-{}.{}", i, task, state_[i].run + 1);
        Task one{{uid, uid}, spec, {}};
        Decision decision =
            cells_.schedule({one.ref, spec, Phase::kFiltering, nullptr, kStart + now});
        if (decision.kind == Decision::Kind::kPreempt) {
          decision = cells_.schedule({one.ref, spec, Phase::kPreempting, nullptr, kStart + now});
          if (decision.kind == Decision::Kind::kPreempt) {
            evict_all(decision, now);
            decision = cells_.schedule({one.ref, spec, Phase::kFiltering, nullptr, kStart + now});
          }
        }
        if (decision.kind != Decision::Kind::kBind ||
            !cells_.add_allocated(one.ref, spec, decision.bind, kStart + now)) {
          give_back(i);
          return false;
        }
        one.bind = decision.bind;
        tasks_[i].push_back(std::move(one));
      }
    }
    use(i, jobs_[i].gpus_total() * 1000);
    start(i, now);
    return true;
  }

  /// Victims are gone at once in a simulation.
  void evict_all(const Decision& decision, Duration now) {
    std::set<std::size_t> victims;
    for (const Victims& node : decision.victims) {
      for (const PodRef& pod : node.pods)
        victims.insert(numbers_.at(pod.uid.substr(0, pod.uid.find('-'))));
    }
    for (const std::size_t victim : victims) {
      evict(victim, now);
      submit(victim);
    }
  }

  void give_back(std::size_t i) {
    for (const Task& task : tasks_[i])
      (void)cells_.delete_allocated(task.ref, task.spec, task.bind);
    tasks_[i].clear();
  }

  void release(std::size_t i, bool finished) override {
    (void)finished;
    give_back(i);
    use(i, -jobs_[i].gpus_total() * 1000);
  }

  void measure(Sample& sample) const override {
    for (const Node& node : cells_.cells().nodes) {
      std::int64_t free = 0;
      for (const Index leaf : node.leaves)
        free += cells_.cells().p(leaf).priority == kFreePriority ? 1 : 0;
      sample.gpus_free += free;
      if (free < static_cast<std::int64_t>(node.leaves.size())) sample.gpus_stranded += free;
    }
  }

  CellAllocator cells_;
  std::vector<std::vector<Task>> tasks_;        ///< By job, while it runs.
  std::map<std::string, std::size_t> numbers_;  ///< By name of the gang.
  std::set<Rank> queue_;
};

}  // namespace

Result<Outcome> replay_cells(const std::vector<Job>& jobs,
                             const Config& config,
                             const Policy& policy,
                             const std::function<void(double)>& progress) {
  auto cells = CellAllocator::create(config, {});
  if (!cells) return fail(cells.error());
  if (policy.name != "skip" && policy.name != "fifo") {
    return fail(
        Code::kBadRequest,
        fmt::format(
            "--policy {}: with --hived-config want skip (HiveD's own: whatever fits goes) or fifo",
            policy.name));
  }
  std::vector<std::string> names;
  for (const VirtualCluster& vc : cells->cells().vcs) names.push_back(vc.name);
  for (const Job& job : jobs) {
    if (cells->cells().find_vc(job.queue) == kNone) {
      return fail(
          Code::kInvalid,
          fmt::format(
              "job \"{}\": queue \"{}\" is no virtual cluster of the configuration, which has {}",
              job.name,
              job.queue,
              join(names, ", ")));
    }
  }
  return CellsReplay(jobs, std::move(*cells), policy).run(progress);
}

}  // namespace muster::sim
