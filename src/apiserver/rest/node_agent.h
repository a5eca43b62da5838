/// What only the one who runs the pods can answer.
#pragma once

#include <functional>
#include <string>

#include "base/task.h"
#include "json/json.h"
#include "net/http/http.h"

namespace muster::apiserver {

struct NodeAgent {
  /// The subresources log, exec, attach and portforward of a pod. The server has checked
  /// permission, the pod, its container and the options; the agent answers the request itself: a
  /// text stream, or an upgrade to WebSocket or SPDY.
  std::function<Task<void>(std::string subresource,
                           json::Value pod,
                           net::Target target,
                           net::Request request,
                           net::ResponseWriter& writer)>
      stream;
  /// Of metrics.k8s.io: objects with metadata, timestamp, window and usage; the server adds kind and
  /// apiVersion.
  std::function<Task<json::Array>()> node_metrics;
  /// Likewise, with containers; `ns` empty: all namespaces.
  std::function<Task<json::Array>(std::string ns)> pod_metrics;
  /// It keeps pods apart as network policies say.
  bool filters_traffic = false;
};

}  // namespace muster::apiserver
