/// Follows objects and makes records of them: a job begins when it is told that it waits or when a
/// task of it is bound, and its record closes when the job has ended and holds nothing any more.
///
/// On the loop; no clock, no writes: who owns it is told which records are due to be written. What a
/// change costs is a few look-ups unless it begins or ends something.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "answers/jobs/facts.h"
#include "answers/records/record.h"
#include "kube/shared.h"

namespace muster::answers {

/// A job of which something is kept, or will be.
struct Tracked {
  std::string key;  // "ns/kind/name"
  std::string uid;  // empty: its object has not been seen
  JobKind kind = JobKind::kPod;
  kube::ObjectPtr object;  // null: pods alone tell, or it is gone
  Record record;
  bool noted = false;      // there is something to keep
  bool stored = false;     // the API server has a JobRecord of it
  bool deleted = false;    // its object is gone
  bool described = false;  // the record says what the objects do
  /// How the object says that it ended; absent: it has not.
  std::optional<JobState> final_state;
  Time final_at;
  struct Held {
    kube::ObjectPtr pod;
    Time since;
    std::int64_t milli = 0;
  };
  std::map<std::string, Held> held;  // tasks that hold a node, by "ns/name"
  std::int64_t milli = 0;            // GPUs that they hold now, in thousandths
  // How the tasks of the run that goes on have ended.
  int failed = 0, succeeded = 0, evicted = 0, lost = 0, gone = 0;
  std::string preemptor;
};

class Tracker {
 public:
  struct Asks {
    /// The record changed in a way that must not be lost.
    std::function<void(Tracked&)> due;
    /// A run of it has begun.
    std::function<void(const Tracked&)> began;
    /// The model of a node's GPUs; empty: none is known.
    std::function<std::string(const std::string& node)> model_of;
    /// Whether a job that ended is in the history already.
    std::function<bool(const std::string& uid)> is_kept;
  };
  explicit Tracker(Asks asks) : asks_(std::move(asks)) {}

  void job_changed(JobKind kind,
                   const kube::ObjectPtr& before,
                   const kube::ObjectPtr& after,
                   Time now);
  void group_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after, Time now);
  void pod_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after, Time now);

  /// Why it waits, as it is told to people. `pod` may be null: then the group "ns/name" says whose.
  void waits(const kube::ObjectPtr& pod, const std::string& group, Waited wait);
  /// The pod must leave, for whom.
  void evicting(const std::string& pod_key, const std::string& for_whom);
  /// A start was foretold. False when the job is not known.
  bool said(const std::string& key, Foretold said);

  /// A record that was stored before this process began; before any object is seen.
  void restore(Record record);
  /// Everything that there is has been seen: what is restored and was not seen again has gone.
  void settled(Time now);

  /// The record as it is at this moment, with what tasks hold still as open parts.
  [[nodiscard]] Record now_of(Tracked& job);
  /// Every job with something to keep that has not been forgotten.
  void each(const std::function<void(Tracked&)>& call);
  [[nodiscard]] Tracked* find_uid(const std::string& uid);
  /// By "ns/kind/name".
  [[nodiscard]] const Tracked* find(const std::string& key) const;
  /// By "ns/name" of a pod that is held, or of a PodGroup.
  [[nodiscard]] const Tracked* of_pod(const std::string& pod_key) const;
  [[nodiscard]] const Tracked* of_group(const std::string& group_key) const;
  /// The job of this key and uid, to be changed; null: it is gone.
  [[nodiscard]] Tracked* find_live(const std::string& key, const std::string& uid);
  /// "ns/kind/name" of the job that a pod belongs to; empty: none.
  [[nodiscard]] std::string key_of_pod(const json::Value& pod) const;
  /// The same for a PodGroup "ns/name".
  [[nodiscard]] std::string key_of_group(const std::string& group) const;
  [[nodiscard]] std::size_t size() const { return jobs_.size(); }

 private:
  Tracked& job_at(const std::string& key, const std::string& uid);
  Tracked& job_of(const json::Value& pod);
  void describe(Tracked& job);
  void bind(Tracked& job, const kube::ObjectPtr& pod, Time now);
  void release(const std::string& pod_key, const json::Value& last, bool vanished, Time now);
  void count_end(Tracked& job, const json::Value& pod, bool vanished);
  void close_run(Tracked& job, Time end);
  void look_for_end(Tracked& job, Time now);
  void close(Tracked& job, std::string state, Time end);
  void stop_waiting(Tracked& job, Time at);
  void forget_if_nothing(Tracked& job);
  void name(Tracked& job, const std::string& uid);
  /// Before it is destroyed.
  void unname(const Tracked& job);
  /// A pod that was bound before this process looked: whether its time is counted already.
  [[nodiscard]] static bool counted(const Tracked& job, Time since, Time end);

  Asks asks_;
  std::unordered_map<std::string, std::unique_ptr<Tracked>> jobs_;  // by key, newest of the name
  /// Older jobs of a name that still hold something, by uid.
  std::unordered_map<std::string, std::unique_ptr<Tracked>> leaving_;
  std::unordered_map<std::string_view, Tracked*> by_uid_;    // of both; each name is its job's own
  std::unordered_map<std::string, Tracked*> holders_;        // by "ns/name" of the pod
  std::unordered_map<std::string, std::string> groups_;      // "ns/name" of a PodGroup -> key
  std::unordered_map<std::string, std::string> parents_;     // key of a Job -> key of its MPIJob
  std::unordered_map<std::string, std::string> preemptors_;  // pod -> for whom
  std::unordered_map<std::string, Record> restored_;         // by uid, until its object is seen
};

}  // namespace muster::answers
