/// Rules that several kinds share.
#pragma once

#include "kube/kinds/causes.h"
#include "kube/meta.h"

namespace muster::kube {

void validate_labels(const json::Value& labels, const std::string& field, Causes& causes);
void validate_label_selector(const json::Value& selector, const std::string& field, Causes& causes);
/// "IfNotPresent" and friends: Required when empty, NotSupported when not listed.
void validate_enum(const json::Value& value,
                   std::string field,
                   const std::vector<std::string_view>& supported,
                   Causes& causes,
                   bool required = true);
void validate_range(const json::Value& value,
                    std::string field,
                    std::int64_t low,
                    std::int64_t high,
                    Causes& causes);
void validate_non_negative(const json::Value& value, std::string field, Causes& causes);
void immutable(const json::Value& updated,
               const json::Value& live,
               std::string field,
               Causes& causes);

void validate_pod_spec(const json::Value& spec, const std::string& field, Causes& causes);
/// What only a pod that comes new must keep to.
void validate_new_pod(const json::Value& spec, Causes& causes);
/// Users, groups, DNS, host names and further settings of a pod as a whole.
void validate_pod_settings(const json::Value& spec, const std::string& field, Causes& causes);
void validate_security_context(const json::Value& context,
                               const std::string& field,
                               bool container,
                               Causes& causes);
/// One of exec, httpGet, tcpSocket, grpc, sleep.
void validate_handler(const json::Value& handler,
                      const std::string& field,
                      bool probe,
                      Causes& causes);
void validate_int_or_percent(const json::Value& value, const std::string& field, Causes& causes);
void validate_pod_update(const json::Value& updated, const json::Value& live, Causes& causes);
/// Names, signs and whole numbers of a resource map ("requests", quota "hard", node "capacity").
void validate_resource_list(const json::Value& list,
                            const std::string& field,
                            bool container,
                            Causes& causes);
void validate_taints(const json::Value& taints, const std::string& field, Causes& causes);

void validate_quota(const json::Value& object, Causes& causes);
/// Of one volume of a pod at `field`.
void validate_volume_paths(const json::Value& volume, const std::string& field, Causes& causes);
/// Sizes and keys of data and binaryData together, as ConfigMap and Secret have them.
void validate_data(const json::Value& object,
                   const std::vector<std::string_view>& members,
                   bool base64,
                   Causes& causes);
void immutable_data(const json::Value& now,
                    const json::Value& before,
                    const std::vector<std::string_view>& members,
                    Causes& causes);

/// The pod of `spec.template`.
void validate_template(const json::Value& spec, const std::string& field, Causes& causes);
/// What tells the kinds apart that keep a number of pods.
struct Replicated {
  std::string_view kind;
  bool selector = true;  // a label selector that matches the template
  bool history = false;  // revisionHistoryLimit is checked
  void (*strategy)(const json::Value& spec, Causes& causes) = nullptr;
};
void validate_replicated(const json::Value& object,
                         const json::Value* live,
                         const Replicated& what,
                         Causes& causes);
/// A Job's spec, also inside a CronJob. `update`: the job exists.
void validate_job_spec(const json::Value& spec,
                       const std::string& field,
                       bool update,
                       Causes& causes);
/// Job.spec.scheduling, whose parts are those of a PodGroup.
void validate_job_scheduling_shape(const json::Value& scheduling, Causes& causes);
void validate_crd(const json::Value& object, Causes& causes);

}  // namespace muster::kube
