#include "scheduler/scheduler.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "client/events.h"
#include "hived/annotations.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "scheduler/cells.h"
#include "scheduler/groups.h"
#include "scheduler/hands.h"
#include "scheduler/hypernodes.h"
#include "scheduler/lane.h"
#include "scheduler/translate.h"
#include "scheduler/volumes.h"
#include "scheduler/waits.h"

namespace muster::scheduler {
namespace {

using client::ObjectPtr;
namespace resources = client::resources;

/// Bursts of changes are decided together; a millisecond is enough to gather what one watch chunk
/// brought.
constexpr Duration kGather = std::chrono::milliseconds(1);
constexpr Duration kComplaint = std::chrono::seconds(30);

/// Most pod updates are status details of running pods; the engine need not hear of them.
bool same_for_engine(const json::Value& a, const json::Value& b) {
  const auto same = [&](auto... path) {
    return json::equal(json::at(a, path...), json::at(b, path...));
  };
  return same("metadata", "uid") && same("metadata", "labels") && same("metadata", "annotations") &&
         same("metadata", "deletionTimestamp") && same("status", "phase") &&
         same("status", "nominatedNodeName") && same("status", "startTime") && same("spec");
}

class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(Env& env,
                client::Client& client,
                client::Informers& informers,
                Options options,
                std::unique_ptr<CellQueue> cells)
      : env_(env),
        client_(client),
        informers_(informers),
        options_(std::move(options)),
        engine_(options_.engine),
        quick_(env, options_.in_flight_max),
        slow_(env, 16),
        events_(client::make_event_recorder(env, client, options_.name, "")),
        pods_(informers.get(resources::kPods)),
        context_{env_, client_, informers_, pods_, *events_, quick_, slow_},
        groups_(context_),
        volumes_(volumes()),
        hands_(context_,
               {.scheduler = options_.name,
                .volumes = volumes_.get(),
                .counters = &counters_,
                .answers = answers()}),
        waits_(context_,
               {.groups = groups_, .hands = hands_, .report_after = options_.report_after}),
        cells_(std::move(cells)) {
    slow_.yield_to(quick_);
    events_->hold_while([this] { return !quick_.idle(); });
    translate_.device_resource = options_.engine.device_resource;
    translate_.scheduler_names = options_.scheduler_names;
    translate_.backfill = options_.backfill;
    translate_.topology_of = [this](const json::Value& wanted) {
      return hypernodes_.levels(wanted);
    };
    translate_.priority_of = [this](std::string_view name) { return priority_of(name); };
  }

  void start() override {
    watch_pods();
    watch(
        resources::kNodes,
        [this](const json::Value& node) {
          engine::Node translated = translate_node(node, translate_);
          if (cells_)
            cells_->node_seen(translated.name, translated.ready && !translated.unschedulable);
          in_hypernodes(translated);
          return engine::Event(engine::NodeUpsert{std::move(translated)});
        },
        [this](const json::Value& node) {
          if (cells_) cells_->node_seen(std::string(kube::name_of(node)), false);
          return engine::Event(engine::NodeRemove{std::string(kube::name_of(node))});
        });
    watch(
        resources::kNamespaces,
        [](const json::Value& ns) {
          return engine::Event(engine::NamespaceUpsert{translate_namespace(ns)});
        },
        [](const json::Value& ns) {
          return engine::Event(engine::NamespaceRemove{std::string(kube::name_of(ns))});
        });
    watch(
        resources::kPodDisruptionBudgets,
        [](const json::Value& budget) {
          return engine::Event(engine::BudgetUpsert{translate_budget(budget)});
        },
        [](const json::Value& budget) {
          return engine::Event(engine::BudgetRemove{client::key_of(budget)});
        });
    watch_hypernodes();
    watch_queues();
    watch_groups(resources::kPodGroups, GroupKind::kVolcano);
    watch_groups(resources::kNativePodGroups, GroupKind::kNative);
    watch_groups(resources::kNativeCompositePodGroups, GroupKind::kComposite);
    watch_groups(resources::kSchedulerPluginsPodGroups, GroupKind::kPlugins);
    watch_groups(resources::kT9kPodGroups, GroupKind::kT9k);
    client::Informer& classes = informers_.get(resources::kPriorityClasses);
    track(classes, resources::kPriorityClasses);
    classes.add_handlers(
        {[this](const ObjectPtr&, const ObjectPtr&) { reapply_groups(); }, [this] { wake(); }});
    if (volumes_) {
      for (const client::Resource& kind : Volumes::kinds()) track(informers_.get(kind), kind);
    }
    complain_later();
    informers_.start_all();
  }

  Task<void> finish(Duration most) override {
    decide_no_more();
    (void)co_await quick_.wait_idle(most);
  }

  Task<void> stop() override {
    decide_no_more();
    hands_.stop();
    waits_.stop();
    quick_.stop();
    slow_.stop();
    groups_.stop();
    // In this order: what waited for its volumes may use the quick lane once more.
    (void)co_await hands_.wait_for_volumes();
    (void)co_await quick_.wait_idle(Duration::zero());
    (void)co_await slow_.wait_idle(Duration::zero());
    co_await events_->flush();
  }

  [[nodiscard]] const engine::Engine& engine() const override { return engine_; }
  [[nodiscard]] const Counters& counters() const override { return counters_; }
  [[nodiscard]] bool ready() const override { return started_; }
  [[nodiscard]] std::vector<std::string> unknown() const override {
    std::vector<std::string> names;
    for (const auto& [informer, kind] : followed_) {
      if (!informer->synced())
        names.push_back(kind.group.empty() ? kind.plural : kind.plural + "." + kind.group);
    }
    return names;
  }
  [[nodiscard]] std::vector<engine::QueueView> queues() const override {
    std::set<std::string> names{options_.engine.default_queue};
    for (const auto& [name, queue] : informers_.get(resources::kQueues).objects())
      names.insert(name);
    for (const auto& [key, queue] : informers_.get(resources::kT9kQueues).objects())
      names.insert(translate_t9k_queue(*queue, translate_).name);
    std::vector<engine::QueueView> all = engine_.queues();
    std::erase_if(all, [&](const engine::QueueView& view) { return !names.contains(view.name); });
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }
  Result<void> reconfigure_cells(const engine::cells::Config& config) override {
    if (!cells_) {
      auto fresh = CellQueue::create(config, options_.engine.device_resource);
      if (!fresh) return fail(fresh.error());
      cells_ = std::move(*fresh);
      for (const auto& [name, node] : informers_.get(resources::kNodes).objects()) {
        const engine::Node translated = translate_node(*node, translate_);
        cells_->node_seen(translated.name, translated.ready && !translated.unschedulable);
      }
      for (const auto& [name, queue] : informers_.get(resources::kQueues).objects())
        cells_->queue_seen(translate_queue(*queue, translate_));
      for (const auto& [name, queue] : informers_.get(resources::kT9kQueues).objects())
        cells_->queue_seen(translate_t9k_queue(*queue, translate_));
      for (const auto& [key, pod] : pods_.objects()) pod_seen(*pod);
    } else {
      auto changed = cells_->reconfigure(config, env_.now());
      if (!changed) return changed;
      reapply_waiting();  // queues may belong to other virtual clusters now
    }
    wake();
    return {};
  }
  Result<void> reconfigure(const engine::Config& policy, engine::BackfillMode backfill) override {
    if (policy.policy != options_.engine.policy) {
      return fail(
          Code::kInvalid,
          "a change between Volcano's actions and plugins and Muster's own policy takes effect at the next start");
    }
    engine::Config next = policy;
    next.scheduler_name = options_.engine.scheduler_name;
    next.default_queue = options_.engine.default_queue;
    next.device_resource = options_.engine.device_resource;
    options_.engine = std::move(next);
    engine_.apply(engine::ConfigChange{options_.engine});
    if (translate_.backfill != backfill) {
      translate_.backfill = backfill;
      apply_queues();
    }
    wake();
    return {};
  }
  [[nodiscard]] bool idle() const override {
    return started_ && !gather_ && quick_.idle() && hands_.awaiting_volumes().inside() == 0 &&
           slow_.idle() && waits_.idle() && groups_.idle();
  }

 private:
  // ---------------------------------------------------------------------------------- what is seen

  void decide_no_more() {
    stopped_ = true;
    gather_.reset();
    wake_timer_.reset();
    cell_timer_.reset();
    complaint_timer_.reset();
  }

  /// Its kind is to be known before the first decision.
  void track(client::Informer& informer, const client::Resource& kind) {
    followed_.emplace_back(&informer, kind);
  }

  /// A kind that we may not see keeps everything waiting; whoever looks for the reason finds it at
  /// the end of the log.
  void complain_later() {
    complaint_timer_ = env_.after(kComplaint, [this] {
      if (started_) return;
      log::warn("scheduler",
                "nothing is decided before these kinds are known: {}",
                join(unknown(), ", "));
      complain_later();
    });
  }

  template <typename Upsert, typename Remove>
  void watch(const client::Resource& resource, Upsert upsert, Remove remove) {
    client::Informer& informer = informers_.get(resource);
    track(informer, resource);
    informer.add_handlers(
        {[this, upsert, remove](const ObjectPtr& old_object, const ObjectPtr& new_object) {
           apply(new_object ? upsert(*new_object) : remove(*old_object));
         },
         [this] { wake(); }});
  }

  /// HyperNodes become labels of the nodes below them.
  void watch_hypernodes() {
    client::Informer& hypernodes = informers_.get(resources::kHyperNodes);
    track(hypernodes, resources::kHyperNodes);
    hypernodes.add_handlers(
        {[this](const ObjectPtr&, const ObjectPtr&) { hypernodes_changed(); }, [this] { wake(); }});
  }

  void rebuild_hypernodes() {
    std::vector<ObjectPtr> all;
    for (const auto& [name, object] : informers_.get(resources::kHyperNodes).objects())
      all.push_back(object);
    node_labels_.clear();
    for (const auto& [name, node] : informers_.get(resources::kNodes).objects())
      node_labels_[name] = translate_node(*node, translate_).labels;
    hypernodes_.rebuild(all, node_labels_);
  }

  void hypernodes_changed() {
    rebuild_hypernodes();
    for (const auto& [name, node] : informers_.get(resources::kNodes).objects()) {
      engine::Node translated = translate_node(*node, translate_);
      in_hypernodes(translated);
      apply(engine::NodeUpsert{std::move(translated)});
    }
    reapply_groups();
  }

  /// A node that is new or has new labels is looked up anew: members may be named by pattern or
  /// label.
  void in_hypernodes(engine::Node& node) {
    if (hypernodes_.empty()) return;
    const auto known = node_labels_.find(node.name);
    if (known == node_labels_.end() || known->second != node.labels) rebuild_hypernodes();
    const engine::Labels& more = hypernodes_.labels_of(node.name);
    node.labels.insert(node.labels.end(), more.begin(), more.end());
  }

  void watch_queues() {
    engine_.apply(engine::QueueUpsert{fallback_queue()});
    client::Informer& queues = informers_.get(resources::kQueues);
    track(queues, resources::kQueues);
    queues.add_handlers({[this](const ObjectPtr& old_object, const ObjectPtr& new_object) {
                           if (new_object && is_idle_root(*new_object)) return;
                           if (new_object) {
                             apply_queue(translate_queue(*new_object, translate_));
                             groups_.queue_changed(std::string(kube::name_of(*new_object)));
                           } else if (kube::name_of(*old_object) == options_.engine.default_queue) {
                             apply(engine::QueueUpsert{fallback_queue()});
                           } else {
                             remove_queue(std::string(kube::name_of(*old_object)));
                           }
                         },
                         [this] { wake(); }});
    client::Informer& t9k = informers_.get(resources::kT9kQueues);
    track(t9k, resources::kT9kQueues);
    t9k.add_handlers({[this](const ObjectPtr& old_object, const ObjectPtr& new_object) {
                        if (new_object)
                          apply_queue(translate_t9k_queue(*new_object, translate_));
                        else
                          remove_queue(translate_t9k_queue(*old_object, translate_).name);
                      },
                      [this] { wake(); }});
  }

  /// The default queue is always there, whether or not the cluster knows the kind.
  [[nodiscard]] engine::Queue fallback_queue() const {
    engine::Queue queue;
    queue.name = options_.engine.default_queue;
    queue.backfill = translate_.backfill;
    return queue;
  }

  /// Muster's own rules need no root; Volcano's tree hangs from it.
  [[nodiscard]] bool is_idle_root(const json::Value& queue) const {
    return kube::name_of(queue) == "root" && options_.engine.policy != engine::PolicyKind::kVolcano;
  }

  void apply_queues() {
    apply(engine::QueueUpsert{fallback_queue()});
    for (const auto& [name, queue] : informers_.get(resources::kQueues).objects()) {
      if (!is_idle_root(*queue)) apply_queue(translate_queue(*queue, translate_));
    }
    for (const auto& [key, queue] : informers_.get(resources::kT9kQueues).objects())
      apply_queue(translate_t9k_queue(*queue, translate_));
  }

  void apply_queue(const engine::Queue& queue) {
    // Before the start all pods are seen again anyway.
    if (cells_ && cells_->queue_seen(queue) && started_) reapply_waiting();
    apply(engine::QueueUpsert{queue});
  }

  void remove_queue(const std::string& name) {
    if (cells_) {
      cells_->queue_gone(name);
      if (started_) reapply_waiting();
    }
    apply(engine::QueueRemove{name});
  }

  void watch_groups(const client::Resource& resource, GroupKind kind) {
    client::Informer& informer = informers_.get(resource);
    track(informer, resource);
    informer.add_handlers(
        {[this, kind, resource](const ObjectPtr& old_object, const ObjectPtr& new_object) {
           const json::Value& object = new_object ? *new_object : *old_object;
           const std::string key =
               group_key(kind, kube::namespace_of(object), kube::name_of(object));
           if (new_object) {
             groups_.group_seen(key, kind, resource, new_object);
             apply_group(key);
             if (cells_ && (!old_object || !json::equal(json::at(*old_object, "spec"),
                                                        json::at(*new_object, "spec"))))
               reapply_members(key);
           } else {
             groups_.group_gone(key);
             apply(engine::GroupRemove{key});
           }
           // Those that hang from it look again, once it has come or gone.
           if (kind == GroupKind::kComposite && !(old_object && new_object)) {
             for (const std::string& each : groups_.keys()) apply_group(each);
           }
         },
         [this] { wake(); }});
  }

  void watch_pods() {
    track(pods_, resources::kPods);
    pods_.add_handlers({[this](const ObjectPtr& old_object, const ObjectPtr& new_object) {
                          if (!new_object)
                            pod_gone(*old_object);
                          else if (old_object && own_binding_seen(*old_object, *new_object))
                            return;
                          else if (!old_object || !same_for_engine(*old_object, *new_object))
                            pod_seen(*new_object);
                        },
                        [this] { wake(); }});
  }

  /// Most changes of a busy hour are our own bindings coming back: the engine knows all that they
  /// say. In a cluster of cells the annotations of a binding tell more than the node.
  bool own_binding_seen(const json::Value& before, const json::Value& after) {
    if (cells_) return false;
    const std::string key = client::key_of(after);
    if (!hands_.came_back(key, before, after)) return false;
    waits_.placed(key);
    groups_.pod_bound(key);
    engine_.apply(engine::BindResult{key, true});
    return true;
  }

  void pod_seen(const json::Value& pod) {
    const std::string key = client::key_of(pod);
    if (!json::string_at(pod, "spec", "nodeName").empty()) {
      hands_.seen_bound(key);
      waits_.placed(key);
    }
    engine::Pod translated = translate_pod(pod, translate_);
    const bool raised = groups_.pod_seen(translated, pod);
    complete(translated, pod);
    // Cells are told of pods only when nodes, queues and gangs are known, and of everybody who
    // holds some.
    if (cells_ && started_ && (translated.ours || !translated.node.empty()))
      by_cells(translated, pod);
    const bool ended = translated.finished;
    apply(engine::PodUpsert{std::move(translated)});
    if (ended) groups_.allocations_changed(engine_);
    if (raised) apply_group(group_key_of_pod(pod));
  }

  /// In a cluster of cells GPUs are handed out by virtual cluster alone; the engine places what
  /// needs none.
  void by_cells(engine::Pod& pod, const json::Value& object) {
    if (pod.finished) {
      cells_->pod_gone(pod.key);
      return;
    }
    CellRequest request = cell_request(pod, object);
    if (request.scheduling_spec.empty() && pod.device_share_milli > 0 && pod.node.empty()) {
      pod.gated = true;
      waits_.tell_otherwise(
          object,
          "this cluster hands out GPUs as cells, whole ones only: ask for GPUs instead of a share of one");
      return;
    }
    if (request.scheduling_spec.empty() && request.leaves == 0) {
      // It may be the one that its gang waits for.
      if (!pod.group.empty() && pod.node.empty()) cells_->touch();
      return;
    }
    if (request.scheduling_spec.empty() && request.virtual_cluster.empty() && pod.node.empty()) {
      pod.gated = true;
      cells_->pod_gone(pod.key);
      if (!pod.group.empty() && !groups_.translate(pod.group, translate_)) {
        waits_.tell_otherwise(object, "it waits for its group: no such PodGroup yet");
        return;
      }
      waits_.tell_otherwise(
          object,
          fmt::format(
              "this cluster hands out {} by virtual cluster ({}) and queue {} belongs to none: use a queue of that name or with "
              "the annotation muster.dev/virtual-cluster, or HiveD's annotation {} on the pod",
              options_.engine.device_resource,
              cells_->virtual_clusters(),
              request.queue,
              hived::kSchedulingSpec));
      return;
    }
    if (pod.node.empty()) {
      if (pod.gated) {  // by its owner, or held after a failed binding
        cells_->pod_gone(pod.key);
        return;
      }
      pod.gated = true;
      waits_.told_by_others(pod.key);
    }
    cells_->pod_seen(request, env_.now());
  }

  CellRequest cell_request(const engine::Pod& pod, const json::Value& object) const {
    CellRequest out;
    out.ns = pod.ns;
    out.name = std::string(kube::name_of(object));
    out.uid = pod.uid;
    out.node = pod.node;
    out.scheduling_spec = std::string(kube::annotation(object, hived::kSchedulingSpec));
    out.bind_info = std::string(kube::annotation(object, hived::kBindInfo));
    out.device_indexes = pod.device_indexes;
    const auto group = pod.group.empty() ? std::nullopt : groups_.translate(pod.group, translate_);
    out.queue = group && !group->queue.empty() ? group->queue
                : pod.queue.empty()            ? options_.engine.default_queue
                                               : pod.queue;
    out.virtual_cluster = cells_->virtual_cluster_of(out.queue);
    out.gang = pod.group;
    for (const std::string& model : pod.device_models) {
      if (out.leaf_type.empty() || cells_->has_leaf_type(model)) out.leaf_type = model;
      if (cells_->has_leaf_type(model)) break;
    }
    for (const engine::Amount& amount : pod.requests) {
      if (amount.name == options_.engine.device_resource)
        out.leaves = static_cast<std::int32_t>(amount.value);
    }
    out.priority = std::max(pod.priority, group ? group->priority : pod.priority);
    out.created = group ? group->created : pod.created;
    out.started = pod.started;
    out.expected_duration = pod.expected_duration.count() > 0 || !group ? pod.expected_duration
                                                                        : group->expected_duration;
    out.terminating = pod.terminating;
    return out;
  }

  /// Why the gang of a pod without HiveD's annotation cannot start yet.
  std::optional<std::string> gang_gate(const std::string& gang) const {
    const auto group = groups_.translate(gang, translate_);
    if (!group)
      return fmt::format("its gang {} is not known yet: no such PodGroup", gang_name(gang));
    if (group->hold) return fmt::format("its gang {} is suspended", gang_name(gang));
    const std::size_t here = groups_.member_count(gang);
    if (here >= static_cast<std::size_t>(std::max(group->min_member, 0))) return std::nullopt;
    return fmt::format("its gang {} has {} of {} pods", gang_name(gang), here, group->min_member);
  }

  void pod_gone(const json::Value& pod) {
    const std::string key = client::key_of(pod);
    if (cells_) cells_->pod_gone(key);
    hands_.gone(key);
    waits_.gone(key);
    if (volumes_) volumes_->forget(key);
    groups_.pod_gone(key);
    apply(engine::PodRemove{key});
    groups_.allocations_changed(engine_);  // what it held is free: its queue says so
  }

  void complete(engine::Pod& pod, const json::Value& object) {
    hands_.complete(pod);
    waits_.told_by_engine(pod.key);
    if (pod.ours && pod.node.empty()) {
      std::string why = unsupported(object);
      if (why.empty() && volumes_) why = volumes_->constrain(pod, object);
      if (!why.empty()) {
        pod.gated = true;
        waits_.tell_otherwise(object, why);
      } else if (const std::string* failure = hands_.held_because(pod.key)) {
        // The engine sees a gate, which is not what keeps it.
        if (failure->empty())
          waits_.told_by_others(pod.key);
        else
          waits_.tell_otherwise(object, *failure);
      }
    }
  }

  void reapply_pod(const std::string& key) {
    if (const ObjectPtr pod = pods_.find(key)) pod_seen(*pod);
  }

  void apply_group(const std::string& key) {
    if (const auto group = groups_.translate(key, translate_)) apply(engine::GroupUpsert{*group});
  }

  /// Where a waiting pod without HiveD's annotation belongs is said by its gang's queue.
  void reapply_members(const std::string& group) {
    for (const std::string& pod : groups_.unbound_members(group)) reapply_pod(pod);
    cells_->touch();
  }

  void reapply_groups() {
    for (const std::string& key : groups_.keys()) apply_group(key);
    reapply_waiting();
  }

  void reapply_waiting() {
    for (const auto& [key, pod] : pods_.objects()) {
      if (json::string_at(*pod, "spec", "nodeName").empty()) pod_seen(*pod);
    }
  }

  std::pair<std::int32_t, bool> priority_of(std::string_view name) {
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

  // -------------------------------------------------------------------------------------- deciding

  void apply(const engine::Event& event) {
    engine_.apply(event);
    wake();
  }

  void wake() {
    if (stopped_ || gather_) return;
    gather_ = env_.after(kGather, [this] {
      gather_.reset();
      if (!started_) {
        if (!std::all_of(followed_.begin(), followed_.end(), [](const auto& followed) {
              return followed.first->synced();
            }))
          return;
        started_ = true;
        if (cells_) {
          for (const auto& [key, pod] : pods_.objects()) pod_seen(*pod);
        }
        log::info(
            "scheduler", "started pods={} nodes={}", pods_.objects().size(), engine_.stats().nodes);
        groups_.ensure_default_queues(options_.engine.default_queue);
      }
      decide();
    });
  }

  void decide() {
    const Duration begun = env_.monotonic();
    const engine::Plan plan = engine_.decide(env_.now());
    counters_.decide.add(env_.monotonic() - begun);
    for (const engine::Evict& evict : plan.evicts) hands_.evict(evict);
    for (const engine::Bind& bind : plan.binds) this->bind(bind);
    for (const engine::PhaseChange& change : plan.phases) groups_.phase_changed(change);
    for (const engine::Nominate& nominate : plan.nominations) hands_.nominate(nominate);
    for (const engine::Wait& wait : plan.waits) waits_.note(wait);
    if (!plan.binds.empty() || !plan.evicts.empty()) groups_.allocations_changed(engine_);
    if (cells_) decide_cells();
    wake_timer_.reset();
    if (plan.wake) {
      const Duration delay = std::max<Duration>(*plan.wake - env_.now(), kGather);
      wake_timer_ = env_.after(delay, [this] { wake(); });
    }
  }

  void decide_cells() {
    const CellPlan plan =
        cells_->decide(env_.now(), [this](const std::string& gang) { return gang_gate(gang); });
    if (plan.wake) {
      cell_timer_ = env_.after(std::max<Duration>(*plan.wake - env_.now(), kGather), [this] {
        cells_->touch();
        wake();
      });
    }
    for (const CellEvict& evict : plan.evicts) {
      engine::Evict out;
      out.pod = evict.pod;
      out.uid = evict.uid;
      out.node = evict.node;
      out.for_whom = out.for_whom_pod = evict.for_whom;
      hands_.evict(out);
    }
    for (const CellBind& bind : plan.binds) {
      engine::Bind out;
      out.pod = bind.pod;
      out.uid = bind.uid;
      out.node = bind.node;
      json::Object annotations;
      annotations[hived::kBindInfo] = bind.bind_info;
      annotations[hived::kLeafCellIsolation] = bind.isolation;
      annotations[kube::names::kGpuIndices] = bind.isolation;
      if (!bind.scheduling_spec.empty()) annotations[hived::kSchedulingSpec] = bind.scheduling_spec;
      this->bind(out, std::move(annotations));
      reapply_pod(bind.pod);
    }
    for (const CellWait& wait : plan.waits) {
      engine::Refusal refusal;
      refusal.reason = engine::Reason::kTopology;
      waits_.tell(wait.pod, refusal, wait.reason);
    }
  }

  void bind(const engine::Bind& bind, json::Object annotations = {}) {
    waits_.placed(bind.pod);
    hands_.bind(bind, std::move(annotations));
  }

  // ------------------------------------------------------------------------------- what comes back

  Hands::Answers answers() {
    Hands::Answers out;
    out.bound = [this](const std::string& pod) { groups_.pod_bound(pod); };
    out.bind_failed = [this](const std::string& pod) {
      engine_.apply(engine::BindResult{pod, false});
      if (cells_) cells_->bind_failed(pod);
      reapply_pod(pod);
      wake();
    };
    out.evict_failed = [this](const std::string& pod) {
      engine_.apply(engine::EvictResult{pod, false});
      reapply_pod(pod);
      wake();
    };
    out.may_evict_again = [this](const std::string& pod) {
      if (cells_) cells_->evict_failed(pod);
      reapply_pod(pod);
      wake();
    };
    out.may_try_again = [this](const std::string& pod) { reapply_pod(pod); };
    return out;
  }

  std::unique_ptr<Volumes> volumes() {
    if (!options_.volumes) return nullptr;
    return std::make_unique<Volumes>(
        env_, client_, informers_, [this](const std::set<std::string>& pods) {
          for (const std::string& key : pods) reapply_pod(key);
          wake();
        });
  }

  Env& env_;
  client::Client& client_;
  client::Informers& informers_;
  Options options_;
  TranslateOptions translate_;
  engine::Engine engine_;
  Lane quick_;
  Lane slow_;
  std::unique_ptr<client::EventRecorder> events_;
  client::Informer& pods_;
  Context context_;
  Groups groups_;
  HyperNodes hypernodes_;
  std::map<std::string, engine::Labels> node_labels_;  // as the HyperNodes were last resolved
  std::unique_ptr<Volumes> volumes_;                   // null: they are not looked at
  Counters counters_;
  Hands hands_;
  Waits waits_;
  std::unique_ptr<CellQueue> cells_;  // null: no HiveD configuration
  std::vector<std::pair<client::Informer*, client::Resource>> followed_;

  std::unique_ptr<Timer> gather_, wake_timer_, cell_timer_, complaint_timer_;
  bool started_ = false, stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Scheduler>> make_scheduler(Env& env,
                                                  client::Client& client,
                                                  client::Informers& informers,
                                                  Options options) {
  std::unique_ptr<CellQueue> cells;
  if (options.cells) {
    auto made = CellQueue::create(*options.cells, options.engine.device_resource);
    if (!made) return fail(made.error());
    cells = std::move(*made);
  }
  return std::unique_ptr<Scheduler>(std::make_unique<SchedulerImpl>(
      env, client, informers, std::move(options), std::move(cells)));
}

}  // namespace muster::scheduler
