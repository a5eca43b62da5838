#include "main/metrics.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/quantity.h"
#include "base/strings.h"

namespace muster {
namespace {

class Page {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  void value(std::string_view name, double number, std::string_view labels = "") {
    text_ +=
        fmt::format("{}{} {}\n", name, labels.empty() ? "" : fmt::format("{{{}}}", labels), number);
  }
  void one(std::string_view name, std::string_view type, std::string_view help, double number) {
    begin(name, type, help);
    value(name, number);
  }
  void histogram(std::string_view name,
                 std::string_view help,
                 const scheduler::Histogram& histogram) {
    begin(name, "histogram", help);
    std::int64_t so_far = 0;
    for (std::size_t i = 0; i < scheduler::Histogram::kBounds_s.size(); ++i) {
      so_far += histogram.in_bucket(i);
      value(fmt::format("{}_bucket", name),
            static_cast<double>(so_far),
            fmt::format("le=\"{}\"", scheduler::Histogram::kBounds_s[i]));
    }
    value(fmt::format("{}_bucket", name), static_cast<double>(histogram.count()), "le=\"+Inf\"");
    value(fmt::format("{}_sum", name), histogram.sum_s());
    value(fmt::format("{}_count", name), static_cast<double>(histogram.count()));
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string label_value(std::string_view text) {
  return replace_all(
      replace_all(replace_all(std::string(text), "\\", "\\\\"), "\"", "\\\""), "\n", "\\n");
}

/// The names that every Prometheus client library uses for the process itself.
void add_process(Page& page) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  page.one("process_cpu_seconds_total",
           "counter",
           "CPU time that this process has used.",
           seconds(usage.ru_utime) + seconds(usage.ru_stime));
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  page.one("process_resident_memory_bytes",
           "gauge",
           "Memory of this process that lies in RAM.",
           resident * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  std::error_code ignored;
  double files = 0;
  for (auto entry = std::filesystem::directory_iterator("/proc/self/fd", ignored);
       entry != std::filesystem::directory_iterator();
       entry.increment(ignored))
    ++files;
  page.one("process_open_fds", "gauge", "Open files and connections of this process.", files);
}

void add_amounts(Page& page,
                 const scheduler::Scheduler& scheduler,
                 std::string_view name,
                 std::string_view help,
                 engine::ResourceList engine::QueueView::* field) {
  page.begin(name, "gauge", help);
  for (const auto& queue : scheduler.queues()) {
    for (const auto& amount : queue.*field) {
      const double number = amount.name == "cpu" ? static_cast<double>(amount.value) / 1000
                                                 : static_cast<double>(amount.value);
      page.value(
          name,
          number,
          fmt::format(
              "queue=\"{}\",resource=\"{}\"", label_value(queue.name), label_value(amount.name)));
    }
  }
}

void add_scheduler(Page& page, const scheduler::Scheduler& scheduler) {
  const engine::Stats stats = scheduler.engine().stats();
  const scheduler::Counters& counters = scheduler.counters();
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  page.one("muster_nodes", "gauge", "Nodes that the scheduler knows.", number(stats.nodes));
  page.one("muster_pods",
           "gauge",
           "Pods that the scheduler knows and that have not finished.",
           number(stats.pods));
  page.one("muster_pods_bound",
           "gauge",
           "Of these, pods that have a node, whoever gave it.",
           number(stats.pods_bound));
  page.one("muster_gangs_waiting",
           "gauge",
           "Gangs that wait, a pod by itself counting as one.",
           number(stats.gangs_waiting));
  page.one("muster_gang_attempts_total",
           "counter",
           "Gangs that the engine has tried to place.",
           number(stats.attempts));
  page.one("muster_binds_total",
           "counter",
           "Bindings that the API server took.",
           number(counters.bound));
  page.one("muster_bind_failures_total",
           "counter",
           "Bindings that failed and were tried again later.",
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
  page.begin("muster_queue_gangs_waiting", "gauge", "Gangs of a queue that wait.");
  for (const auto& queue : scheduler.queues())
    page.value("muster_queue_gangs_waiting",
               queue.gangs_waiting,
               fmt::format("queue=\"{}\"", label_value(queue.name)));
  page.begin("muster_queue_gangs_running", "gauge", "Gangs of a queue that hold resources.");
  for (const auto& queue : scheduler.queues())
    page.value("muster_queue_gangs_running",
               queue.gangs_running,
               fmt::format("queue=\"{}\"", label_value(queue.name)));
  add_amounts(page,
              scheduler,
              "muster_queue_allocated",
              "What a queue's gangs hold; cpu in cores, memory in bytes.",
              &engine::QueueView::allocated);
  add_amounts(page,
              scheduler,
              "muster_queue_requested",
              "What a queue's gangs hold and wait for.",
              &engine::QueueView::requested);
  add_amounts(page,
              scheduler,
              "muster_queue_deserved",
              "What a queue deserves.",
              &engine::QueueView::deserved);
}

}  // namespace

std::string format_metrics(const MetricsInput& input) {
  Page page;
  page.one("muster_leader", "gauge", "1 while this replica does the work.", input.leader ? 1 : 0);
  if (input.scheduler != nullptr) add_scheduler(page, *input.scheduler);
  add_process(page);
  return page.take();
}

}  // namespace muster
