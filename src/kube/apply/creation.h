/// What whoever creates an object owns, written as the text of a set: the same as difference() from
/// nothing, without a set between.
#pragma once

#include <string>

#include "kube/apply/apply.h"

namespace muster::kube {

/// "{}" when nothing of it can be owned.
std::string creation_text(const Shape* shape,
                          const json::Value& object,
                          const std::string& subresource);

}  // namespace muster::kube
