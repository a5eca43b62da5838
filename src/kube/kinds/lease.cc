// Lease.
#include "kube/kinds/causes.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

void validate_lease(const Value& object, const Value*, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& duration = json::at(spec, "leaseDurationSeconds");
  if (!duration.is_null() && json::as_int(duration) <= 0)
    causes.invalid("spec.leaseDurationSeconds", json::dump(duration), "must be greater than 0");
  validate_non_negative(json::at(spec, "leaseTransitions"), "spec.leaseTransitions", causes);
}

}  // namespace

std::vector<KindRules> families::lease() {
  using namespace columns;
  return {{.group = groups::kCoordination,
           .kind = "Lease",
           .validate = validate_lease,
           .columns = {name_column(), text("Holder"), text("Age")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{name_of(o),
                              json::text_at(o, "spec", "holderIdentity"),
                              age_of(creation_time(o), now)};
               },
           .creates_on_update = true}};
}

}  // namespace muster::kube
