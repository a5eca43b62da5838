// CustomResourceDefinition, as an object; what it defines is in kube/crd.
#include "kube/crd/crd.h"

#include "base/strings.h"
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

void default_crd(Object& object) {
  Object& spec = object_at(object, "spec");
  Object& words = object_at(spec, "words");
  const std::string kind = json::text(words.contains("kind") ? words["kind"] : json::null_value());
  put_text(words, "singular", to_lower(kind));
  if (!kind.empty()) put_text(words, "listKind", kind + "List");
  put_text(object_at(spec, "conversion"), "strategy", "None");
}

void validate(const Value& object, const Value*, Causes& causes) { validate_crd(object, causes); }

Array crd_cells(const Value& object, Time) {
  const Value& spec = json::at(object, "spec");
  std::vector<std::string> versions, shorts;
  for (const Value& version : json::array_at(spec, "versions")) {
    versions.push_back(json::text_at(version, "name") +
                       (json::bool_at(version, "storage") ? "(storage)" : ""));
  }
  for (const Value& name : json::array_at(spec, "names", "shortNames"))
    shorts.push_back(json::text(name));
  return {name_of(object),
          json::text_at(spec, "scope"),
          join(versions, ","),
          json::text_at(object, "metadata", "creationTimestamp"),
          json::text_at(spec, "group"),
          json::text_at(spec, "names", "kind"),
          join(shorts, ","),
          condition_true(object, "Established")};
}

}  // namespace

std::vector<KindRules> families::crd() {
  using namespace columns;
  return {{.group = groups::kApiExtensions,
           .kind = "CustomResourceDefinition",
           .defaults = default_crd,
           .validate = validate,
           .columns = {name_column(),
                       text("Scope"),
                       text("Versions"),
                       date("Created At"),
                       text("Group", kWide),
                       text("Kind", kWide),
                       text("ShortNames", kWide),
                       boolean("Established", kWide)},
           .cells = crd_cells,
           .generation = true,
           .needs_version = true}};
}

}  // namespace muster::kube
