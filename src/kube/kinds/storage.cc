// StorageClass and CSINode.
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_storage_class(Object& object) {
  put_text(object, "reclaimPolicy", "Delete");
  put_text(object, "volumeBindingMode", "Immediate");
}

void validate_storage_class(const Value& object, const Value*, Causes& causes) {
  if (json::is_empty(json::at(object, "provisioner"))) causes.required("provisioner");
  validate_enum(
      json::at(object, "reclaimPolicy"), "reclaimPolicy", {"Delete", "Retain"}, causes, false);
  validate_enum(json::at(object, "volumeBindingMode"),
                "volumeBindingMode",
                {"Immediate", "WaitForFirstConsumer"},
                causes,
                false);
}

Array storage_class_cells(const Value& object, Time now) {
  std::string name(name_of(object));
  if (annotation(object, names::kubernetes::kDefaultClass) == "true") name += " (default)";
  return {name,
          json::text_at(object, "provisioner"),
          json::text_at(object, "reclaimPolicy"),
          json::text_at(object, "volumeBindingMode"),
          json::bool_at(object, "allowVolumeExpansion"),
          age_of(creation_time(object), now)};
}

}  // namespace

std::vector<KindRules> families::storage() {
  using namespace columns;
  return {{.group = groups::kStorage,
           .kind = "StorageClass",
           .defaults = default_storage_class,
           .validate = validate_storage_class,
           .columns = {name_column(),
                       text("Provisioner"),
                       text("ReclaimPolicy"),
                       text("VolumeBindingMode"),
                       text("AllowVolumeExpansion"),
                       text("Age")},
           .cells = storage_class_cells},
          {.group = groups::kStorage,
           .kind = "CSINode",
           .columns = {name_column(), integer("Drivers"), text("Age")},
           .cells = [](const Value& o, Time now) {
             return Array{name_of(o),
                          static_cast<std::int64_t>(json::array_at(o, "spec", "drivers").size()),
                          age_of(creation_time(o), now)};
           }}};
}

}  // namespace muster::kube
