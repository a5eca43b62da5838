#include "sim/cells_replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "base/strings.h"
#include "engine/cells/allocator.h"

namespace muster::sim {
namespace {

using namespace engine::cells;

constexpr Time kStart{1'000'000'000'000};

struct Completion {
  Duration at{};
  std::size_t job = 0;
  std::int32_t run = 0;  // a completion of an earlier, evicted run is stale
  bool operator>(const Completion& other) const { return std::tie(at, job) > std::tie(other.at, other.job); }
};

class CellsReplay {
 public:
  CellsReplay(const std::vector<Job>& jobs, CellAllocator cells, const Policy& policy)
      : jobs_(jobs), cells_(std::move(cells)), policy_(policy), state_(jobs.size()) {
    outcome_.policy = policy.name;
    outcome_.jobs.resize(jobs.size());
    std::vector<std::string> names;
    for (const Node& node : cells_.cells().nodes) names.push_back(node.name);
    for (const std::string& name : names) cells_.set_node(name, true);
    outcome_.gpus_total = static_cast<std::int64_t>(cells_.cells().leaves.size());
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      outcome_.jobs[i].submit = jobs[i].submit;
      outcome_.jobs[i].gpus = jobs[i].gpus_total();
      outcome_.jobs[i].queue = jobs[i].queue;
      numbers_[fmt::format("{}", i)] = i;
      state_[i].left = jobs[i].duration;
    }
  }

  Outcome run(const std::function<void(double)>& progress) {
    std::size_t next = 0, ended = 0, reported = 0;
    while (next < jobs_.size() || !completions_.empty()) {
      Duration now = next < jobs_.size() ? jobs_[next].submit : Duration::max();
      if (!completions_.empty()) now = std::min(now, completions_.top().at);
      last_ = now;
      for (; !completions_.empty() && completions_.top().at <= now; completions_.pop()) {
        const Completion& completion = completions_.top();
        State& state = state_[completion.job];
        if (completion.run != state.run || !state.running) continue;
        release(completion.job);
        outcome_.jobs[completion.job].end = now;
        ++ended;
      }
      for (; next < jobs_.size() && jobs_[next].submit <= now; ++next) wait(next);
      decide(now);
      sample(now);
      if (progress && ended >= reported + 500) {
        reported = ended;
        progress(static_cast<double>(ended) / static_cast<double>(jobs_.size()));
      }
    }
    outcome_.makespan = last_;
    return std::move(outcome_);
  }

 private:
  struct Task {
    PodRef ref;
    PodSpec spec;
    BindInfo bind;
  };
  struct State {
    std::int32_t run = 0;
    bool running = false;
    Duration started{}, left{};
    std::vector<Task> tasks;
  };
  struct Rank {
    std::int32_t priority;
    std::size_t job;
    bool operator<(const Rank& other) const { return priority != other.priority ? priority > other.priority : job < other.job; }
  };

  void wait(std::size_t i) { waiting_.insert({jobs_[i].priority, i}); }

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

  void decide(Duration now) {
    std::set<std::string> blocked;  // virtual clusters whose first gang waits
    for (auto rank = waiting_.begin(); rank != waiting_.end();) {
      const Job& job = jobs_[rank->job];
      if (blocked.contains(job.queue)) {
        ++rank;
        continue;
      }
      const std::size_t number = rank->job;
      ++outcome_.decisions;
      if (start(number, now)) {
        rank = waiting_.erase(rank);
        continue;
      }
      if (policy_.backfill == engine::BackfillMode::kFifo) blocked.insert(job.queue);
      ++rank;
    }
  }

  /// The whole gang or nothing.
  bool start(std::size_t i, Duration now) {
    State& state = state_[i];
    const PodSpec spec = spec_of(i);
    state.tasks.clear();
    if (jobs_[i].gpus_total() > 0) {
      for (std::int32_t task = 0; task < jobs_[i].tasks; ++task) {
        const std::string uid = fmt::format("{}-{}.{}", i, task, state.run + 1);
        Task one{{uid, uid}, spec, {}};
        Decision decision = cells_.schedule({one.ref, spec, Phase::kFiltering, nullptr, kStart + now});
        if (decision.kind == Decision::Kind::kPreempt) {
          decision = cells_.schedule({one.ref, spec, Phase::kPreempting, nullptr, kStart + now});
          if (decision.kind == Decision::Kind::kPreempt) {
            evict(decision, now);
            decision = cells_.schedule({one.ref, spec, Phase::kFiltering, nullptr, kStart + now});
          }
        }
        if (decision.kind != Decision::Kind::kBind || !cells_.add_allocated(one.ref, spec, decision.bind, kStart + now)) {
          give_back(state);
          return false;
        }
        one.bind = decision.bind;
        state.tasks.push_back(std::move(one));
      }
    }
    ++state.run;
    state.running = true;
    state.started = now;
    used_ += jobs_[i].gpus_total();
    if (!outcome_.jobs[i].started) outcome_.jobs[i].start = now;
    outcome_.jobs[i].started = true;
    completions_.push({now + state.left, i, state.run});
    return true;
  }

  /// Victims are gone at once in a simulation.
  void evict(const Decision& decision, Duration now) {
    std::set<std::size_t> victims;
    for (const Victims& node : decision.victims) {
      for (const PodRef& pod : node.pods) victims.insert(numbers_.at(pod.uid.substr(0, pod.uid.find('-'))));
    }
    for (const std::size_t victim : victims) {
      State& state = state_[victim];
      if (policy_.resume) state.left = std::max<Duration>(std::chrono::seconds(1), state.left - (now - state.started));
      release(victim);
      ++outcome_.jobs[victim].evictions;
      ++outcome_.evictions;
      wait(victim);
    }
  }

  void give_back(State& state) {
    for (const Task& task : state.tasks) (void)cells_.delete_allocated(task.ref, task.spec, task.bind);
    state.tasks.clear();
  }

  void release(std::size_t i) {
    give_back(state_[i]);
    state_[i].running = false;
    used_ -= jobs_[i].gpus_total();
  }

  void sample(Duration now) {
    if (!outcome_.samples.empty() && now - outcome_.samples.back().at < std::chrono::seconds(300)) return;
    Sample sample;
    sample.at = now;
    sample.gpu_milli_used = used_ * 1000;
    sample.jobs_waiting = static_cast<std::int64_t>(waiting_.size());
    for (const Node& node : cells_.cells().nodes) {
      std::int64_t free = 0;
      for (const Index leaf : node.leaves) free += cells_.cells().p(leaf).priority == kFreePriority ? 1 : 0;
      if (free < static_cast<std::int64_t>(node.leaves.size())) sample.gpus_stranded += free;
    }
    outcome_.samples.push_back(sample);
  }

  const std::vector<Job>& jobs_;
  CellAllocator cells_;
  const Policy& policy_;
  std::vector<State> state_;
  std::map<std::string, std::size_t> numbers_;  // by name of the gang
  std::set<Rank> waiting_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> completions_;
  Duration last_{};
  std::int64_t used_ = 0;
  Outcome outcome_;
};

}  // namespace

Result<Outcome> replay_cells(const std::vector<Job>& jobs, const Config& config, const Policy& policy, const std::function<void(double)>& progress) {
  auto cells = CellAllocator::create(config, {});
  if (!cells) return fail(cells.error());
  if (policy.name != "skip" && policy.name != "fifo") {
    return fail(Code::kBadRequest, fmt::format("--policy {}: with --hived-config want skip (HiveD's own: whatever fits goes) or fifo", policy.name));
  }
  std::vector<std::string> names;
  for (const VirtualCluster& vc : cells->cells().vcs) names.push_back(vc.name);
  for (const Job& job : jobs) {
    if (cells->cells().find_vc(job.queue) == kNone) {
      return fail(Code::kInvalid, fmt::format("job \"{}\": queue \"{}\" is no virtual cluster of the configuration, which has {}", job.name, job.queue, join(names, ", ")));
    }
  }
  return CellsReplay(jobs, std::move(*cells), policy).run(progress);
}

}  // namespace muster::sim
