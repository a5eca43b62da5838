/// What the training-operator's kinds share: pods and services by index, gang, limits, suspend,
/// clean-up and the order of it all. A kind adds its names (Traits), its environment (wire) and its
/// rule of when the job runs, succeeds or fails (update_status).
///
/// training.cc is the order; the folder training/ has one file for each idea in it.
#pragma once

#include "controllers/common/training/abnormal_pods.h"
#include "controllers/common/training/clean_up.h"
#include "controllers/common/training/pass.h"
#include "controllers/common/training/requeue.h"

namespace muster::controllers {

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
  Traits traits_;

 private:
  void finished(Pass& pass) const;
  void suspend(Pass& pass) const;
  bool exceeded(Pass& pass) const;
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

}  // namespace muster::controllers
