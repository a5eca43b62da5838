/// What pods are placed into and by which rules: nodes with their HyperNodes, namespaces, disruption
/// budgets, queues and priority classes, each followed and told to the engine. Pods and their groups
/// are scheduler.cc's own. On the loop.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "client/informer.h"
#include "engine/engine.h"
#include "scheduler/followed.h"
#include "scheduler/hypernodes.h"
#include "scheduler/translate.h"

namespace muster::scheduler {

class Surroundings {
 public:
  struct Hooks {
    /// For the engine.
    std::function<void(const engine::Event&)> apply;
    /// What groups and waiting pods were translated with has changed.
    std::function<void()> rules_changed;
    /// A kind is known now.
    std::function<void()> synced;
  };
  /// Gives `translate` the priorities and HyperNodes that it asks for. References outlive this.
  Surroundings(client::Informers& informers,
               Followed& followed,
               const engine::Config& config,
               TranslateOptions& translate,
               Hooks hooks);
  Surroundings(const Surroundings&) = delete;

  void start();
  /// Once more, after a change of the options they are translated with.
  void apply_queues();
  [[nodiscard]] std::set<std::string> queue_names() const;

 private:
  using Changed =
      std::function<void(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object)>;
  void follow(const client::Resource& kind, Changed changed);
  void follow_nodes();
  void follow_queues();
  void tell_node(const json::Value& node);
  void hypernodes_changed();
  void rebuild_hypernodes();
  [[nodiscard]] engine::Queue fallback_queue() const;
  [[nodiscard]] bool is_idle_root(const json::Value& queue) const;
  std::pair<std::int32_t, bool> priority_of(std::string_view name) const;

  client::Informers& informers_;
  Followed& followed_;
  const engine::Config& config_;
  TranslateOptions& translate_;
  Hooks hooks_;
  HyperNodes hypernodes_;
  /// As the HyperNodes were last resolved.
  std::map<std::string, engine::Labels> node_labels_;
};

}  // namespace muster::scheduler
