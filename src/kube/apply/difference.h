/// What changed between two states of an object, as sets of fields.
#pragma once

#include "kube/apply/apply.h"
#include "kube/apply/fieldset.h"

namespace muster::kube {

struct Difference {
  FieldSet added, modified, removed;

  [[nodiscard]] bool empty() const { return added.empty() && modified.empty() && removed.empty(); }
};

/// Between two whole objects, as far as a request to this subresource may own it. Absent: empty.
Difference difference(const Shape* shape,
                      const json::Value& before,
                      const json::Value& now,
                      const std::string& subresource);

}  // namespace muster::kube
