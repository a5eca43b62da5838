#include "sim/replay.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/strings.h"
#include "engine/cells/layout.h"
#include "engine/engine.h"
#include "sim/book.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kBigJobGpus = 8;

class Replay : public Book {
 public:
  Replay(const std::vector<Job>& jobs,
         const std::vector<engine::Node>& nodes,
         const Policy& policy,
         const std::vector<QuotaChange>& quotas,
         const engine::cells::Config* cells = nullptr)
      : Book(jobs, policy),
        quotas_(quotas),
        tenants_(policy.tenants || cells != nullptr),
        cells_(cells != nullptr),
        engine_(policy.engine),
        places_(jobs.size()) {
    if (cells != nullptr) {
      const auto done = engine_.configure_cells(*cells, kStart);
      MUSTER_CHECK(done, "cells that were read are refused");
    }
    for (const engine::Node& node : nodes) {
      engine_.apply(engine::NodeUpsert{node});
      const auto gpus = static_cast<std::int64_t>(node.devices.size());
      outcome_.gpus_total += gpus;
      free_milli_[node.name] = gpus * 1000;
      gpus_of_[node.name] = gpus;
    }
    for (const engine::Queue& queue : policy.queues) put_queue(queue);
    add_queue(policy.engine.default_queue);
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      index_[jobs[i].name] = i;
      origins_.push_back(
          std::make_shared<const engine::Origin>(jobs[i].user, jobs[i].stem, jobs[i].queue));
      if (tenants_) add_queue(jobs[i].queue);
    }
  }

 private:
  struct Place {
    std::int32_t tries = 0;  ///< How often it was put into the queue.
    std::int32_t bound = 0;
    std::vector<std::string> nodes;  ///< By task; empty: not bound.
  };

  void put_queue(const engine::Queue& queue) {
    queues_[queue.name] = queue;
    engine_.apply(engine::QueueUpsert{queue});
  }
  void add_queue(const std::string& name) {
    if (queues_.contains(name)) return;
    engine::Queue queue;
    queue.name = name;
    queue.backfill = policy_.backfill;
    put_queue(queue);
  }

  /// The virtual clusters get the sizes they have by now.
  void advance(Duration now) override {
    for (; policy_.tenants && next_quota_ < quotas_.size() && quotas_[next_quota_].at <= now;
         ++next_quota_) {
      const QuotaChange& change = quotas_[next_quota_];
      add_queue(change.queue);
      engine::Queue queue = queues_[change.queue];
      const engine::ResourceList amount = {{"nvidia.com/gpu", change.gpus}};
      (policy_.quota == Quota::kDeserved    ? queue.deserved
       : policy_.quota == Quota::kGuarantee ? queue.guarantee
                                            : queue.capability) = amount;
      put_queue(queue);
    }
  }

  static std::string pod_key(const Job& job, std::int32_t task) {
    return fmt::format("sim/{}-{}", job.name, task);
  }

  void submit(std::size_t i) override {
    const Job& job = jobs_[i];
    Place& place = places_[i];
    ++place.tries;
    place.bound = 0;
    place.nodes.assign(static_cast<std::size_t>(job.tasks), "");
    if (job.tasks > 1) {
      engine::Group group;
      group.key = job.name;
      group.queue = tenants_ ? job.queue : policy_.engine.default_queue;
      group.min_member = job.tasks;
      group.priority = job.priority;
      group.created = kStart + job.submit;
      group.admitted = true;
      if (policy_.durations_known) group.expected_duration = state_[i].left;
      engine_.apply(engine::GroupUpsert{group});
    }
    for (std::int32_t task = 0; task < job.tasks; ++task)
      engine_.apply(engine::PodUpsert{make_pod(i, task)});
  }

  engine::Pod make_pod(std::size_t i, std::int32_t task) const {
    const Job& job = jobs_[i];
    engine::Pod pod;
    pod.key = pod_key(job, task);
    pod.uid = fmt::format("{}.{}", pod.key, places_[i].tries);
    pod.ns = "sim";
    if (job.tasks > 1) pod.group = job.name;
    pod.queue = tenants_ ? job.queue : policy_.engine.default_queue;
    pod.priority = job.priority;
    request(pod, job);
    pod.device_models = job.models;
    pod.origin = origins_[i];
    pod.created = kStart + job.submit;
    if (policy_.durations_known) pod.expected_duration = state_[i].left;
    return pod;
  }

  void request(engine::Pod& pod, const Job& job) const {
    const std::string& device = policy_.engine.device_resource;
    if (cells_) {
      // Cells are whole devices, and a configuration of cells says nothing about the rest.
      if (job.gpus_total() > 0)
        pod.requests.push_back({device, std::max<std::int64_t>(job.gpus, 1)});
      return;
    }
    if (job.gpus > 0) pod.requests.push_back({device, job.gpus});
    if (job.cpu_milli > 0) pod.requests.push_back({"cpu", job.cpu_milli});
    if (job.memory_bytes > 0) pod.requests.push_back({"memory", job.memory_bytes});
    pod.device_share_milli = job.gpu_milli;
  }

  void decide(Duration now) override {
    const engine::Plan plan = engine_.decide(kStart + now);
    ++outcome_.decisions;
    wake_ = plan.wake;
    if (wake_ && *wake_ <= kStart + now) wake_ = kStart + now + std::chrono::seconds(1);
    std::set<std::size_t> victims;
    for (const engine::Evict& victim : plan.evicts) victims.insert(job_of(victim.pod));
    for (const engine::Bind& bind : plan.binds) bound(bind, now);
    for (const std::size_t job : victims) {
      evict(job, now);
      submit(job);
    }
    if (!plan.binds.empty() || !victims.empty()) sample(now);
    // Victims are gone at once in a simulation; their preemptors bind in the same instant.
    if (!victims.empty()) decide(now);
  }
  [[nodiscard]] std::optional<Duration> wake() const override {
    return wake_ ? std::optional<Duration>(*wake_ - kStart) : std::nullopt;
  }

  std::size_t job_of(const std::string& pod) const {
    const std::size_t dash = pod.rfind('-');
    return index_.at(pod.substr(4, dash - 4));
  }

  void take(std::size_t i, const std::string& node, std::int64_t sign) {
    const Job& job = jobs_[i];
    const std::int64_t whole =
        cells_ && job.gpus_total() > 0 ? std::max<std::int64_t>(job.gpus, 1) : job.gpus;
    const std::int64_t milli = sign * (whole * 1000 + (cells_ ? 0 : job.gpu_milli));
    free_milli_[node] -= milli;
    use(i, milli);
  }

  void bound(const engine::Bind& bind, Duration now) {
    const std::size_t i = job_of(bind.pod);
    const auto task = parse_int(std::string_view(bind.pod).substr(bind.pod.rfind('-') + 1));
    places_[i].nodes[static_cast<std::size_t>(*task)] = bind.node;
    take(i, bind.node, +1);
    if (++places_[i].bound == jobs_[i].tasks) start(i, now);
  }

  void release(std::size_t i, bool finished) override {
    const Job& job = jobs_[i];
    // The pods succeed before they are removed: that is how the engine learns how long such work
    // takes.
    for (std::int32_t task = 0; finished && task < job.tasks; ++task) {
      engine::Pod pod = make_pod(i, task);
      pod.finished = true;
      pod.succeeded = true;
      engine_.apply(engine::PodUpsert{pod});
    }
    for (const std::string& node : places_[i].nodes) {
      if (!node.empty()) take(i, node, -1);
    }
    for (std::int32_t task = 0; task < job.tasks; ++task)
      engine_.apply(engine::PodRemove{pod_key(job, task)});
    if (job.tasks > 1) engine_.apply(engine::GroupRemove{job.name});
  }

  void measure(Sample& sample) const override {
    for (const auto& [node, free] : free_milli_) {
      sample.gpus_free += free / 1000;
      if (free < gpus_of_.at(node) * 1000) sample.gpus_stranded += free / 1000;
    }
  }

  const std::vector<QuotaChange> quotas_;
  std::size_t next_quota_ = 0;
  bool tenants_, cells_;
  engine::Engine engine_;
  std::vector<Place> places_;
  std::vector<std::shared_ptr<const engine::Origin>> origins_;
  std::map<std::string, std::size_t> index_;  ///< By name of the job.
  std::map<std::string, engine::Queue> queues_;
  std::map<std::string, std::int64_t> free_milli_, gpus_of_;
  std::optional<Time> wake_;
};

double seconds(Duration duration) { return static_cast<double>(duration.count()) / 1e6; }

}  // namespace

Outcome replay(const std::vector<Job>& jobs,
               const std::vector<engine::Node>& nodes,
               const Policy& policy,
               const std::function<void(double)>& progress,
               const std::vector<QuotaChange>& quotas) {
  return Replay(jobs, nodes, policy, quotas).run(progress);
}

Result<Outcome> replay_cells(const std::vector<Job>& jobs,
                             const engine::cells::Config& config,
                             const Policy& policy,
                             const std::function<void(double)>& progress) {
  const auto layout = engine::cells::layout_of(config, policy.engine.device_resource);
  if (!layout) return fail(layout.error());
  const std::vector<std::string>& names = layout->virtual_clusters;
  for (const Job& job : jobs) {
    if (std::find(names.begin(), names.end(), job.queue) == names.end()) {
      return fail(
          Code::kInvalid,
          fmt::format(
              "job \"{}\": queue \"{}\" is not a virtual cluster of the configuration, which has {}",
              job.name,
              job.queue,
              join(names, ", ")));
    }
  }
  return Replay(jobs, layout->nodes, policy, {}, &config).run(progress);
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
  double stranded = 0, free = 0;
  for (std::size_t k = 0; k + 1 < outcome.samples.size(); ++k) {
    const double span = seconds(outcome.samples[k + 1].at - outcome.samples[k].at);
    stranded += span * static_cast<double>(outcome.samples[k].gpus_stranded);
    free += span * static_cast<double>(outcome.samples[k].gpus_free);
  }
  summary.fragmentation = free > 0 ? stranded / free : 0;
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
    summary.utilisation =
        gpu_seconds / (static_cast<double>(outcome.gpus_total) * summary.makespan_s);
  }
  return summary;
}

}  // namespace muster::sim
