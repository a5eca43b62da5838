/// What comes from a client of this process, checked as the parser checks text (shared.h), for one
/// who only reads it.
#pragma once

#include "json/memory.h"
#include "kube/shared.h"

namespace muster::kube {

/// The very object where it is settled already, else a settled copy.
Result<ObjectPtr> settled(const ObjectPtr& object);
/// settled() of shared.h in other memory.
Result<json::Value> settled(const json::Value& value, json::Storage storage);

}  // namespace muster::kube
