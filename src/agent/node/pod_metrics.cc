#include "agent/node/pod_metrics.h"

#include <fmt/core.h>
#include <unistd.h>

#include <fstream>

#include "agent/pod/pod_worker.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::agent {
namespace {

using json::at;

struct Sample {
  std::int64_t cpu_usage_ns = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t rate_nano = 0;  // cores × 10⁹ between the last two looks
  Duration at{0};
};

class PodMetrics final : public Metrics {
 public:
  PodMetrics(Context& context, std::function<std::vector<std::shared_ptr<PodWorker>>()> workers)
      : context_(context), workers_(std::move(workers)) {}

  Task<json::Array> pod_metrics(std::string ns) override {
    json::Array out;
    const auto workers = workers_();
    for (const auto& worker : workers) {
      const auto pod = worker->pod();
      if (!ns.empty() && kube::namespace_of(*pod) != ns) continue;
      if (!worker->state().sandbox_ready) continue;
      json::Array containers;
      co_await look(worker, containers);
      if (containers.empty()) continue;
      out.push_back(json::Object{
          {"metadata",
           json::Object{
               {"name", kube::name_of(*pod)},
               {"namespace", kube::namespace_of(*pod)},
               {"creationTimestamp", format_time(context_.loop.now())},
               {"labels",
                at(*pod, "metadata", "labels").is_null() ? json::Value(json::Object{})
                                                         : at(*pod, "metadata", "labels")}}},
          {"timestamp", format_time(context_.loop.now())},
          {"window", "15s"},
          {"containers", std::move(containers)}});
    }
    co_return out;
  }

  /// A virtual node uses what its pods use.
  Task<json::Array> node_metrics() override {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> by_node;
    for (const auto& [name, node] : context_.informers.get(client::resources::kNodes).objects()) {
      if (kube::label(*node, kube::names::kVirtual) == "true") by_node[name] = {0, 0};
    }
    const auto workers = workers_();
    for (const auto& worker : workers) {
      if (!worker->state().sandbox_ready) continue;
      json::Array containers;
      co_await look(worker, containers);
      auto& sum = by_node[json::text_at(*worker->pod(), "spec", "nodeName")];
      for (const auto& record : worker->state().containers) {
        if (!record.running()) continue;
        const auto& sample = samples_[record.current->id];
        sum.first += sample.rate_nano;
        sum.second += sample.memory_bytes;
      }
    }
    json::Array out;
    for (const auto& [name, sum] : by_node) {
      out.push_back(json::Object{
          {"metadata",
           json::Object{{"name", name}, {"creationTimestamp", format_time(context_.loop.now())}}},
          {"timestamp", format_time(context_.loop.now())},
          {"window", "15s"},
          {"usage", usage(sum.first, sum.second)}});
    }
    co_return out;
  }

 private:
  static json::Object usage(std::int64_t nano, std::int64_t bytes) {
    return json::Object{{"cpu", fmt::format("{}n", nano)},
                        {"memory", fmt::format("{}Ki", bytes / 1024)}};
  }

  Task<void> look(std::shared_ptr<PodWorker> worker, json::Array& containers) {
    const auto read = co_await context_.runtime.usage(worker->uid());
    if (!read) co_return;
    const auto now = context_.loop.monotonic();
    for (const auto* records : {&worker->state().inits, &worker->state().containers}) {
      for (const auto& record : *records) {
        if (!record.running()) continue;
        const auto found = read->find(record.current->id);
        if (found == read->end()) continue;
        auto& sample = samples_[record.current->id];
        const auto since = sample.at == Duration::zero()
                               ? context_.loop.now() - record.current->started
                               : now - sample.at;
        // Two looks in quick succession would measure noise; keep the last rate.
        if (since > std::chrono::milliseconds(500) || sample.at == Duration::zero()) {
          sample.rate_nano =
              since.count() > 0
                  ? (found->second.cpu_usage_ns - sample.cpu_usage_ns) * 1'000'000 / since.count()
                  : 0;
          sample.cpu_usage_ns = found->second.cpu_usage_ns;
          sample.at = now;
        }
        sample.memory_bytes = found->second.memory_bytes;
        containers.push_back(json::Object{{"name", record.name},
                                          {"usage", usage(sample.rate_nano, sample.memory_bytes)}});
      }
    }
    if (samples_.size() > 20'000) samples_.clear();  // of containers long gone
  }

  Context& context_;
  std::function<std::vector<std::shared_ptr<PodWorker>>()> workers_;
  std::map<std::string, Sample> samples_;  // by container id
};

}  // namespace

std::unique_ptr<Metrics> make_pod_metrics(
    Context& context, std::function<std::vector<std::shared_ptr<PodWorker>>()> workers) {
  return std::make_unique<PodMetrics>(context, std::move(workers));
}

}  // namespace muster::agent
