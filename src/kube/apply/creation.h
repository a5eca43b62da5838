/// What whoever writes an object owns of it, written as the text of a set: the same as difference()
/// says, without a set between.
#pragma once

#include <string>

#include "kube/apply/apply.h"

namespace muster::kube {

/// "{}" when nothing of it can be owned.
std::string creation_text(const Shape* shape,
                          const json::Value& object,
                          const std::string& subresource);

/// What one owns who changes `before` into `now` and owned nothing so far: what is new and what is
/// different. `gone`: whether something else is no longer there, which concerns its owners.
std::string change_text(const Shape* shape,
                        const json::Value& before,
                        const json::Value& now,
                        const std::string& subresource,
                        bool* gone);

}  // namespace muster::kube
