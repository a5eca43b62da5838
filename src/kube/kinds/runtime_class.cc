// RuntimeClass.
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

}  // namespace

std::vector<KindRules> families::runtime_class() {
  using namespace columns;
  return {{.group = groups::kNode,
           .kind = "RuntimeClass",
           .columns = {name_column(), text("Handler"), text("Age")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{
                     name_of(o), json::text_at(o, "handler"), age_of(creation_time(o), now)};
               },
           .creates_on_update = true}};
}

}  // namespace muster::kube
