/// grpc.health.v1.Health/Check, as a gRPC probe asks it.
#pragma once

#include <string>

#include "base/result.h"
#include "net/loop/loop.h"

namespace muster::agent {

/// Succeeds when the service answers SERVING.
Task<Result<void>> grpc_health_check(
    net::Loop& loop, std::string address, int port, std::string service, Duration timeout);

}  // namespace muster::agent
