/// Strategic merge patch for the built-in kinds: lists merge by key, $patch, $retainKeys, $setElementOrder,
/// $deleteFromPrimitiveList.
#pragma once

#include "kube/schema.h"

namespace muster::kube {

Result<void> strategic_merge(const Type& type, json::Value& target, const json::Value& patch);

}  // namespace muster::kube
