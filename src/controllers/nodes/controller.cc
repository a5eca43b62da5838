#include "controllers/nodes/controller.h"

#include <fmt/core.h>

#include "base/log.h"
#include "controllers/nodes/plan.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::controllers::nodes {
namespace {

constexpr Duration kPeriod = std::chrono::seconds(1);

bool has_no_execute(const json::Value& node) {
  for (const auto& taint : json::array_at(node, "spec", "taints")) {
    if (json::string_at(taint, "effect") == "NoExecute") return true;
  }
  return false;
}

client::ListOptions node_leases() {
  client::ListOptions options;
  options.ns = "kube-node-lease";
  return options;
}

}  // namespace

Controller::Controller(Env& env,
                       client::Client& client,
                       client::Informers& informers,
                       Duration grace)
    : env_(env),
      client_(client),
      nodes_(informers.get(client::resources::kNodes)),
      pods_(informers.get(client::resources::kPods)),
      leases_(informers.get(client::resources::kLeases, node_leases())),
      grace_(grace),
      events_(client::make_event_recorder(env, client, "node-controller", "")),
      wake_(env.make_signal()),
      ended_(env.make_signal()) {
  client::InformerHandlers nodes;
  nodes.on_change = [this](const client::ObjectPtr& before, const client::ObjectPtr& after) {
    const std::string name(kube::name_of(after ? *after : *before));
    if (!after) heartbeats_.erase(name);
    if (after) changed_.insert(name);
    after&& has_no_execute(*after) ? void(tainted_.insert(name)) : void(tainted_.erase(name));
  };
  nodes_.add_handlers(std::move(nodes));
  client::InformerHandlers leases;
  leases.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr& after) {
    if (after) lease_changed(after);
  };
  leases_.add_handlers(std::move(leases));
}

void Controller::lease_changed(const client::ObjectPtr& lease) {
  auto& heartbeat = heartbeats_[std::string(kube::name_of(*lease))];
  auto renewed = json::text_at(*lease, "spec", "renewTime");
  if (renewed == heartbeat.renewed) return;
  heartbeat = {std::move(renewed), env_.monotonic()};
}

void Controller::start() {
  running_ = true;
  // Leases that are old already count from now: whoever renews them may have started with us.
  for (auto& [node, heartbeat] : heartbeats_) heartbeat.seen = env_.monotonic();
  env_.spawn(run());
}

Task<void> Controller::stop() {
  stopping_ = true;
  wake_->notify();
  while (running_) co_await ended_->wait(Duration::zero());
  co_await events_->flush();
}

Task<void> Controller::run() {
  while (!stopping_) {
    const auto now = env_.monotonic();
    auto names = std::exchange(changed_, {});
    for (const auto& [node, heartbeat] : heartbeats_) {
      if (now - heartbeat.seen > grace_) names.insert(node);
    }
    for (const auto& name : names) co_await look(name);
    std::vector<client::ObjectPtr> due;
    if (!tainted_.empty()) {
      for (const auto& [key, pod] : pods_.objects()) {
        const auto name = json::text_at(*pod, "spec", "nodeName");
        if (!tainted_.contains(name) || kube::is_deleting(*pod) || kube::pod_finished(*pod))
          continue;
        const auto node = nodes_.find(name);
        const auto end = node ? eviction_time(*node, *pod, env_.now()) : std::nullopt;
        if (end && *end <= env_.now()) due.push_back(pod);
      }
    }
    for (const auto& pod : due) co_await evict(pod);
    if (!stopping_) co_await wake_->wait(kPeriod);
  }
  running_ = false;
  ended_->notify();
}

Task<void> Controller::look(std::string name) {
  const auto node = nodes_.find(name);
  if (!node) co_return;
  const auto heartbeat = heartbeats_.find(name);
  const bool silent =
      heartbeat != heartbeats_.end() && env_.monotonic() - heartbeat->second.seen > grace_;
  auto plan = plan_node(*node, silent, env_.now());
  if (!plan.status.is_null()) {
    log::warn("controllers", "node {} has not renewed its lease: its state is unknown", name);
    events_->record(
        *node, "Normal", "NodeNotReady", fmt::format("Node {} status is now: NodeNotReady", name));
    const auto written = co_await client_.patch(client::resources::kNodes,
                                                "",
                                                name,
                                                "status",
                                                client::PatchType::kMerge,
                                                std::move(plan.status));
    if (!written && written.error().code != Code::kNotFound)
      log::warn("controllers", "status of node {}: {}", name, written.error().message);
    co_await mark_pods_not_ready(name);
  }
  if (!plan.spec.is_null()) {
    const auto written = co_await client_.patch(
        client::resources::kNodes, "", name, "", client::PatchType::kMerge, std::move(plan.spec));
    if (!written && written.error().code != Code::kNotFound)
      log::warn("controllers", "taints of node {}: {}", name, written.error().message);
  }
}

/// Services must not lead to pods of which nobody knows whether they run.
Task<void> Controller::mark_pods_not_ready(std::string node) {
  std::vector<client::ObjectPtr> ready;
  for (const auto& [key, pod] : pods_.objects()) {
    if (json::string_at(*pod, "spec", "nodeName") == node && kube::condition_true(*pod, "Ready"))
      ready.push_back(pod);
  }
  for (const auto& pod : ready) {
    json::Value patch = json::Object{
        {"status",
         json::Object{
             {"conditions",
              json::Array{json::Object{{"type", "Ready"},
                                       {"status", "False"},
                                       {"lastTransitionTime", format_time(env_.now())}}}}}}};
    const auto ns = std::string(kube::namespace_of(*pod)), name = std::string(kube::name_of(*pod));
    (void)co_await client_.patch(client::resources::kPods,
                                 ns,
                                 name,
                                 "status",
                                 client::PatchType::kStrategic,
                                 std::move(patch));
  }
}

Task<void> Controller::evict(client::ObjectPtr pod) {
  const auto ns = std::string(kube::namespace_of(*pod)), name = std::string(kube::name_of(*pod));
  events_->record(*pod,
                  "Normal",
                  "TaintManagerEviction",
                  fmt::format("Marking for deletion Pod {}/{}", ns, name));
  json::Value patch = json::Object{
      {"status",
       json::Object{
           {"conditions",
            json::Array{json::Object{{"type", "DisruptionTarget"},
                                     {"status", "True"},
                                     {"reason", "DeletionByTaintManager"},
                                     {"message", "Taint manager: deleting due to NoExecute taint"},
                                     {"lastTransitionTime", format_time(env_.now())}}}}}}};
  (void)co_await client_.patch(client::resources::kPods,
                               ns,
                               name,
                               "status",
                               client::PatchType::kStrategic,
                               std::move(patch));
  client::DeleteOptions options;
  options.uid = std::string(kube::uid_of(*pod));
  const auto removed = co_await client_.remove(client::resources::kPods, ns, name, options);
  if (!removed && removed.error().code != Code::kNotFound &&
      removed.error().code != Code::kConflict)
    log::warn("controllers", "evict pod {}/{}: {}", ns, name, removed.error().message);
}

}  // namespace muster::controllers::nodes
