/// Finalizers: names that hold an object until each of them is taken off.
#pragma once

#include "apiserver/core.h"

namespace muster::apiserver {

bool has_finalizer(const json::Value& object, std::string_view finalizer);
/// Adds or takes off; an empty list goes altogether.
void set_finalizer(json::Value& object, std::string_view finalizer, bool wanted);
/// Takes it off the stored object, if that is still the same one; the last one off lets the object
/// go. False: the write failed, and is worth another try.
Task<bool> drop_finalizer(Core& core,
                          ResourcePtr resource,
                          StoredPtr stored,
                          std::string finalizer);

}  // namespace muster::apiserver
