/// port-forward: per connection a data and an error stream, over SPDY or SPDY inside WebSocket
/// messages.
#pragma once

#include <memory>

#include "agent/context.h"
#include "agent/streams/remote_command.h"
#include "net/http/http.h"

namespace muster::agent {

class PodWorker;

Task<void> serve_port_forward(Context& context,
                              std::shared_ptr<PodWorker> worker,
                              net::Target target,
                              net::Request request,
                              UpgradeKind upgrade,
                              net::ResponseWriter& writer);

}  // namespace muster::agent
