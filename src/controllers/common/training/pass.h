/// One reconcile of one training job: what is known, what is being decided, and the names that its
/// pods and services go by.
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

const json::Value& run_policy(const json::Value& job);
bool is_suspended(const json::Value& job);
/// What the pod and the service of a replica are called, and the labels that say which one it is.
std::string child_name(const Pass& pass, const std::string& type, int index);
json::Object base_labels(const Pass& pass, const std::string& type, int index);
/// The replica type that the pod says it is of; null when the job has none of that name.
const ReplicaSpec* replica_of(const Pass& pass, const json::Value& pod);
void count(Counts& counts, const json::Value& pod);
/// Writes replicaStatuses from pass.counts.
void write_counts(Pass& pass, bool selector);

}  // namespace muster::controllers
