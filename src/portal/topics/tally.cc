#include "portal/topics/tally.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"

namespace muster::portal {

std::uint64_t Tally::version() {
  const std::uint64_t now = jobs_.version() + nodes_.version();
  if (now == seen_) return version_;
  if (version_ != 0 && env_.monotonic() - made_ < took_ * 20) return version_;
  const Duration begun = env_.monotonic();
  make();
  seen_ = now;
  made_ = env_.monotonic();
  took_ = made_ - begun;
  return ++version_;
}

Share Tally::queue(Word queue) const {
  const auto found = queues_.find(queue);
  return found == queues_.end() ? Share{} : found->second;
}

Share Tally::vc(Word vc) const {
  const auto found = vcs_.find(vc);
  return found == vcs_.end() ? Share{} : found->second;
}

void Tally::make() {
  count_shares();
  count_nodes();
  sums_["alerts"] = alerts();
}

void Tally::count_shares() {
  queues_.clear();
  vcs_.clear();
  const Table& table = jobs_.table();
  for (Slot slot = 0; slot < table.slots(); ++slot) {
    const Keys& keys = table.keys(slot);
    if (!keys.used || (keys.state != State::kWaiting && keys.state != State::kRunning)) continue;
    for (Share* share : {&queues_[keys.queue], &vcs_[keys.vc]}) {
      if (keys.state == State::kRunning) {
        ++share->running;
      } else {
        ++share->waiting;
        share->waiting_gpus += keys.gpus;
      }
    }
  }
}

void Tally::count_nodes() {
  std::int64_t ready = 0, cordoned = 0, not_ready = 0, gpus = 0, used = 0, oppo = 0, unusable = 0;
  std::map<std::pair<int, int>, int, std::greater<>> by_size;  // (free, size) -> nodes
  for (const auto& [name, node] : nodes_.all()) {
    ++(node.state == NodeState::kReady      ? ready
       : node.state == NodeState::kCordoned ? cordoned
                                            : not_ready);
    gpus += node.gpus;
    int here = 0;
    for (const auto& [pod, on] : jobs_.on_node(name)) {
      here += on.task->gpus;
      if (!on.task->opportunistic) continue;
      oppo += on.task->gpus;
      if (!on.entry->shown) continue;
      const Keys& keys = jobs_.table().keys(on.entry->slot);
      for (Share* share : {&queues_[keys.queue], &vcs_[keys.vc]}) {
        share->oppo_gpus += on.task->gpus;
        share->oppo_cpu_milli += on.task->cpu_milli;
        share->oppo_memory += on.task->memory;
      }
    }
    used += here;
    const int bad = static_cast<int>(node.bad.size());
    const int free = std::max(0, node.gpus - here - bad);
    unusable += node.state == NodeState::kReady ? std::min(bad, node.gpus) : free;
    if (node.state == NodeState::kReady && free > 0) ++by_size[{free, node.gpus}];
  }
  sums_["nodes"] = {{"total", ready + cordoned + not_ready},
                    {"ready", ready},
                    {"cordoned", cordoned},
                    {"notReady", not_ready}};
  sums_["gpus"] = {{"total", gpus},
                   {"used", used - oppo},
                   {"oppo", oppo},
                   {"held", 0},
                   {"free", std::max<std::int64_t>(0, gpus - used - unusable)},
                   {"unusable", unusable}};
  json::Array sizes;
  for (const auto& [size, count] : by_size)
    sizes.push_back({{"size", size.second}, {"free", size.first}, {"nodes", count}});
  sums_["freeBySize"] = std::move(sizes);
}

json::Array Tally::alerts() const {
  json::Array alerts;
  for (const auto& [name, node] : nodes_.all()) {
    if (alerts.size() >= 20) break;
    const std::string href = "/nodes/" + percent_encode(name);
    const json::Value since = node.since == 0 ? json::Value(nullptr) : json::Value(node.since);
    if (node.state == NodeState::kNotReady)
      alerts.push_back({{"severity", "error"},
                        {"text", fmt::format("Node {} is not ready", name)},
                        {"href", href},
                        {"since", since}});
    else if (!node.bad.empty())
      alerts.push_back(
          {{"severity", "warning"},
           {"text",
            fmt::format("Node {}: {} of {} GPUs are unhealthy", name, node.bad.size(), node.gpus)},
           {"href", href},
           {"since", nullptr}});
  }
  return alerts;
}

}  // namespace muster::portal
