#include "agent/node/node_keeper.h"

#include <fmt/core.h>

#include "agent/image/pulls.h"
#include "agent/node/node_address.h"
#include "agent/node/node_info.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::agent {
namespace {

using json::at;
using std::chrono::seconds;
constexpr Duration kLeasePeriod = seconds(10);
/// Leases between two status reports: five minutes, as a kubelet does.
constexpr int kReportsEvery = 30;

}  // namespace

void NodeKeeper::add(const std::string& node) {
  if (nodes_.insert(node).second) fresh_.insert(node);
  wake_->notify();
}

void NodeKeeper::report_again() {
  fresh_.insert(nodes_.begin(), nodes_.end());
  wake_->notify();
}

void NodeKeeper::start() {
  running_ = true;
  context_.loop.spawn(run());
}

Task<void> NodeKeeper::stop() {
  stopping_ = true;
  wake_->notify();
  while (running_) co_await ended_->wait(Duration::zero());
}

Task<void> NodeKeeper::run() {
  auto next_lease = context_.loop.monotonic();
  int round = 0;
  while (!stopping_) {
    const auto fresh = std::exchange(fresh_, {});
    for (const auto& node : fresh) {
      co_await report(node);
      co_await renew_lease(node);
    }
    const auto now = context_.loop.monotonic();
    if (now >= next_lease) {
      next_lease = now + kLeasePeriod;
      const bool reports = ++round % kReportsEvery == 0;
      const auto nodes = nodes_;
      for (const auto& node : nodes) {
        if (stopping_) break;
        if (!fresh.contains(node)) co_await renew_lease(node);
        if (reports || !seems_ready(node)) co_await report(node);
      }
    }
    if (stopping_) break;
    co_await wake_->wait(
        std::max<Duration>(next_lease - context_.loop.monotonic(), std::chrono::milliseconds(1)));
  }
  running_ = false;
  ended_->notify();
}

/// Others say that it is not when they have missed its lease for a while.
bool NodeKeeper::seems_ready(const std::string& node) const {
  const auto known = context_.informers.get(client::resources::kNodes).find(node);
  return !known || kube::condition_true(*known, "Ready");
}

Task<void> NodeKeeper::renew_lease(std::string node) {
  const auto now = context_.loop.now();
  json::Object spec{{"holderIdentity", node},
                    {"leaseDurationSeconds", 40},
                    {"renewTime", format_micro_time(now)}};
  json::Value patch = json::Object{{"spec", spec}};
  const auto renewed = co_await context_.client.patch(client::resources::kLeases,
                                                      "kube-node-lease",
                                                      node,
                                                      "",
                                                      client::PatchType::kMerge,
                                                      std::move(patch));
  if (renewed) co_return;
  if (renewed.error().code != Code::kNotFound) {
    log::warn("agent", "lease of node {}: {}", node, renewed.error().message);
    co_return;
  }
  json::Value lease =
      json::Object{{"apiVersion", kube::resources::kLeases.api_version()},
                   {"kind", "Lease"},
                   {"metadata", json::Object{{"name", node}, {"namespace", "kube-node-lease"}}},
                   {"spec", spec}};
  const auto made = co_await context_.client.create(
      client::resources::kLeases, "kube-node-lease", std::move(lease));
  if (!made) log::warn("agent", "lease of node {}: {}", node, made.error().message);
}

Task<void> NodeKeeper::report(std::string node) {
  const auto known = context_.informers.get(client::resources::kNodes).find(node);
  if (!known) co_return;
  const auto now = context_.loop.now();
  json::Object status{
      {"conditions", ready_conditions(*known, now)},
      {"addresses",
       json::Array{json::Object{{"type", "InternalIP"},
                                {"address", node_address(*known, context_.host_ip)}},
                   json::Object{{"type", "Hostname"}, {"address", node}}}},
      {"nodeInfo", node_info(context_.runtime.version())}};
  if (context_.image_source != nullptr) status["images"] = context_.image_source->node_images();
  // Real GPUs that have failed are no longer handed out.
  if (at(*known, "metadata", "labels", kube::names::kGpuSimulated).is_null() &&
      !at(*known, "status", "capacity", "nvidia.com/gpu").is_null()) {
    std::vector<Gpu> found;
    const auto work = [&found, folders = context_.cdi_folders] { found = find_gpus(folders); };
    co_await context_.loop.run_on_worker(work);
    int healthy = 0;
    for (const auto& gpu : found) healthy += gpu.healthy ? 1 : 0;
    if (!found.empty())
      status["allocatable"] = json::Object{{"nvidia.com/gpu", std::to_string(healthy)}};
  }
  json::Value patch = json::Object{{"status", std::move(status)}};
  const auto written = co_await context_.client.patch(client::resources::kNodes,
                                                      "",
                                                      node,
                                                      "status",
                                                      client::PatchType::kStrategic,
                                                      std::move(patch));
  if (!written && written.error().code != Code::kNotFound)
    log::warn("agent", "status of node {}: {}", node, written.error().message);
}

}  // namespace muster::agent
