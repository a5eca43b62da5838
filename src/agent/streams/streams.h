/// `kubectl logs`, `exec`, `attach` and `port-forward` of this agent's pods.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "agent/context.h"
#include "net/http/http.h"

namespace muster::agent {

class PodWorker;

class PodStreamServer {
 public:
  virtual ~PodStreamServer() = default;
  /// `subresource`: log, exec, attach or portforward. Answers the request itself: a text stream, or
  /// an upgrade to WebSocket or SPDY.
  virtual Task<void> serve(std::string subresource,
                           json::Value pod,
                           net::Target target,
                           net::Request request,
                           net::ResponseWriter& writer) = 0;
};

/// `find` gives the worker of a pod uid, or null.
std::unique_ptr<PodStreamServer> make_stream_server(
    Context& context, std::function<std::shared_ptr<PodWorker>(const std::string& uid)> find);

/// A Status object as an answer.
Task<void> send_error(net::ResponseWriter& writer, Error error);

}  // namespace muster::agent
