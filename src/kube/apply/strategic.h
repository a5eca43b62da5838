/// Strategic merge patch for the built-in kinds: lists merge by key, $patch, $retainKeys,
/// $setElementOrder, $deleteFromPrimitiveList.
#pragma once

#include "json/memory.h"
#include "kube/schema/schema.h"

namespace muster::kube {

/// A copy of `before` with the patch applied.
Result<json::Value> strategic_merged(const Type& type,
                                     const json::Value& before,
                                     const json::Value& patch,
                                     json::Storage storage = {});
/// The target is unchanged when it fails.
Result<void> strategic_merge(const Type& type, json::Value& target, const json::Value& patch);

}  // namespace muster::kube
