/// Every job of the cluster as a row, of whatever kind, and its tasks: from informers, in small
/// steps, so that a hundred thousand objects at once do not hold the loop.
///
/// Nothing is read before begin(), which the first visitor of the portal calls: a cluster that
/// nobody looks at pays nothing.
///
/// One piece: every kind of object changes the same rows, a step at a time.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "answers/jobs/facts.h"
#include "base/env.h"
#include "client/informer.h"
#include "portal/jobs/table.h"

namespace muster::portal {

class JobIndex {
 public:
  JobIndex(Env& env, client::Informers& informers);
  ~JobIndex();

  /// Starts to follow the cluster, once.
  void begin();
  /// Everything that was there at begin() is in the table.
  [[nodiscard]] bool ready() const { return ready_; }
  Task<void> wait_ready();
  void stop();

  [[nodiscard]] Table& table() { return table_; }
  [[nodiscard]] const Table& table() const { return table_; }
  /// Grows whenever a row, a task or who holds a device changes.
  [[nodiscard]] std::uint64_t version() const { return version_; }

  struct Entry {
    JobFacts facts;
    client::ObjectPtr object;                // null: pods alone tell
    client::ObjectPtr group;                 // its PodGroup, if there is one
    std::map<std::string, TaskFacts> tasks;  // by name of the pod
    /// The first of its pods that failed and was removed since: what it ended with is known no more.
    std::optional<TaskFacts> broken;
    Slot slot = 0;
    bool shown = false;  // has a row
    std::uint64_t version = 0;
  };
  /// Null when there is no such job.
  [[nodiscard]] const Entry* find(const std::string& id) const;
  [[nodiscard]] const Entry* at(Slot slot) const;
  /// The job of a pod "ns/name", or of another object that belongs to one; null: none.
  [[nodiscard]] const Entry* of_pod(const std::string& pod_key) const;
  /// By "ns/kind/name" of its object; null: none.
  [[nodiscard]] const Entry* of_key(const std::string& key) const;
  /// The job of a PodGroup "ns/name"; null: none.
  [[nodiscard]] const Entry* of_group(const std::string& group_key) const;
  [[nodiscard]] const Entry* of_uid(const std::string& uid) const;

  /// What runs on a node: "ns/name" of the pod, its facts and its job.
  struct OnNode {
    const Entry* entry = nullptr;
    const TaskFacts* task = nullptr;
  };
  [[nodiscard]] const std::map<std::string, OnNode>& on_node(const std::string& node) const;
  /// Changes with whatever runs there.
  [[nodiscard]] std::uint64_t node_version(const std::string& node) const;
  /// When each device of a node was last let go, by index; 0 or absent: not known.
  [[nodiscard]] const std::vector<Millis>& freed(const std::string& node) const;

  /// Something is wrong with a pod, as an event of the node says it. Of one that starts and does not
  /// come to run, this is all that is known.
  struct Warning {
    std::string uid, text;
    Millis at = 0;
  };
  void warn(Warning warning);

  /// Called on the loop, at most a few times a second, after changes.
  std::function<void()> on_change;

 private:
  struct Change {
    JobKind kind;  // kPod and kPodGroup: those objects
    client::ObjectPtr old_object, new_object;
  };
  void follow(const client::Resource& resource, JobKind kind);
  void follow_classes();
  /// What a job without pods has of its PriorityClass; it is remembered who has asked.
  std::int32_t class_number(const std::string& key, const Entry& job);
  void push(JobKind kind, const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  void pump();
  void apply(const Change& change);
  void apply_job(JobKind kind,
                 const client::ObjectPtr& old_object,
                 const client::ObjectPtr& new_object);
  void apply_group(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  void apply_pod(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object);
  void drop_task(const std::string& pod_key);
  /// The key of the job a pod belongs to; empty: it is not shown.
  [[nodiscard]] std::string owner_key(const json::Value& pod) const;
  Entry& entry(const std::string& key);
  [[nodiscard]] const Entry* by(const std::unordered_map<std::string, std::string>& keys,
                                const std::string& word) const;
  void hand_up(Entry& from, const std::string& key);
  void mark(const std::string& key);
  void settle(const std::string& key);
  [[nodiscard]] bool belongs_elsewhere(const Entry& entry) const;

  Env& env_;
  client::Informers& informers_;
  Table table_;
  bool begun_ = false, ready_ = false, stopped_ = false;
  std::vector<client::Informer*> awaited_;
  std::unique_ptr<Signal> became_ready_;
  std::deque<Change> changes_;
  std::unique_ptr<Timer> timer_;
  /// "ns/kind/name" of the object, or of the pod; ids of OpenPAI jobs differ from it.
  std::unordered_map<std::string, std::unique_ptr<Entry>> entries_;
  std::unordered_map<std::string, std::string> by_id_, by_uid_;  // -> key
  std::vector<Entry*> by_slot_;
  std::unordered_map<std::string, std::string> job_of_pod_;    // "ns/name" -> key
  std::unordered_map<std::string, std::string> job_of_group_;  // "ns/name" -> key
  struct Node {
    std::map<std::string, OnNode> pods;
    std::vector<Millis> freed;
    std::uint64_t version = 0;
    void let_go(const TaskFacts& task, Millis at);
  };
  void take_off(const std::string& node, const std::string& pod_key);
  std::unordered_map<std::string, Node> nodes_;
  /// By uid of the pod, newest; only while it has not run.
  std::unordered_map<std::string, Warning> warnings_;
  static constexpr std::size_t kWarningsMax = 10'000;
  void read_warning(TaskFacts& task) const;
  /// Jobs without pods that name a PriorityClass, by its name: their numbers are those of the class.
  std::unordered_map<std::string, std::unordered_set<std::string>> by_class_;
  std::unordered_set<std::string> dirty_;
  std::uint64_t version_ = 1, told_ = 0;
};

}  // namespace muster::portal
