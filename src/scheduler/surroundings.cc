#include "scheduler/surroundings.h"

#include "kube/meta.h"

namespace muster::scheduler {
namespace {

using client::ObjectPtr;
namespace resources = client::resources;

}  // namespace

Surroundings::Surroundings(client::Informers& informers,
                           Followed& followed,
                           const engine::Config& config,
                           TranslateOptions& translate,
                           Hooks hooks)
    : informers_(informers),
      followed_(followed),
      config_(config),
      translate_(translate),
      hooks_(std::move(hooks)) {
  translate_.topology_of = [this](const json::Value& wanted) { return hypernodes_.levels(wanted); };
  translate_.priority_of = [this](std::string_view name) { return priority_of(name); };
}

void Surroundings::follow(const client::Resource& kind, Changed changed) {
  client::Informer& informer = informers_.get(kind);
  followed_.add(informer, kind);
  informer.add_handlers({std::move(changed), hooks_.synced});
}

void Surroundings::start() {
  follow_nodes();
  follow(resources::kNamespaces, [this](const ObjectPtr& before, const ObjectPtr& now) {
    if (now)
      hooks_.apply(engine::NamespaceUpsert{translate_namespace(*now)});
    else
      hooks_.apply(engine::NamespaceRemove{std::string(kube::name_of(*before))});
  });
  follow(resources::kPodDisruptionBudgets, [this](const ObjectPtr& before, const ObjectPtr& now) {
    if (now)
      hooks_.apply(engine::BudgetUpsert{translate_budget(*now)});
    else
      hooks_.apply(engine::BudgetRemove{client::key_of(*before)});
  });
  follow_queues();
  follow(resources::kPriorityClasses,
         [this](const ObjectPtr&, const ObjectPtr&) { hooks_.rules_changed(); });
}

// ---------------------------------------------------------------------------- nodes and HyperNodes

void Surroundings::follow_nodes() {
  follow(resources::kNodes, [this](const ObjectPtr& before, const ObjectPtr& now) {
    if (now)
      tell_node(*now);
    else
      hooks_.apply(engine::NodeRemove{std::string(kube::name_of(*before))});
  });
  follow(resources::kHyperNodes,
         [this](const ObjectPtr&, const ObjectPtr&) { hypernodes_changed(); });
}

/// HyperNodes are labels of the nodes below them. A node that is new or has new labels is looked up
/// anew: members may be named by pattern or label.
void Surroundings::tell_node(const json::Value& object) {
  engine::Node node = translate_node(object, translate_);
  if (!hypernodes_.empty()) {
    const auto known = node_labels_.find(node.name);
    if (known == node_labels_.end() || known->second != node.labels) rebuild_hypernodes();
    const engine::Labels& more = hypernodes_.labels_of(node.name);
    node.labels.insert(node.labels.end(), more.begin(), more.end());
  }
  hooks_.apply(engine::NodeUpsert{std::move(node)});
}

void Surroundings::hypernodes_changed() {
  rebuild_hypernodes();
  for (const auto& [name, node] : informers_.get(resources::kNodes).objects()) tell_node(*node);
  hooks_.rules_changed();
}

void Surroundings::rebuild_hypernodes() {
  std::vector<ObjectPtr> all;
  for (const auto& [name, object] : informers_.get(resources::kHyperNodes).objects())
    all.push_back(object);
  node_labels_.clear();
  for (const auto& [name, node] : informers_.get(resources::kNodes).objects())
    node_labels_[name] = translate_node(*node, translate_).labels;
  hypernodes_.rebuild(all, node_labels_);
}

// ------------------------------------------------------------------------------------------ queues

void Surroundings::follow_queues() {
  hooks_.apply(engine::QueueUpsert{fallback_queue()});
  follow(resources::kQueues, [this](const ObjectPtr& before, const ObjectPtr& now) {
    if (now && is_idle_root(*now)) return;
    if (now)
      hooks_.apply(engine::QueueUpsert{translate_queue(*now, translate_)});
    else if (kube::name_of(*before) == config_.default_queue)
      hooks_.apply(engine::QueueUpsert{fallback_queue()});
    else
      hooks_.apply(engine::QueueRemove{std::string(kube::name_of(*before))});
  });
  follow(resources::kT9kQueues, [this](const ObjectPtr& before, const ObjectPtr& now) {
    if (now)
      hooks_.apply(engine::QueueUpsert{translate_t9k_queue(*now, translate_)});
    else
      hooks_.apply(engine::QueueRemove{translate_t9k_queue(*before, translate_).name});
  });
}

/// The default queue is always there, whether or not the cluster knows the kind.
engine::Queue Surroundings::fallback_queue() const {
  engine::Queue queue;
  queue.name = config_.default_queue;
  queue.backfill = translate_.backfill;
  return queue;
}

/// Muster's own rules need no root; Volcano's tree hangs from it.
bool Surroundings::is_idle_root(const json::Value& queue) const {
  return kube::name_of(queue) == "root" && config_.policy != engine::PolicyKind::kVolcano;
}

void Surroundings::apply_queues() {
  hooks_.apply(engine::QueueUpsert{fallback_queue()});
  for (const auto& [name, queue] : informers_.get(resources::kQueues).objects()) {
    if (!is_idle_root(*queue))
      hooks_.apply(engine::QueueUpsert{translate_queue(*queue, translate_)});
  }
  for (const auto& [key, queue] : informers_.get(resources::kT9kQueues).objects())
    hooks_.apply(engine::QueueUpsert{translate_t9k_queue(*queue, translate_)});
}

std::set<std::string> Surroundings::queue_names() const {
  std::set<std::string> names{config_.default_queue};
  for (const auto& [name, queue] : informers_.get(resources::kQueues).objects()) names.insert(name);
  for (const auto& [key, queue] : informers_.get(resources::kT9kQueues).objects())
    names.insert(translate_t9k_queue(*queue, translate_).name);
  return names;
}

std::pair<std::int32_t, bool> Surroundings::priority_of(std::string_view name) const {
  const auto& classes = informers_.get(resources::kPriorityClasses);
  if (!name.empty()) {
    const ObjectPtr found = classes.find(std::string(name));
    if (!found) return {0, false};
    return {static_cast<std::int32_t>(json::int_at(*found, "value")), true};
  }
  for (const auto& [key, value] : classes.objects()) {
    if (json::bool_at(*value, "globalDefault"))
      return {static_cast<std::int32_t>(json::int_at(*value, "value")), true};
  }
  return {0, true};
}

}  // namespace muster::scheduler
