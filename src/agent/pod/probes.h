/// Startup, liveness and readiness probes, and the checks that hooks share with them.
#pragma once

#include <string>

#include "agent/context.h"

namespace muster::agent {

class PodContainers;

struct ProbeTarget {
  std::string sandbox_id;
  std::string container_id;
  std::string address;  // the pod's
  Duration timeout = std::chrono::seconds(1);
};

struct CheckResult {
  bool ok = false;
  std::string output;  // for the event
};

/// One exec, httpGet, tcpSocket or grpc check of `action` against the container.
Task<CheckResult> run_check(Context& context,
                            const json::Value& action,
                            const json::Value& container_spec,
                            ProbeTarget target);

/// Starts the probes of the container's current attempt; they end with it.
void start_probes(PodContainers& containers, const std::string& container);

}  // namespace muster::agent
