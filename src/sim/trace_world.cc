#include "sim/trace_world.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "base/result.h"

namespace muster::sim {
namespace {

engine::Engine empty_cluster(const std::vector<Job>& jobs,
                             const std::vector<engine::Node>& nodes,
                             const Policy& policy) {
  engine::Config config = policy.engine;
  config.reason_limit = 0;
  engine::Engine engine(config);
  for (const engine::Node& node : nodes) engine.apply(engine::NodeUpsert{node});
  std::set<std::string> known;
  for (const engine::Queue& queue : policy.queues) {
    engine.apply(engine::QueueUpsert{queue});
    known.insert(queue.name);
  }
  const auto add = [&](const std::string& name) {
    if (!known.insert(name).second) return;
    engine::Queue queue;
    queue.name = name;
    queue.backfill = policy.backfill;
    engine.apply(engine::QueueUpsert{queue});
  };
  add(config.default_queue);
  for (const Job& job : jobs) {
    if (policy.tenants) add(job.queue);
  }
  return engine;
}

Course::Settings to_the_second() {
  Course::Settings settings;
  settings.quantum = settings.grace = Duration{};
  return settings;
}

std::shared_ptr<const Cast> nobody() {
  return std::make_shared<const Cast>(engine::Engine(engine::Config{}));
}

}  // namespace

TraceWorld::TraceWorld(const std::vector<Job>& jobs,
                       const std::vector<engine::Node>& nodes,
                       const Policy& policy,
                       std::function<bool(std::size_t)> told)
    : Course(empty_cluster(jobs, nodes, policy), nobody(), kBegin, to_the_second()),
      jobs_(jobs),
      queue_(policy.tenants ? "" : policy.engine.default_queue),
      device_(policy.engine.device_resource),
      told_(std::move(told)) {
  auto names = std::make_shared<std::unordered_map<std::string, std::size_t>>();
  for (std::size_t i = 0; i < jobs.size(); ++i) names->emplace(jobs[i].name, i);
  by_name_ = std::move(names);
}

std::size_t TraceWorld::job_named(std::string_view name) const {
  const auto found = by_name_->find(std::string(name));
  MUSTER_CHECK(found != by_name_->end(), "every gang of a trace is a job of it");
  return found->second;
}

Duration TraceWorld::lasts(Ix gang, Duration) { return jobs_[job_of(gang)].duration; }

std::optional<Time> TraceWorld::next_change() const {
  return next_ < jobs_.size() ? std::optional<Time>(kBegin + jobs_[next_].submit) : std::nullopt;
}

void TraceWorld::change() {
  for (; next_ < jobs_.size() && kBegin + jobs_[next_].submit <= now(); ++next_) submit(next_);
}

void TraceWorld::submit(std::size_t i) {
  const Job& job = jobs_[i];
  const Time created = kBegin + job.submit;
  const Duration expected = told_(i) ? job.duration : Duration{};
  const std::string& queue = queue_.empty() ? job.queue : queue_;
  if (job.tasks > 1) {
    engine::Group group;
    group.key = job.name;
    group.queue = queue;
    group.min_member = job.tasks;
    group.priority = job.priority;
    group.created = created;
    group.admitted = true;
    group.expected_duration = expected;
    apply(engine::GroupUpsert{std::move(group)});
  }
  engine::Pod pod;
  pod.ns = "sim";
  pod.queue = queue;
  pod.priority = job.priority;
  pod.created = created;
  pod.expected_duration = expected;
  pod.device_models = job.models;
  pod.device_share_milli = job.gpu_milli;
  if (job.gpus > 0) pod.requests.push_back({device_, job.gpus});
  if (job.cpu_milli > 0) pod.requests.push_back({"cpu", job.cpu_milli});
  if (job.memory_bytes > 0) pod.requests.push_back({"memory", job.memory_bytes});
  pod.origin = std::make_shared<const engine::Origin>(job.user, job.stem, job.queue);
  if (job.tasks > 1) pod.group = job.name;
  for (std::int32_t task = 0; task < job.tasks; ++task) {
    pod.key = job.tasks > 1 ? fmt::format("{}/{}", job.name, task) : job.name;
    pod.uid = pod.key;
    apply(engine::PodUpsert{pod});
  }
}

}  // namespace muster::sim
