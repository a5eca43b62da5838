#include "scheduler/scheduler.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "client/events.h"
#include "kube/meta.h"
#include "scheduler/cell_notes.h"
#include "scheduler/followed.h"
#include "scheduler/groups.h"
#include "scheduler/hands.h"
#include "scheduler/lane.h"
#include "scheduler/lending.h"
#include "scheduler/surroundings.h"
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
constexpr const char* kStopped =
    "hivedscheduler is stopped; start it with 'paictl service start -n hivedscheduler'";

/// Most pod updates are status details of running pods; the engine need not hear of them.
bool same_for_engine(const json::Value& a, const json::Value& b) {
  const auto same = [&](auto... path) {
    return json::equal(json::at(a, path...), json::at(b, path...));
  };
  return same("metadata", "uid") && same("metadata", "labels") && same("metadata", "annotations") &&
         same("metadata", "deletionTimestamp") && same("status", "phase") &&
         same("status", "nominatedNodeName") && same("status", "startTime") && same("spec");
}

/// One piece: which step follows which, from what an object says to what is done with a plan.
/// Groups, bindings, evictions and the lending of the engine are parts with a state of their own.
class SchedulerImpl final : public Scheduler {
 public:
  SchedulerImpl(Env& env,
                client::Client& client,
                client::Informers& informers,
                Options options,
                engine::Engine engine)
      : env_(env),
        client_(client),
        informers_(informers),
        options_(std::move(options)),
        engine_(std::move(engine)),
        lending_(env, engine_),
        quick_(env, options_.in_flight_max),
        slow_(env, 16),
        events_(client::make_event_recorder(env, client, options_.name, "")),
        pods_(informers.get(resources::kPods)),
        context_{env_, client_, informers_, pods_, *events_, quick_, slow_},
        groups_(context_,
                options_.scheduler_names,
                [this](const Groups::Look& look) { return this->look(look); }),
        volumes_(volumes()),
        hands_(context_,
               {.scheduler = options_.name,
                .volumes = volumes_.get(),
                .counters = &counters_,
                .leads = options_.leads,
                .answers = answers()}),
        waits_(context_,
               {.groups = groups_,
                .hands = hands_,
                .report_after = options_.report_after,
                .on_wait = options_.on_wait}),
        followed_(env),
        surroundings_(informers,
                      followed_,
                      options_.engine,
                      translate_,
                      {.apply = [this](const engine::Event& event) { apply(event); },
                       .rules_changed = [this] { reapply_groups(); },
                       .synced = [this] { wake(); }}) {
    slow_.yield_to(quick_);
    events_->hold_while([this] { return !quick_.idle(); });
    translate_.device_resource = options_.engine.device_resource;
    translate_.scheduler_names = options_.scheduler_names;
    translate_.backfill = options_.backfill;
  }

  void start() override {
    watch_pods();
    surroundings_.start();
    watch_groups(resources::kPodGroups, GroupKind::kVolcano);
    watch_groups(resources::kNativePodGroups, GroupKind::kNative);
    watch_groups(resources::kNativeCompositePodGroups, GroupKind::kComposite);
    watch_groups(resources::kSchedulerPluginsPodGroups, GroupKind::kPlugins);
    watch_groups(resources::kT9kPodGroups, GroupKind::kT9k);
    if (volumes_) {
      for (const client::Resource& kind : Volumes::kinds())
        followed_.add(informers_.get(kind), kind);
    }
    followed_.complain_later();
    informers_.start_all();
  }

  Task<void> finish(Duration most) override {
    decide_no_more();
    (void)co_await quick_.wait_idle(most);
  }

  Task<void> stop() override {
    decide_no_more();
    co_await lending_.stop();
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
  [[nodiscard]] std::optional<engine::WaitView> why(std::string_view gang) const override {
    const Loan::Hold hold = lending_.try_hold();
    return hold ? engine_.why(gang) : engine_.told(gang);
  }
  Task<void> copy_engine(std::function<void(engine::Engine)> take) override {
    queues_ = queues();
    return lending_.copy(std::move(take),
                         {[this](const engine::Event& event) { tell(event); }, [this] { wake(); }});
  }
  [[nodiscard]] const Counters& counters() const override { return counters_; }
  [[nodiscard]] bool ready() const override { return started_; }
  [[nodiscard]] std::vector<std::string> unknown() const override { return followed_.unknown(); }
  [[nodiscard]] std::vector<engine::QueueView> queues() const override {
    const Loan::Hold hold = lending_.try_hold();
    if (!hold) return queues_;
    const std::set<std::string> names = surroundings_.queue_names();
    std::vector<engine::QueueView> all = engine_.queues();
    std::erase_if(all, [&](const engine::QueueView& view) { return !names.contains(view.name); });
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
    return all;
  }
  Result<void> reconfigure_cells(const engine::cells::Config& config) override {
    const Time now = env_.now();
    lending_.claim();
    auto done = engine_.configure_cells(config, now);
    if (!done) return done;
    if (options_.on_cells) options_.on_cells(config, now);
    const bool first = !options_.cells;
    options_.cells = config;
    // What pods say about cells was of no interest before.
    for (const auto& [key, pod] : pods_.objects()) {
      if (first) pod_seen(*pod);
    }
    wake();
    return {};
  }
  void stop_cells(bool stopped) override {
    if (std::exchange(options_.cells_stopped, stopped) == stopped) return;
    reapply_waiting();
    wake();
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
    tell(engine::ConfigChange{options_.engine});
    if (translate_.backfill != backfill) {
      translate_.backfill = backfill;
      surroundings_.apply_queues();
    }
    wake();
    return {};
  }
  void remember(const engine::PastRun& run) override { tell(run); }
  [[nodiscard]] std::vector<engine::Event> events_of(
      const std::vector<json::Value>& groups, const std::vector<json::Value>& pods) const override {
    std::vector<engine::Event> members;
    std::map<std::string, std::int32_t> priorities;
    CellNotes notes;
    for (const json::Value& object : pods) {
      engine::Pod pod = translate_pod(object, translate_);
      if (options_.cells) pod.cells = notes.of(object);
      pod.gated = pod.gated || !unsupported(object).empty() ||
                  (options_.cells_stopped && CellNotes::wants_cells(object));
      const auto [known, first] = priorities.try_emplace(pod.group, pod.priority);
      if (!first) known->second = std::max(known->second, pod.priority);
      members.emplace_back(engine::PodUpsert{std::move(pod)});
    }
    std::vector<engine::Event> out;
    for (const json::Value& object : groups) {
      const GroupKind kind = group_kind_of(object);
      engine::Group group = translate_group(kind, object, translate_);
      if (!says_priority(kind, object) && priorities.contains(group.key))
        group.priority = priorities.at(group.key);
      out.emplace_back(engine::GroupUpsert{std::move(group)});
    }
    for (engine::Event& member : members) out.push_back(std::move(member));
    return out;
  }
  [[nodiscard]] bool binding() const override { return !quick_.idle(); }
  [[nodiscard]] bool idle() const override {
    return started_ && !gather_ && quick_.idle() && !hands_.in_doubt() &&
           hands_.awaiting_volumes().inside() == 0 && slow_.idle() && waits_.idle() &&
           groups_.idle() && lending_.idle();
  }

 private:
  // ---------------------------------------------------------------------------------- what is seen

  void decide_no_more() {
    stopped_ = true;
    gather_.reset();
    wake_timer_.reset();
    followed_.stop();
  }

  void watch_groups(const client::Resource& resource, GroupKind kind) {
    client::Informer& informer = informers_.get(resource);
    followed_.add(informer, resource);
    informer.add_handlers(
        {[this, kind, resource](const ObjectPtr& old_object, const ObjectPtr& new_object) {
           const json::Value& object = new_object ? *new_object : *old_object;
           const std::string key =
               group_key(kind, kube::namespace_of(object), kube::name_of(object));
           if (new_object) {
             groups_.group_seen(key, kind, resource, new_object);
             apply_group(key);
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
    followed_.add(pods_, resources::kPods);
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
    if (options_.cells) return false;
    const std::string key = client::key_of(after);
    if (!hands_.came_back(key, before, after)) return false;
    waits_.placed(key);
    groups_.pod_bound(key);
    tell(engine::BindResult{key, true});
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
    if (options_.cells) translated.cells = cell_notes_.of(pod);
    const bool ended = translated.finished;
    apply(engine::PodUpsert{std::move(translated)});
    if (ended) groups_.allocations_changed();
    if (raised) apply_group(group_key_of_pod(pod));
  }

  void pod_gone(const json::Value& pod) {
    const std::string key = client::key_of(pod);
    cell_notes_.forget(key);
    hands_.gone(key);
    waits_.gone(key);
    if (volumes_) volumes_->forget(key);
    groups_.pod_gone(key);
    apply(engine::PodRemove{key});
    groups_.allocations_changed();  // what it held is free: its queue says so
  }

  void complete(engine::Pod& pod, const json::Value& object) {
    hands_.complete(pod);
    waits_.told_by_engine(pod.key);
    if (pod.ours && pod.node.empty()) {
      std::string why = unsupported(object);
      if (why.empty() && options_.cells_stopped && cell_notes_.wants_cells(object)) why = kStopped;
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

  void reapply_groups() {
    for (const std::string& key : groups_.keys()) apply_group(key);
    reapply_waiting();
  }

  void reapply_waiting() {
    for (const auto& [key, pod] : pods_.objects()) {
      if (json::string_at(*pod, "spec", "nodeName").empty()) pod_seen(*pod);
    }
  }

  // -------------------------------------------------------------------------------------- deciding

  void tell(const engine::Event& event) {
    const Loan::Hold hold = lending_.try_hold();
    if (!hold) {
      lending_.keep(event);
      return;
    }
    engine_.apply(event);
    if (options_.on_event) options_.on_event(event);
  }

  void apply(const engine::Event& event) {
    tell(event);
    wake();
  }

  void wake() {
    if (stopped_ || gather_) return;
    gather_ = env_.after(kGather, [this] {
      gather_.reset();
      if (!started_) {
        if (!followed_.all_known()) return;
        started_ = true;
        log::info("scheduler",
                  "started pods={} nodes={}",
                  pods_.objects().size(),
                  engine().stats().nodes);
        groups_.ensure_default_queues(options_.engine.default_queue);
      }
      decide();
    });
  }

  /// Absent while the engine is lent: wake() comes when it is back.
  std::optional<engine::Plan> decide_if_free() {
    const Loan::Hold hold = lending_.try_hold();
    if (!hold) return std::nullopt;
    const Time now = env_.now();
    engine::Plan plan = engine_.decide(now);
    if (options_.on_decision) options_.on_decision(now, plan);
    return plan;
  }

  bool look(const Groups::Look& look) {
    const Loan::Hold hold = lending_.try_hold();
    if (hold) look(engine_);
    return static_cast<bool>(hold);
  }

  void decide() {
    if (options_.leads && !options_.leads()) return;
    const Duration begun = env_.monotonic();
    const std::optional<engine::Plan> decided = decide_if_free();
    if (!decided) return;
    const engine::Plan& plan = *decided;
    counters_.decide.add(env_.monotonic() - begun);
    for (const engine::Evict& evict : plan.evicts) {
      if (options_.on_evict) options_.on_evict(evict);
      hands_.evict(evict);
    }
    for (const engine::Bind& bind : plan.binds) this->bind(bind);
    for (const engine::PhaseChange& change : plan.phases) groups_.phase_changed(change);
    for (const engine::Nominate& nominate : plan.nominations) hands_.nominate(nominate);
    for (const engine::Wait& wait : plan.waits) waits_.note(wait);
    if (!plan.binds.empty() || !plan.evicts.empty()) groups_.allocations_changed();
    wake_timer_.reset();
    if (plan.wake) {
      const Duration delay = std::max<Duration>(*plan.wake - env_.now(), kGather);
      wake_timer_ = env_.after(delay, [this] { wake(); });
    }
  }

  void bind(const engine::Bind& bind) {
    waits_.placed(bind.pod);
    hands_.bind(bind, bind.cells ? cell_annotations(*bind.cells) : json::Object());
  }

  // ------------------------------------------------------------------------------- what comes back

  Hands::Answers answers() {
    Hands::Answers out;
    out.bound = [this](const std::string& pod) { groups_.pod_bound(pod); };
    out.bind_failed = [this](const std::string& pod) {
      tell(engine::BindResult{pod, false});
      reapply_pod(pod);
      wake();
    };
    out.evict_failed = [this](const std::string& pod) {
      tell(engine::EvictResult{pod, false});
      reapply_pod(pod);
      wake();
    };
    out.may_evict_again = [this](const std::string& pod) {
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
  mutable Lending lending_;
  std::vector<engine::QueueView> queues_;  ///< When the engine was last copied.
  Lane quick_;
  Lane slow_;
  std::unique_ptr<client::EventRecorder> events_;
  client::Informer& pods_;
  Context context_;
  Groups groups_;
  CellNotes cell_notes_;
  std::unique_ptr<Volumes> volumes_;  // null: they are not looked at
  Counters counters_;
  Hands hands_;
  Waits waits_;
  Followed followed_;
  Surroundings surroundings_;

  std::unique_ptr<Timer> gather_, wake_timer_;
  bool started_ = false, stopped_ = false;
};

}  // namespace

Result<std::unique_ptr<Scheduler>> make_scheduler(Env& env,
                                                  client::Client& client,
                                                  client::Informers& informers,
                                                  Options options) {
  engine::Engine engine(options.engine);
  if (options.cells) {
    auto done = engine.configure_cells(*options.cells, env.now());
    if (!done) return fail(done.error());
  }
  return std::unique_ptr<Scheduler>(std::make_unique<SchedulerImpl>(
      env, client, informers, std::move(options), std::move(engine)));
}

}  // namespace muster::scheduler
