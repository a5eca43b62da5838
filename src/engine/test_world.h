/// Small worlds for the engine's tests: nodes, pods, gangs and queues in a line each.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace muster::engine::test {

inline constexpr Time kNow = Time{1'000'000'000};

inline Node node(const std::string& name, std::int64_t gpus, Labels labels = {}) {
  Node n;
  n.name = name;
  n.labels = std::move(labels);
  n.allocatable = {
      {"cpu", 64'000}, {"memory", 256LL << 30}, {"pods", 110}, {"nvidia.com/gpu", gpus}};
  return n;
}

inline Pod pod(const std::string& key, std::int64_t gpus, std::int32_t priority = 0) {
  Pod p;
  p.key = key;
  p.uid = key + "-uid";
  p.ns = "d";
  p.priority = priority;
  p.created = kNow;
  p.requests = {{"cpu", 1000}, {"nvidia.com/gpu", gpus}};
  return p;
}

inline Pod in_queue(Pod p, const std::string& queue) {
  p.queue = queue;
  return p;
}

inline Pod running(Pod p, const std::string& on, Time started = kNow) {
  p.node = on;
  p.started = started;
  return p;
}

inline Pod share_of(Pod p, std::int32_t milli) {
  p.device_share_milli = milli;
  std::erase_if(p.requests, [](const Amount& a) { return a.name == "nvidia.com/gpu"; });
  return p;
}

/// A share that runs on the device with that index and makes way for nobody here.
inline Pod sharing(const std::string& key, std::int32_t milli, std::int32_t device) {
  Pod p = share_of(running(pod(key, 0, 100), "n1"), milli);
  p.device_indexes = {device};
  return p;
}

inline Group group(const std::string& key, std::int32_t min_member, std::int32_t priority = 0) {
  Group g;
  g.key = key;
  g.min_member = min_member;
  g.priority = priority;
  g.created = kNow;
  return g;
}

/// The group and `members` pods of it, each with so many GPUs.
inline void add_gang(Engine& e, Group g, std::int32_t members, std::int64_t gpus) {
  e.apply(GroupUpsert{g});
  for (std::int32_t i = 0; i < members; ++i) {
    Pod p = pod(fmt::format("{}-{}", g.key, i), gpus, g.priority);
    p.group = g.key;
    e.apply(PodUpsert{p});
  }
}

/// Node a of 8 GPUs, half of them busy for so long (zero: until nobody knows when); "d/head" waits
/// for all of them.
inline Engine blocked_head(Duration busy,
                           Config config = {},
                           const Queue& queue = {.name = "default"}) {
  config.preempt = false;
  config.default_queue = queue.name;
  Engine e(config);
  e.apply(QueueUpsert{queue});
  e.apply(NodeUpsert{node("a", 8)});
  Pod runs = running(pod("d/runs", 4), "a");
  runs.expected_duration = busy;
  e.apply(PodUpsert{runs});
  e.apply(PodUpsert{pod("d/head", 8)});
  (void)e.decide(kNow);
  return e;
}

inline std::vector<std::string> bound(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& b : plan.binds) out.push_back(b.pod);
  return out;
}

inline std::vector<std::string> evicted(const Plan& plan) {
  std::vector<std::string> out;
  for (const auto& v : plan.evicts) out.push_back(v.pod);
  return out;
}

inline std::string why(const Engine& e, const std::string& key) {
  const auto view = e.why(key);
  return view ? describe(view->refusal) : "(does not wait)";
}

}  // namespace muster::engine::test
