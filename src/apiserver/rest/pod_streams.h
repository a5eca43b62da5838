/// The four pod subresources that only the node agent can answer: log, exec, attach and
/// port-forward.
#pragma once

#include <string>

#include "json/json.h"
#include "net/http/http.h"

namespace muster::apiserver {

enum class PodStream { kLog, kExec, kAttach, kPortForward };

/// Filled by whoever runs the pods. The server has already checked permission, the pod, its
/// container and the options.
class PodStreams {
 public:
  virtual ~PodStreams() = default;
  /// Answers the request itself: a text stream, or an upgrade to WebSocket or SPDY.
  virtual Task<void> serve(PodStream kind,
                           json::Value pod,
                           net::Target target,
                           net::Request request,
                           net::ResponseWriter& writer) = 0;
};

}  // namespace muster::apiserver
