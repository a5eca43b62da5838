#include "scheduler/metrics.h"

namespace muster::scheduler {
namespace {

void add_amounts(prometheus::Page& page,
                 const std::vector<engine::QueueView>& queues,
                 std::string_view name,
                 std::string_view help,
                 engine::ResourceList engine::QueueView::* field) {
  page.begin(name, "gauge", help);
  for (const engine::QueueView& queue : queues) {
    for (const auto& amount : queue.*field) {
      const double number = amount.name == "cpu" ? static_cast<double>(amount.value) / 1000
                                                 : static_cast<double>(amount.value);
      page.value(name, number, {{"queue", queue.name}, {"resource", amount.name}});
    }
  }
}

}  // namespace

void add_metrics(prometheus::Page& page, const Scheduler& scheduler) {
  const engine::Stats stats = scheduler.engine().stats();
  const Counters& counters = scheduler.counters();
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  page.one("muster_nodes", "gauge", "Nodes that the scheduler knows.", number(stats.nodes));
  page.one("muster_pods",
           "gauge",
           "Pods that the scheduler knows and that have not finished.",
           number(stats.pods));
  page.one(
      "muster_pods_bound", "gauge", "Of these, pods that have a node.", number(stats.pods_bound));
  page.one("muster_gangs_waiting",
           "gauge",
           "Waiting gangs; a pod without a group counts as one.",
           number(stats.gangs_waiting));
  page.one("muster_gang_attempts_total",
           "counter",
           "Gangs that the engine has tried to place.",
           number(stats.attempts));
  page.one("muster_binds_total",
           "counter",
           "Bindings that the API server accepted.",
           number(counters.bound));
  page.one("muster_bind_failures_total",
           "counter",
           "Bindings that failed and were retried later.",
           number(counters.bind_failures));
  page.one(
      "muster_evictions_total", "counter", "Pods evicted for others.", number(counters.evicted));
  page.one("muster_eviction_failures_total",
           "counter",
           "Evictions that failed.",
           number(counters.evict_failures));
  page.histogram(
      "muster_decide_seconds", "One pass of the engine over what changed.", counters.decide);
  page.histogram("muster_bind_seconds",
                 "From a decision to the API server's answer to its binding.",
                 counters.bind);
  const std::vector<engine::QueueView> queues = scheduler.queues();
  page.begin("muster_queue_gangs_waiting", "gauge", "Gangs of a queue that wait.");
  for (const engine::QueueView& queue : queues)
    page.value("muster_queue_gangs_waiting", queue.gangs_waiting, {{"queue", queue.name}});
  page.begin("muster_queue_gangs_running", "gauge", "Gangs of a queue that hold resources.");
  for (const engine::QueueView& queue : queues)
    page.value("muster_queue_gangs_running", queue.gangs_running, {{"queue", queue.name}});
  add_amounts(page,
              queues,
              "muster_queue_allocated",
              "What a queue's gangs hold; cpu in cores, memory in bytes.",
              &engine::QueueView::allocated);
  add_amounts(page,
              queues,
              "muster_queue_requested",
              "What a queue's gangs hold and wait for.",
              &engine::QueueView::requested);
  add_amounts(page,
              queues,
              "muster_queue_deserved",
              "What a queue deserves.",
              &engine::QueueView::deserved);
}

}  // namespace muster::scheduler
