// ControllerRevision.
#include "base/strings.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

Array cells(const Value& object, Time now) {
  const OwnerReference owner = controller_of(object);
  const Gvk gvk = gvk_of(Object{{"apiVersion", owner.api_version}, {"kind", owner.kind}});
  const std::string kind = to_lower(owner.kind) + (gvk.group.empty() ? "" : "." + gvk.group);
  return {name_of(object),
          owner.kind.empty() ? "<none>" : kind + "/" + owner.name,
          json::int_at(object, "revision"),
          age_of(creation_time(object), now)};
}

}  // namespace

std::vector<KindRules> families::controller_revision() {
  using namespace columns;
  return {{.group = "apps",
           .kind = "ControllerRevision",
           .columns = {name_column(), text("Controller"), text("Revision"), text("Age")},
           .cells = cells}};
}

}  // namespace muster::kube
