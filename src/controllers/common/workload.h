/// What the built-in workload controllers (Job, StatefulSet, ReplicaSet, Deployment) share.
#pragma once

#include <string>

#include "controllers/common/objects.h"
#include "controllers/common/plan.h"

namespace muster::controllers {

/// A pod of `owner`'s spec.template; the name comes from `name`, or from the server when it ends in
/// '-'.
json::Value pod_from_template(const json::Value& owner,
                              const json::Value& pod_template,
                              const std::string& name);
/// Creates it; the event names what the server called it.
Action create_workload_pod(json::Value pod);
/// Short and stable: the same template gives the same text.
std::string template_hash(const json::Value& pod_template);
/// status.conditions by type, transition time moving with the status only.
void set_workload_condition(json::Value& status,
                            std::string_view type,
                            bool value,
                            std::string_view reason,
                            std::string_view message,
                            Time now);
json::Value status_or_empty(const json::Value& object);
/// Ready for as long as `owner`'s minReadySeconds asks; the plan looks again when one that is ready
/// has been so for long enough.
bool is_available(const json::Value& pod, const json::Value& owner, Time now, Plan& plan);
/// In an event's message: the name that the server chose for the created object.
inline constexpr std::string_view kCreatedName = "%NAME%";

}  // namespace muster::controllers
