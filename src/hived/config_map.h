/// The configuration of a cluster's cells lives in a ConfigMap: `muster up --hived-config` writes it,
/// and a change there reconfigures the running scheduler.
#pragma once

namespace muster::hived {

inline constexpr const char* kConfigMapNamespace = "kube-system";
inline constexpr const char* kConfigMapName = "muster-hived";
inline constexpr const char* kConfigMapKey = "hivedscheduler.yaml";
/// "true": no pod of a virtual cluster is placed or evicted until it is taken away (`paictl service
/// stop -n hivedscheduler`); pods that run go on.
inline constexpr const char* kConfigMapStopped = "stopped";

}  // namespace muster::hived
