/// The engine that the training-operator's kinds share: pods and services by index, gang, limits,
/// suspend, clean-up and the order of it all. A kind adds its names (Traits), its environment
/// (wire) and its rule of when the job runs, succeeds or fails (update_status).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "controllers/common/conditions.h"
#include "controllers/common/objects.h"
#include "controllers/common/plan.h"
#include "controllers/common/podgroup.h"
#include "kube/names.h"

namespace muster::controllers {

struct Traits {
  std::string kind;         // "PyTorchJob"
  std::string controller;   // "pytorchjob-controller"
  std::string specs_field;  // "pytorchReplicaSpecs"
  std::string container;    // the container that counts
  std::string port_name;    // "" : no port is added
  int port = 0;
  std::string default_restart;
  std::vector<std::string> types;  // in the order in which they are created and reported
  bool fold_keys = true;           // "master" is read as "Master"
  bool services = true;
  bool selector_in_status = false;
  bool ttl_reports_pod = false;  // TTL deletion is reported with the pod's reasons
  bool heeds_managed_by = true;  // leaves jobs of another manager alone
};

/// Counters of one replica type.
struct Counts {
  int active = 0, succeeded = 0, failed = 0;
};

/// One reconcile of one job: what is known and what is being decided.
struct Pass {
  const Traits& traits;
  const json::Value& job;  // with defaults
  std::vector<ReplicaSpec> replicas;
  const View& view;
  const Settings& settings;
  Time now;
  Plan& plan;
  json::Value status;
  Conditions conditions;
  std::map<std::string, Counts> counts;
  Objects pods;

  Pass(const Traits& t, const json::Value& j, const View& v, const Settings& s, Time n, Plan& p);
  [[nodiscard]] std::string name() const { return name_of(job); }
  [[nodiscard]] std::string ns() const { return namespace_of(job); }
  [[nodiscard]] int total() const;
  [[nodiscard]] const ReplicaSpec* find(std::string_view type) const;
  [[nodiscard]] std::string reason(std::string_view word) const {
    return traits.kind + std::string(word);
  }
  void event(bool warning, std::string reason, std::string message) {
    plan.events.push_back({warning, std::move(reason), std::move(message)});
  }
  /// Succeeded or Failed with completionTime and a Normal event.
  void succeed(const std::string& message);
  void fail(const std::string& message);
  void complete();
  void run(const std::string& message) {
    conditions.set("Running", true, reason("Running"), message);
  }
  void restart(const std::string& message);
};

class TrainingKind {
 public:
  explicit TrainingKind(Traits traits) : traits_(std::move(traits)) {}
  virtual ~TrainingKind() = default;

  [[nodiscard]] const Traits& traits() const { return traits_; }
  /// The job with the defaults that the operator applies in memory.
  [[nodiscard]] json::Value with_defaults(const json::Value& job) const;
  [[nodiscard]] Plan plan(const json::Value& job,
                          const View& view,
                          const Settings& settings,
                          Time now) const;

 protected:
  /// What must be read before the common defaults are in.
  virtual void read_legacy(json::Value&) const {}
  [[nodiscard]] virtual int default_replicas(std::string_view /*type*/) const { return 1; }
  /// Further defaults of the kind's spec.
  virtual void add_defaults(json::Value&) const {}
  /// Not empty: why no plan can be made of this job.
  [[nodiscard]] virtual std::string check(const json::Value& job) const;
  [[nodiscard]] virtual bool is_master(const Pass& pass,
                                       const std::string& type,
                                       int index) const = 0;
  /// Adds environment and the like to a new pod.
  virtual void wire(const Pass& pass,
                    const ReplicaSpec& replica,
                    int index,
                    json::Value& pod) const = 0;
  /// Objects before the pods (HPA …). `suspended` and finished jobs come here too.
  virtual void before(Pass&, bool /*suspended*/) const {}
  virtual void reconcile_pods(Pass& pass) const;
  virtual void update_status(Pass& pass) const = 0;

  void create_pod(Pass& pass, const ReplicaSpec& replica, int index) const;
  /// Default: engine's name.
  Traits traits_;

 private:
  void finished(Pass& pass) const;
  void suspend(Pass& pass) const;
  bool exceeded(Pass& pass) const;
  bool requeue(Pass& pass) const;
  bool gang_waits(Pass& pass) const;
  void reconcile_services(Pass& pass, const ReplicaSpec& replica) const;
  void one_pod(Pass& pass,
               const ReplicaSpec& replica,
               int index,
               const json::Value& pod,
               std::vector<Event>& exits) const;
};

/// The kind's named port in the template's main container; the default when it has none.
int port_of(const Traits& traits, const ReplicaSpec& replica);
/// Appends to the env of every container of the pod (not of its init containers).
void add_env(json::Value& pod, const json::Array& added);

/// Gang decoration of a pod of a training-operator job; records the Warning when a template names
/// another scheduler.
void decorate_pod(Pass& pass, const ReplicaSpec& replica, json::Value& pod);
/// Deletes a pod (nothing if it is already going) with the operator's events.
void delete_pod(Plan& plan, const json::Value& pod);
/// Writes replicaStatuses from pass.counts.
void write_counts(Pass& pass, bool selector);
/// Events for pods that cannot start or whose containers fail.
void report_abnormal_pods(Pass& pass);
/// Adds what a job that wants to be requeued needs on its pods.
void keep_submission_time(const json::Value& job, json::Value& object);
/// Was this pod taken away by somebody else than its controller?
bool was_preempted(const json::Value& pod);
bool wants_requeue(const json::Value& job);
/// Brings a stuck terminating pod to an end and says when to look again.
void force_delete_stuck(Plan& plan, const Objects& pods, const Settings& settings, Time now);
void wake_after(Plan& plan, Duration delay);

}  // namespace muster::controllers
