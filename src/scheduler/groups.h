/// The gangs as objects: who belongs to which, their phases, counts and conditions, and the queues'
/// status.
///
/// A phase is written at once (job controllers wait for it before they make pods); counts follow a
/// little later, so that a burst of pod changes costs one write.
///
/// One piece: members, phases and counts of a gang are written as one status.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "scheduler/context.h"
#include "scheduler/reports.h"
#include "scheduler/translate.h"

namespace muster::scheduler {

class Groups {
 public:
  /// Looks at the engine, at once; false: not while it is being copied.
  using Look = std::function<void(const engine::Engine&)>;
  /// `names`: the schedulerNames that are ours; empty: all.
  Groups(const Context& context,
         std::set<std::string, std::less<>> names,
         std::function<bool(const Look&)> look)
      : env_(context.env),
        client_(context.client),
        informers_(context.informers),
        events_(context.events),
        lane_(context.slow),
        names_(std::move(names)),
        look_(std::move(look)) {}

  void group_seen(const std::string& key,
                  GroupKind kind,
                  const client::Resource& resource,
                  const client::ObjectPtr& object);
  void group_gone(const std::string& key);
  /// True when the gang must be told to the engine again: the pod raised its priority, or
  /// (dis)agrees with it.
  bool pod_seen(const engine::Pod& pod, const json::Value& object);
  void pod_gone(const std::string& pod);
  void pod_bound(const std::string& pod);
  [[nodiscard]] std::optional<engine::Group> translate(const std::string& key,
                                                       const TranslateOptions& options) const;
  [[nodiscard]] std::vector<std::string> keys() const;
  [[nodiscard]] std::vector<std::string> unbound_members(const std::string& key) const;
  /// How the members of one of Kubernetes' own groups differ from it or from each other; empty:
  /// they do not.
  [[nodiscard]] std::string disagreement(const std::string& key) const;
  /// What its owner reads: Kubernetes' own groups say how many of minCount could be placed.
  [[nodiscard]] std::string story(const std::string& key,
                                  const engine::Refusal& refusal,
                                  const std::string& message) const;
  [[nodiscard]] std::size_t member_count(const std::string& key) const;

  void phase_changed(const engine::PhaseChange& change);
  void waits(const std::string& key, const engine::Refusal& refusal, const std::string& message);
  void waits_no_more(const std::string& key);

  /// status.allocated of a Queue is ours to write; its state and counters are the queue
  /// controller's.
  void allocations_changed();
  /// Volcano's built-in queues, made when the cluster knows the kind.
  void ensure_default_queues(const std::string& default_queue);

  void stop();
  [[nodiscard]] bool idle() const { return dirty_.empty() && !queue_timer_ && !retry_timer_; }

 private:
  static constexpr Duration kRetryFirst = std::chrono::seconds(1);
  static constexpr Duration kRetryMost = std::chrono::seconds(30);

  Task<void> ensure_t9k_queue();
  struct Member {
    std::string group;
    std::string phase;
    std::int32_t priority = 0;
    bool bound = false;
    bool live = true;    // neither Succeeded nor Failed
    std::string policy;  // preemptionPolicy
    std::string scheduler;
  };
  struct Group {
    GroupKind kind = GroupKind::kVolcano;
    client::Resource resource;
    client::ObjectPtr object;  // null: only pods of it are known
    std::set<std::string> members;
    std::map<std::string, int> phases;  // of all members, with how many are in each
    // What live members say, with how many say it.
    std::map<std::int32_t, int> priorities;
    std::map<std::string, int> policies, schedulers;
    std::string phase;    // as the engine has it; empty: not said yet
    std::string message;  // why it waits; empty: it does not
    std::string reason;
    bool scheduled = false;  // once its minimum was bound
  };

  void mark(const std::string& key, Duration delay);
  /// A status that the server did not take is written again, with back-off: a controller may wait
  /// for it (a PodGroup that is admitted). `key` empty: of the queues.
  void note_written(const std::string& what, const std::string& key, const Result<void>& done);
  void write_failed_again();
  void flush();
  void write(const std::string& key);
  Task<void> write_volcano(std::string key);
  Task<void> write_native(std::string key);
  Task<void> write_t9k(std::string key);
  Task<void> write_queue(std::string name, engine::ResourceList allocated);
  [[nodiscard]] static GroupCounts count(const Group& group);
  /// The phase of a group is ours to say: a member names us or, before it has members, we stand in
  /// for Volcano's scheduler.
  [[nodiscard]] bool ours(const Group& group) const;
  [[nodiscard]] std::int32_t member_priority(const Group& group) const;
  [[nodiscard]] static std::string disagreement(const Group& group);
  void tally(const Member& member, int sign);

  Env& env_;
  client::Client& client_;
  client::Informers& informers_;
  client::EventRecorder& events_;
  Lane& lane_;
  std::set<std::string, std::less<>> names_;
  std::map<std::string, Group> groups_;
  std::map<std::string, Member> members_;  // pod key -> its gang
  std::set<std::string> dirty_;
  std::set<std::string> failed_;  // statuses to be written again; empty: of the queues
  Duration retry_delay_ = kRetryFirst;
  std::function<bool(const Look&)> look_;
  std::unique_ptr<Timer> flush_timer_, queue_timer_, retry_timer_;
};

}  // namespace muster::scheduler
