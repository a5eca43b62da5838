/// What every cluster has from its first start: namespaces, roles, priority classes, the kubernetes
/// service, CRDs.
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

Task<Result<void>> bootstrap(Core& core);
/// The kubernetes service's endpoints point at the server.
Task<void> publish_endpoint(Core& core);

}  // namespace muster::apiserver
