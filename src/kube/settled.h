/// What comes from a client of this process, checked as the parser checks text (shared.h), for one
/// who only reads it.
#pragma once

#include "kube/shared.h"

namespace muster::kube {

/// The very object where it is settled already, else a settled copy.
Result<ObjectPtr> settled(const ObjectPtr& object);

}  // namespace muster::kube
