/// The log subresource: a log file, perhaps followed, as a text stream.
#pragma once

#include <memory>

#include "agent/pod/pod_worker.h"
#include "net/http/http.h"

namespace muster::agent {

/// `worker` may be null: the pod is only remembered by its files below the agent's directory.
Task<void> serve_log(Context& context,
                     std::shared_ptr<PodWorker> worker,
                     json::Value pod,
                     net::Target target,
                     net::ResponseWriter& writer);

}  // namespace muster::agent
