/// What nodes and pods use at the moment (metrics.k8s.io); only the node agent knows.
#pragma once

#include <string>

#include "base/task.h"
#include "json/json.h"

namespace muster::apiserver {

/// Filled by whoever runs the pods.
class MetricsSource {
 public:
  virtual ~MetricsSource() = default;
  /// Objects with metadata, timestamp, window and usage; the server adds kind and apiVersion.
  virtual Task<json::Array> node_metrics() = 0;
  /// Likewise, with containers; `ns` empty: all namespaces.
  virtual Task<json::Array> pod_metrics(std::string ns) = 0;
};

}  // namespace muster::apiserver
