// PodTemplate.
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Value;

void validate(const Value& object, const Value*, Causes& causes) {
  validate_pod_spec(json::at(object, "template", "spec"), "template.spec", causes);
}

Array cells(const Value& object, Time) {
  const auto [names, images] = containers_of(json::at(object, "template", "spec"));
  return {name_of(object),
          names,
          images,
          labels_text(json::at(object, "template", "metadata", "labels"))};
}

}  // namespace

std::vector<KindRules> families::pod_template() {
  using namespace columns;
  return {{.group = "",
           .kind = "PodTemplate",
           .defaults = default_template,
           .validate = validate,
           .columns = {name_column(), text("Containers"), text("Images"), text("Pod Labels")},
           .cells = cells,
           .generation = true,
           .answers_object = true}};
}

void default_template(json::Object& spec) {
  json::Object* pod = find(spec, "template");
  if (pod == nullptr) return;
  if (json::Value* pod_spec = pod->if_contains("spec")) default_pod_spec(*pod_spec, false);
}

}  // namespace muster::kube
