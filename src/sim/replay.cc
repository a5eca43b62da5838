#include "sim/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <queue>

#include "base/strings.h"
#include "engine/engine.h"

namespace muster::sim {
namespace {

/// The engine's clock starts here, so that zero keeps meaning "no time".
constexpr Time kStart{1'000'000'000'000};
constexpr std::int64_t kBigJobGpus = 8;

struct Completion {
  Duration at{};
  std::size_t job = 0;
  std::int32_t run = 0;  // a completion of an earlier, evicted run is stale
  bool operator>(const Completion& other) const { return std::tie(at, job) > std::tie(other.at, other.job); }
};

class Replay {
 public:
  Replay(const std::vector<Job>& jobs, const std::vector<engine::Node>& nodes, const Policy& policy)
      : jobs_(jobs), policy_(policy), engine_(policy.engine), state_(jobs.size()) {
    outcome_.policy = policy.name;
    outcome_.jobs.resize(jobs.size());
    for (const engine::Node& node : nodes) {
      engine_.apply(engine::NodeUpsert{node});
      const auto gpus = static_cast<std::int64_t>(node.devices.size());
      outcome_.gpus_total += gpus;
      free_milli_[node.name] = gpus * 1000;
      gpus_of_[node.name] = gpus;
    }
    add_queue(policy.engine.default_queue);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      outcome_.jobs[i].submit = jobs[i].submit;
      outcome_.jobs[i].gpus = jobs[i].gpus_total();
      outcome_.jobs[i].queue = jobs[i].queue;
      index_[jobs[i].name] = i;
      if (policy.tenants) add_queue(jobs[i].queue);
    }
  }

  Outcome run(const std::function<void(double)>& progress) {
    std::size_t next = 0;
    std::size_t ended = 0, reported = 0;
    while (next < jobs_.size() || !completions_.empty() || wake_) {
      Duration now = Duration::max();
      if (next < jobs_.size()) now = std::min(now, jobs_[next].submit);
      if (!completions_.empty()) now = std::min(now, completions_.top().at);
      // With nothing arriving or ending, a wake-up can change nothing but reservations; it ends the replay at last.
      if (wake_) {
        if (next >= jobs_.size() && completions_.empty() && *wake_ - kStart > last_ + std::chrono::hours(24 * 365)) break;
        now = std::min(now, std::max(last_, *wake_ - kStart));
      }
      last_ = now;
      while (!completions_.empty() && completions_.top().at <= now) {
        const Completion completion = completions_.top();
        completions_.pop();
        if (completion.run == state_[completion.job].run && state_[completion.job].running) {
          finish(completion.job, now);
          ++ended;
        }
      }
      for (; next < jobs_.size() && jobs_[next].submit <= now; ++next) submit(next);
      decide(now);
      if (progress && ended >= reported + 500) {
        reported = ended;
        progress(static_cast<double>(ended) / static_cast<double>(jobs_.size()));
      }
    }
    outcome_.makespan = last_;
    return std::move(outcome_);
  }

 private:
  struct JobState {
    std::int32_t run = 0;      // how often it was put into the queue
    std::int32_t bound = 0;
    bool running = false;
    Duration started{};
    Duration left{};           // of its duration, for those that resume
    std::vector<std::string> nodes;
  };

  void add_queue(const std::string& name) {
    if (!queues_.insert({name, true}).second) return;
    engine::Queue queue;
    queue.name = name;
    queue.backfill = policy_.backfill;
    engine_.apply(engine::QueueUpsert{queue});
  }

  static std::string pod_key(const Job& job, std::int32_t task) { return fmt::format("sim/{}-{}", job.name, task); }

  void submit(std::size_t i) {
    const Job& job = jobs_[i];
    state_[i].left = job.duration;
    waiting_ += 1;
    enqueue(i);
  }

  void enqueue(std::size_t i) {
    const Job& job = jobs_[i];
    JobState& state = state_[i];
    ++state.run;
    state.bound = 0;
    state.nodes.assign(static_cast<std::size_t>(job.tasks), "");
    const std::string queue = policy_.tenants ? job.queue : policy_.engine.default_queue;
    const Time created = kStart + job.submit;
    if (job.tasks > 1) {
      engine::Group group;
      group.key = job.name;
      group.queue = queue;
      group.min_member = job.tasks;
      group.priority = job.priority;
      group.created = created;
      group.admitted = true;
      if (policy_.durations_known) group.expected_duration = state.left;
      engine_.apply(engine::GroupUpsert{group});
    }
    for (std::int32_t task = 0; task < job.tasks; ++task) {
      engine::Pod pod;
      pod.key = pod_key(job, task);
      pod.uid = fmt::format("{}.{}", pod.key, state.run);
      pod.ns = "sim";
      if (job.tasks > 1) pod.group = job.name;
      pod.queue = queue;
      pod.priority = job.priority;
      if (job.gpus > 0) pod.requests.push_back({"nvidia.com/gpu", job.gpus});
      if (job.cpu_milli > 0) pod.requests.push_back({"cpu", job.cpu_milli});
      if (job.memory_bytes > 0) pod.requests.push_back({"memory", job.memory_bytes});
      pod.device_share_milli = job.gpu_milli;
      pod.device_models = job.models;
      pod.created = created;
      if (policy_.durations_known) pod.expected_duration = state.left;
      engine_.apply(engine::PodUpsert{pod});
    }
  }

  void decide(Duration now) {
    const engine::Plan plan = engine_.decide(kStart + now);
    ++outcome_.decisions;
    wake_ = plan.wake;
    if (wake_ && *wake_ <= kStart + now) wake_ = kStart + now + std::chrono::seconds(1);
    std::map<std::size_t, bool> evicted;
    for (const engine::Evict& evict : plan.evicts) evicted[job_of(evict.pod)] = true;
    for (const engine::Bind& bind : plan.binds) bound(bind, now);
    for (const auto& [job, unused] : evicted) evict_job(job, now);
    if (!plan.binds.empty() || !evicted.empty()) sample(now);
    // Victims are gone at once in a simulation; their preemptors bind in the same instant.
    if (!evicted.empty()) decide(now);
  }

  std::size_t job_of(const std::string& pod) const {
    const std::size_t dash = pod.rfind('-');
    return index_.at(pod.substr(4, dash - 4));
  }

  void bound(const engine::Bind& bind, Duration now) {
    const std::size_t i = job_of(bind.pod);
    const Job& job = jobs_[i];
    JobState& state = state_[i];
    const auto task = parse_int(std::string_view(bind.pod).substr(bind.pod.rfind('-') + 1));
    state.nodes[static_cast<std::size_t>(*task)] = bind.node;
    free_milli_[bind.node] -= job.gpus * 1000 + job.gpu_milli;
    used_milli_ += job.gpus * 1000 + job.gpu_milli;
    if (++state.bound < job.tasks) return;
    state.running = true;
    state.started = now;
    waiting_ -= 1;
    JobResult& result = outcome_.jobs[i];
    if (!result.started) result.start = now;
    result.started = true;
    completions_.push({now + state.left, i, state.run});
  }

  void release(std::size_t i) {
    const Job& job = jobs_[i];
    JobState& state = state_[i];
    for (const std::string& node : state.nodes) {
      if (node.empty()) continue;
      free_milli_[node] += job.gpus * 1000 + job.gpu_milli;
      used_milli_ -= job.gpus * 1000 + job.gpu_milli;
    }
    for (std::int32_t task = 0; task < job.tasks; ++task) engine_.apply(engine::PodRemove{pod_key(job, task)});
    if (job.tasks > 1) engine_.apply(engine::GroupRemove{job.name});
    state.running = false;
  }

  void finish(std::size_t i, Duration now) {
    release(i);
    outcome_.jobs[i].end = now;
    sample(now);
  }

  void evict_job(std::size_t i, Duration now) {
    JobState& state = state_[i];
    ++outcome_.jobs[i].evictions;
    ++outcome_.evictions;
    if (state.running) {
      if (policy_.resume) state.left = std::max<Duration>(std::chrono::seconds(1), state.left - (now - state.started));
      waiting_ += 1;
    }
    release(i);
    enqueue(i);
  }

  void sample(Duration now) {
    // A report needs hundreds of points, not one for each job.
    if (!outcome_.samples.empty() && now - outcome_.samples.back().at < std::chrono::seconds(300)) return;
    Sample sample;
    sample.at = now;
    sample.gpu_milli_used = used_milli_;
    sample.jobs_waiting = waiting_;
    for (const auto& [node, free] : free_milli_) {
      if (free < gpus_of_[node] * 1000) sample.gpus_stranded += free / 1000;
    }
    outcome_.samples.push_back(sample);
  }

  const std::vector<Job>& jobs_;
  const Policy& policy_;
  engine::Engine engine_;
  std::vector<JobState> state_;
  std::map<std::string, std::size_t> index_;
  std::map<std::string, bool> queues_;
  std::map<std::string, std::int64_t> free_milli_, gpus_of_;
  std::priority_queue<Completion, std::vector<Completion>, std::greater<>> completions_;
  std::optional<Time> wake_;
  Duration last_{};
  std::int64_t used_milli_ = 0, waiting_ = 0;
  Outcome outcome_;
};

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace

std::vector<std::string> policy_names() { return {"fifo", "skip", "backfill", "backfill-unknown", "spread", "fragmentation"}; }

Result<Policy> named_policy(std::string_view name) {
  Policy policy;
  policy.name = std::string(name);
  if (name == "fifo") policy.backfill = engine::BackfillMode::kFifo;
  else if (name == "skip") policy.backfill = engine::BackfillMode::kSkip;
  else if (name == "backfill") {}
  else if (name == "backfill-unknown") policy.durations_known = false;
  else if (name == "spread") policy.engine.placement = engine::PlacementRule::kSpread;
  else if (name == "fragmentation") policy.engine.placement = engine::PlacementRule::kFragmentation;
  else {
    const auto near = nearest(name, policy_names());
    return fail(Code::kInvalid, fmt::format("policy \"{}\" is unknown; want one of {}{}", name, join(policy_names(), ", "),
                                            near ? fmt::format(" (did you mean \"{}\"?)", *near) : ""));
  }
  return policy;
}

Outcome replay(const std::vector<Job>& jobs, const std::vector<engine::Node>& nodes, const Policy& policy, const std::function<void(double)>& progress) {
  return Replay(jobs, nodes, policy).run(progress);
}

Summary summarize(const Outcome& outcome) {
  Summary summary;
  summary.policy = outcome.policy;
  summary.evictions = outcome.evictions;
  summary.jobs = static_cast<std::int64_t>(outcome.jobs.size());
  std::vector<double> waits;
  double big = 0, jct = 0, gpu_seconds = 0;
  std::int64_t big_count = 0;
  for (const JobResult& job : outcome.jobs) {
    if (!job.started) continue;
    const double wait = seconds(job.start - job.submit);
    waits.push_back(wait);
    summary.mean_wait_s += wait;
    jct += seconds(job.end - job.submit);
    gpu_seconds += static_cast<double>(job.gpus) * seconds(job.end - job.start);
    if (job.gpus > kBigJobGpus) {
      big += wait;
      ++big_count;
    }
  }
  summary.started = static_cast<std::int64_t>(waits.size());
  summary.makespan_s = seconds(outcome.makespan);
  if (waits.empty()) return summary;
  std::sort(waits.begin(), waits.end());
  const auto n = static_cast<double>(waits.size());
  summary.mean_wait_s /= n;
  summary.mean_jct_s = jct / n;
  summary.p50_wait_s = waits[waits.size() / 2];
  summary.p99_wait_s = waits[std::min(waits.size() - 1, static_cast<std::size_t>(n * 0.99))];
  summary.mean_wait_big_s = big_count > 0 ? big / static_cast<double>(big_count) : 0;
  if (outcome.gpus_total > 0 && summary.makespan_s > 0) {
    summary.utilisation = gpu_seconds / (static_cast<double>(outcome.gpus_total) * summary.makespan_s);
  }
  return summary;
}

}  // namespace muster::sim
