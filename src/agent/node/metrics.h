/// metrics.k8s.io/v1beta1 of this agent's nodes and pods (`kubectl top`).
#pragma once

#include <string>

#include "base/task.h"
#include "json/json.h"

namespace muster::agent {

class Metrics {
 public:
  virtual ~Metrics() = default;
  /// NodeMetrics objects (apiVersion, kind, metadata, timestamp, window, usage) of all nodes.
  virtual Task<json::Array> node_metrics() = 0;
  /// PodMetrics objects; `ns` empty: all namespaces.
  virtual Task<json::Array> pod_metrics(std::string ns) = 0;
};

}  // namespace muster::agent
