// ServiceAccount: who a pod is.
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

}  // namespace

std::vector<KindRules> families::service_account() {
  using namespace columns;
  return {{.group = "",
           .kind = "ServiceAccount",
           .columns = {name_column(), text("Age")},
           .cells = [](const Value& o,
                       Time now) { return Array{name_of(o), age_of(creation_time(o), now)}; },
           .answers_object = true}};
}

}  // namespace muster::kube
