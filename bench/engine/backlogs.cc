#include "backlogs.h"

#include <ctime>
#include <utility>

namespace muster::bench {

using namespace engine;  // the subject of this file

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

Config plain() {
  Config c;
  c.reservations = 0;
  c.preempt = false;
  c.reclaim = false;
  return c;
}

Node gpu_node(const std::string& name,
              std::int64_t gpus,
              std::int64_t cpu_milli,
              std::int64_t memory_gib) {
  Node n;
  n.name = name;
  n.allocatable = {
      {"cpu", cpu_milli}, {"memory", memory_gib << 30}, {"pods", 110}, {"nvidia.com/gpu", gpus}};
  return n;
}

Pod gpu_pod(const std::string& key,
            std::int64_t gpus,
            std::int64_t cpu_milli,
            std::int64_t memory_gib) {
  Pod p;
  p.key = key;
  p.uid = key;
  p.ns = "bench";
  p.requests = {{"cpu", cpu_milli}, {"memory", memory_gib << 30}};
  if (gpus > 0) p.requests.push_back({"nvidia.com/gpu", gpus});
  return p;
}

void Backlog::add(int nodes, int queues) {
  for (int i = 0; i < nodes; ++i) e.apply(NodeUpsert{gpu_node(fmt::format("node-{}", i), 8)});
  for (int q = 0; q < queues; ++q) {
    Queue queue;
    queue.name = fmt::format("q{}", q);
    e.apply(QueueUpsert{queue});
  }
}

Backlog::Release Backlog::release_of(const std::string& pod, Time now, Plan& plan) {
  const double start = thread_seconds();
  tell(PodRemove{pod});
  plan = decide(now);
  return {seconds_since(start) * 1e6, plan.binds.size()};
}

Deep::Deep(int nodes, int pending, Time begun) : Backlog(plain()) {
  add(nodes, kQueues);
  for (int i = 0; i < nodes; ++i) submit(i, begun);
  for (const auto& b : e.decide(begun + std::chrono::seconds(1)).binds) running_.push_back(b.pod);
  for (int i = 0; i < pending; ++i) submit(i, begun);
  (void)e.decide(begun + std::chrono::seconds(2));
}

void Deep::submit(int i, Time at) {
  Pod p = gpu_pod(fmt::format("bench/p-{}", made_++), 8, 8000, 64);
  p.queue = fmt::format("q{}", i % kQueues);
  p.created = Time{at.us + made_};
  tell(PodUpsert{p});
}

Backlog::Release Deep::release(Time now) {
  const std::string gone = running_.front();
  running_.pop_front();
  Plan plan;
  const Release out = release_of(gone, now, plan);
  for (const auto& b : plan.binds) running_.push_back(b.pod);
  return out;
}

void Deep::refill(Time now) {
  submit(refilled_++, now);
  (void)decide(now);
}

Busy::Busy(int nodes, int queues, int pods, Time begun)
    : Backlog(Config{}), now(begun), queues_(queues) {
  add(nodes, queues);
  for (int made = 0; made < pods;) made += submit(Time{now.us + made_});
  for (const auto& b : e.decide(now).binds) running_.push_back(b.pod);
  // Reservations whose time nobody knows hold room back from now on.
  now = now + std::chrono::minutes(20);
  (void)e.decide(now);
}

int Busy::submit(Time at) {
  const int id = made_++;
  const int members = id % 10 == 0 ? 4 : 1;
  const std::string key = fmt::format("bench/g-{}", id);
  if (members > 1) {
    Group g;
    g.key = key;
    g.min_member = members;
    g.queue = fmt::format("q{}", id % queues_);
    g.created = at;
    tell(GroupUpsert{g});
  }
  const std::int64_t gpus = members > 1 ? 8 : 1LL << random_.below(4);
  for (int m = 0; m < members; ++m) {
    Pod p = gpu_pod(fmt::format("{}-{}", key, m), gpus, 1000 * gpus, 8 * gpus);
    if (members > 1) p.group = key;
    p.queue = fmt::format("q{}", id % queues_);
    p.created = at;
    tell(PodUpsert{p});
  }
  return members;
}

Backlog::Release Busy::release(Time at) {
  now = at;
  const std::size_t which = random_.below(running_.size());
  const std::string gone = std::exchange(running_[which], running_.back());
  running_.pop_back();
  Plan plan;
  const Release out = release_of(gone, now, plan);
  for (const auto& b : plan.binds) running_.push_back(b.pod);
  return out;
}

void Busy::refill(Time at) {
  submit(at);
  (void)decide(at);
}

}  // namespace muster::bench
