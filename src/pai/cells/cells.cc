#include "pai/cells/cells.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "hived/annotations.h"
#include "hived/config_map.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "pai/people/records.h"

namespace muster::pai {
namespace {

using client::resources::kConfigMaps;
using client::resources::kNodes;
using client::resources::kPods;
using client::resources::kQueues;

constexpr std::string_view kGpu = "nvidia.com/gpu";
constexpr std::int64_t kMebibyte = 1024 * 1024;
/// Volcano's: the parent of all.
constexpr std::string_view kRootQueue = "root";

bool healthy(const json::Value& node) {
  return !json::bool_at(node, "spec", "unschedulable") && kube::condition_true(node, "Ready");
}

bool bound(const json::Value& pod) {
  return !json::string_at(pod, "spec", "nodeName").empty() && !kube::pod_finished(pod);
}

std::shared_ptr<const hived::RunningPod> read_seat(const json::Value& pod) {
  const std::string ns(kube::namespace_of(pod)), name(kube::name_of(pod));
  const auto spec =
      hived::parse_scheduling_spec(kube::annotation(pod, hived::kSchedulingSpec), ns, name);
  const auto bind = hived::parse_bind_info(kube::annotation(pod, hived::kBindInfo));
  if (!spec || !bind) return nullptr;
  return std::make_shared<hived::RunningPod>(
      hived::RunningPod{{std::string(kube::uid_of(pod)), ns + "/" + name}, *spec, *bind});
}

template <typename More>
void add(Amounts& sum, const More& more) {
  sum.gpu += more.gpu;
  sum.cpu += more.cpu;
  sum.memory_mb += more.memory_mb;
}

Amounts amounts_of(const kube::ResourceAmounts& map) {
  const auto get = [&map](std::string_view key) {
    const auto found = map.find(std::string(key));
    return found == map.end() ? 0 : found->second;
  };
  return {get(kGpu), get("cpu") / 1000, get("memory") / kMebibyte};
}

/// The leaves below a cell of the tree.
template <typename Each>
void each_leaf(const json::Value& cell, const Each& each) {
  const json::Array& children = json::array_at(cell, "cellChildren");
  if (children.empty()) each(cell);
  for (const json::Value& child : children) each_leaf(child, each);
}

const Sku& sku_of(const Facts& facts, const json::Value& leaf) {
  static const Sku kOneGpu{1, 0, 0};
  const auto found = facts.sku_types.find(json::text_at(leaf, "cellType"));
  return found == facts.sku_types.end() ? kOneGpu : found->second;
}

}  // namespace

namespace {

/// Leaf cells of one type that nobody sits on: of the machines, and of each virtual cluster's promise.
struct FreeLeaves {
  std::int64_t physical = 0, promised = 0;
  std::map<std::string, std::int64_t> by_vc;
};

/// What is promised, free, and not there without somebody leaving is lent. Which of several virtual
/// clusters lends it is not said by cells that are bound to nothing: those with most left go first.
void count_lent(Use& use, const std::map<std::string, FreeLeaves>& leaves, const Facts& facts) {
  for (const auto& [type, free] : leaves) {
    const auto sku = facts.sku_types.find(type);
    std::int64_t lent = std::max<std::int64_t>(0, free.promised - free.physical);
    std::vector<std::pair<std::int64_t, std::string>> order;
    for (const auto& [vc, count] : free.by_vc) order.emplace_back(-count, vc);
    std::sort(order.begin(), order.end());
    for (const auto& [count, vc] : order) {
      const std::int64_t here = std::min(lent, -count);
      lent -= here;
      for (std::int64_t i = 0; i < here; ++i)
        add(use.vcs[vc].lent, sku == facts.sku_types.end() ? Sku{1, 0, 0} : sku->second);
    }
  }
}

}  // namespace

Use count_cells(const json::Value& tree, const Facts& facts) {
  Use use;
  std::map<std::string, FreeLeaves> leaves;
  for (const auto& each : json::object_at(tree, "virtualClusters")) {
    VcUse& vc = use.vcs[std::string(each.key())];
    for (const json::Value& top : json::as_array(each.value())) {
      // Opportunistic pods show as further cells of priority -1: nobody owns those.
      if (json::int_at(top, "cellPriority") == -1 && json::at(top, "leafCellType").is_null())
        continue;
      each_leaf(top, [&](const json::Value& leaf) {
        const Sku& sku = sku_of(facts, leaf);
        add(vc.total, sku);
        const bool bad = json::string_at(leaf, "cellHealthiness") == "Bad";
        if (bad) ++vc.bad_cells;
        if (!bad) add(vc.guaranteed, sku);
        if (json::int_at(leaf, "cellPriority") >= 0) {
          add(vc.used, sku);
        } else if (!bad) {
          FreeLeaves& free = leaves[json::text_at(leaf, "cellType")];
          ++free.promised;
          ++free.by_vc[std::string(each.key())];
        }
      });
    }
  }
  const std::function<void(const json::Value&, const std::string&)> walk =
      [&](const json::Value& cell, const std::string& above) {
        // The address of a node's cell ends in its name.
        std::string node = above;
        if (json::bool_at(cell, "isNodeLevel")) {
          const auto parts = split(json::string_at(cell, "cellAddress"), '/');
          node = parts.back();
        }
        const json::Array& children = json::array_at(cell, "cellChildren");
        for (const json::Value& child : children) walk(child, node);
        if (!children.empty()) return;
        const Sku& sku = sku_of(facts, cell);
        NodeUse& seen = use.nodes[node];
        const bool bad = json::string_at(cell, "cellHealthiness") == "Bad";
        seen.healthy = seen.healthy && !bad;
        seen.gpu_total += sku.gpu;
        if (json::int_at(cell, "cellPriority") >= -1)
          seen.gpu_used += sku.gpu;
        else if (!bad)
          ++leaves[json::text_at(cell, "cellType")].physical;
        add(use.cluster, sku);
      };
  for (const json::Value& top : json::array_at(tree, "physicalCluster")) walk(top, "");
  count_lent(use, leaves, facts);
  return use;
}

Cells::Cells(Env& env, client::Informers& informers)
    : env_(env), informers_(informers), counted_signal_(env.make_signal()) {
  queues_changed();
}

void Cells::follow() {
  client::ListOptions one;
  one.ns = hived::kConfigMapNamespace;
  one.field_selector = fmt::format("metadata.name={}", hived::kConfigMapName);
  client::InformerHandlers config;
  config.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr& map) {
    config_changed(map);
  };
  informers_.get(kConfigMaps, one).add_handlers(std::move(config));
  queues_ = &informers_.get(kQueues);
  client::InformerHandlers queues;
  queues.on_change = [this](const client::ObjectPtr& old_queue, const client::ObjectPtr& queue) {
    ++changes_;
    if (!old_queue || !queue) queues_changed();
  };
  queues_->add_handlers(std::move(queues));
  nodes_ = &informers_.get(kNodes);
  client::InformerHandlers nodes;
  nodes.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr&) { ++changes_; };
  nodes_->add_handlers(std::move(nodes));
  pods_ = &informers_.get(kPods);
  client::InformerHandlers pods;
  pods.on_change = [this](const client::ObjectPtr& old_pod, const client::ObjectPtr& pod) {
    pod_changed(old_pod, pod);
  };
  pods_->add_handlers(std::move(pods));
}

void Cells::config_changed(const client::ObjectPtr& map) {
  ++changes_;
  const json::Value& text = map ? json::at(*map, "data", hived::kConfigMapKey) : json::null_value();
  if (!text.is_string()) {
    config_ = nullptr;
    queues_changed();
    return;
  }
  auto config = hived::parse_config(json::as_string(text));
  if (config && hived::check_cells(*config)) {
    config_ = std::make_shared<const hived::Config>(std::move(*config));
    facts_ = facts_of(*config_);
    for (const auto& each : told_) each();
  } else {
    // The scheduler says so in an event and goes on with what it had; so do we.
    log::warn("pai",
              "the cells in ConfigMap {}/{} are refused; the previous ones remain",
              hived::kConfigMapNamespace,
              hived::kConfigMapName);
  }
}

void Cells::queues_changed() {
  if (config_) return;
  facts_ = {};
  facts_.virtual_clusters[kDefaultVc];
  if (queues_ != nullptr)
    for (const auto& [name, queue] : queues_->objects())
      if (name != kRootQueue) facts_.virtual_clusters[name];
  for (const auto& each : told_) each();
}

void Cells::pod_changed(const client::ObjectPtr& old_pod, const client::ObjectPtr& pod) {
  const std::string key = client::key_of(pod ? *pod : *old_pod);
  const bool was = old_pod && bound(*old_pod), is = pod && bound(*pod);
  if (was == is && (!is || kube::uid_of(*old_pod) == kube::uid_of(*pod))) return;
  ++changes_;
  if (is && !kube::annotation(*pod, hived::kSchedulingSpec).empty())
    seats_[key] = {pod, nullptr};
  else
    seats_.erase(key);
}

std::vector<std::string> Cells::vcs() const {
  std::vector<std::string> names;
  for (const auto& [name, vc] : facts_.virtual_clusters) names.push_back(name);
  return names;
}

Task<std::shared_ptr<const Use>> Cells::use() {
  while (!use_ || counted_ != changes_) {
    if (!counting_) {
      co_await count();
      break;
    }
    co_await counted_signal_->wait(Duration::zero());
  }
  co_return use_;
}

/// Everything of the cluster that is counted, as it was at one moment.
struct Cells::Moment {
  std::shared_ptr<const hived::Config> config;
  std::vector<std::string> vcs;
  std::vector<std::pair<std::string, client::ObjectPtr>> nodes;
  std::vector<client::ObjectPtr> pods;              // without cells
  std::map<std::string, client::ObjectPtr> queues;  // without cells
  std::vector<std::pair<std::string, Seat>> seats;  // with cells
  Time now;
};

Task<void> Cells::count() {
  counting_ = true;
  const std::uint64_t upto = changes_;
  Moment moment{.config = config_, .vcs = vcs(), .now = env_.now()};
  moment.nodes.assign(nodes_->objects().begin(), nodes_->objects().end());
  if (config_) {
    moment.seats.assign(seats_.begin(), seats_.end());
  } else {
    for (const auto& [key, pod] : pods_->objects()) moment.pods.push_back(pod);
    moment.queues = queues_->objects();
  }
  std::shared_ptr<const Use> counted;
  co_await env_.run_on_worker([&] {
    counted =
        std::make_shared<const Use>(moment.config ? count_seats(moment) : count_queues(moment));
  });
  for (const auto& [key, seat] : moment.seats) {
    const auto found = seats_.find(key);
    if (found != seats_.end() && found->second.pod == seat.pod) found->second.read = seat.read;
  }
  use_ = std::move(counted);
  counted_ = upto;
  counting_ = false;
  counted_signal_->notify();
}

Use Cells::count_seats(Moment& moment) {
  std::vector<std::pair<std::string, bool>> nodes;
  for (const auto& [name, node] : moment.nodes) nodes.emplace_back(name, healthy(*node));
  std::stable_sort(moment.seats.begin(), moment.seats.end(), [](const auto& a, const auto& b) {
    return kube::creation_time(*a.second.pod) < kube::creation_time(*b.second.pod);
  });
  std::vector<hived::RunningPod> pods;
  for (auto& [key, seat] : moment.seats) {
    if (!seat.read) seat.read = read_seat(*seat.pod);
    if (seat.read) pods.push_back(*seat.read);
  }
  const auto occupied = hived::occupy(*moment.config, nodes, pods, moment.now);
  if (!occupied) return {};
  return count_cells(hived::tree_json(occupied->cells), facts_of(*moment.config));
}

Use Cells::count_queues(const Moment& moment) {
  Use use;
  Amounts ready, held;
  for (const auto& [name, node] : moment.nodes) {
    const Amounts has =
        amounts_of(kube::resource_amounts(json::at(*node, "status", "allocatable")));
    use.nodes[name] = {.gpu_used = 0, .gpu_total = has.gpu, .healthy = healthy(*node)};
    add(use.cluster, has);
    if (use.nodes[name].healthy) add(ready, has);
  }
  for (const client::ObjectPtr& pod : moment.pods) {
    if (!bound(*pod)) continue;
    const Amounts asked = amounts_of(kube::pod_requests(*pod));
    add(held, asked);
    const auto node = use.nodes.find(json::text_at(*pod, "spec", "nodeName"));
    if (node != use.nodes.end()) node->second.gpu_used += asked.gpu;
  }
  for (const std::string& name : moment.vcs) {
    VcUse& vc = use.vcs[name];
    const auto found = moment.queues.find(name);
    const json::Value& queue = found == moment.queues.end() ? json::null_value() : *found->second;
    const auto limit = kube::resource_amounts(json::at(queue, "spec", "capability"));
    vc.total = limit.empty() ? use.cluster : amounts_of(limit);
    const auto owned = kube::resource_amounts(json::at(queue, "spec", "guarantee", "resource"));
    vc.guaranteed = !owned.empty() ? amounts_of(owned) : limit.empty() ? ready : vc.total;
    const json::Value& allocated = json::at(queue, "status", "allocated");
    if (allocated.is_object())
      vc.used = amounts_of(kube::resource_amounts(allocated));
    else if (name == kDefaultVc)
      vc.used = held;
  }
  return use;
}

}  // namespace muster::pai
