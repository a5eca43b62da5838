// Namespace: goes when its finalizers have gone.
#include <algorithm>

#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/names.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_namespace(Object& object) {
  Object& metadata = object_at(object, "metadata");
  const std::string name =
      json::text(metadata.contains("name") ? metadata["name"] : json::null_value());
  if (!name.empty()) object_at(metadata, "labels")[names::kubernetes::kNamespaceName] = name;
}

void prepare_create(Value& object) {
  Value& finalizers = json::make(object, {"spec", "finalizers"});
  if (!finalizers.is_array()) finalizers.emplace_array();
  Array& list = finalizers.get_array();
  const bool there = std::any_of(list.begin(), list.end(), [](const Value& value) {
    return json::as_string(value) == "kubernetes";
  });
  if (!there) list.emplace_back("kubernetes");
}

/// The spec is for the finalize subresource.
void prepare_update(Value& updated, const Value& live) { keep_member(updated, live, "spec"); }

Object first_status(const Value&, Time) { return Object{{"phase", "Active"}}; }

}  // namespace

std::vector<KindRules> families::name_space() {
  using namespace columns;
  return {{.group = "",
           .kind = "Namespace",
           .name_rule = "namespace",
           .defaults = default_namespace,
           .prepare_create = prepare_create,
           .prepare_update = prepare_update,
           .first_status = first_status,
           .columns = {name_column(), text("Status"), text("Age")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{name_of(o),
                              json::text_at(o, "status", "phase"),
                              age_of(creation_time(o), now)};
               },
           .fields = {"metadata.name", "status.phase"},
           .answers_object = true}};
}

}  // namespace muster::kube
