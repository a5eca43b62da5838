/// Many deletions at once, so that they share commits.
#pragma once

#include <vector>

#include "apiserver/core.h"

namespace muster::apiserver {

struct BatchResult {
  /// Last state of each, in the order asked; null where it was not there.
  std::vector<StoredPtr> objects;
  std::size_t remaining = 0;     // how many wait for a grace period or finalizers
  std::optional<Error> failure;  // the last one that was not NotFound
};

/// Deletes the objects; returns when each is gone or marked.
Task<BatchResult> remove_all(Core& core,
                             ResourcePtr resource,
                             std::vector<StoredPtr> objects,
                             DeleteRequest request);

}  // namespace muster::apiserver
