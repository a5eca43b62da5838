// LimitRange: defaults and bounds of what pods of a namespace ask for.
#include <fmt/core.h>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/causes.h"
#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/table/table_cells.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

void default_limit_range(Object& object) {
  Object* spec = find(object, "spec");
  if (spec == nullptr) return;
  each(*spec, "limits", [](Object& limit) {
    if (json::as_string(limit["type"]) != "Container") return;
    const auto fill = [&](std::string_view from, std::string_view to) {
      const Value* source = limit.if_contains(from);
      if (source == nullptr || !source->is_object() || source->get_object().empty()) return;
      const Object copy = source->get_object();
      Object& into = object_at(limit, to);
      for (const auto& entry : copy) put(into, entry.key(), entry.value());
    };
    fill("max", "default");
    fill("default", "defaultRequest");
    fill("min", "defaultRequest");
  });
}

/// Compares two quantities of one resource; nothing when either is missing.
void not_above(const Value& limits,
               std::string_view low,
               std::string_view high,
               std::string_view low_text,
               std::string_view high_text,
               bool blame_low,
               const std::string& field,
               Causes& causes) {
  for (const auto& member : json::object_at(limits, low)) {
    const std::string_view name = member.key();
    const auto below = parse_quantity(json::text(member.value()));
    const auto above = parse_quantity(json::text_at(limits, high, name));
    if (!below || !above || json::at(limits, high, name).is_null() || !(*below > *above)) continue;
    causes.invalid(fmt::format("{}.{}[{}]", field, blame_low ? low : high, name),
                   quoted(blame_low ? below->text() : above->text()),
                   fmt::format("{} value {} is greater than {} value {}",
                               low_text,
                               below->text(),
                               high_text,
                               above->text()));
  }
}

void validate_limit_range(const Value& object, const Value*, Causes& causes) {
  const json::Array& limits = json::array_at(object, "spec", "limits");
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const Value& limit = limits[i];
    const std::string here = fmt::format("spec.limits[{}]", i);
    const std::string_view type = json::string_at(limit, "type");
    if (!check_label_key(type).empty()) {
      for (const std::string& problem : qualified_name_problems(type))
        causes.invalid(here + ".type", quoted(type), problem);
    } else if (type.find('/') == std::string_view::npos && type != "Pod" && type != "Container" &&
               type != "PersistentVolumeClaim") {
      causes.invalid(
          here + ".type", quoted(type), "must be a standard limit type or fully qualified");
    }
    if (type == "Pod") {
      for (const std::string_view key : {"default", "defaultRequest"}) {
        if (!json::is_empty(json::at(limit, key)))
          causes.forbidden(fmt::format("{}.{}", here, key),
                           "may not be specified when `type` is 'Pod'");
      }
    }
    not_above(limit, "min", "max", "min", "max", true, here, causes);
    not_above(limit, "min", "defaultRequest", "min", "default request", false, here, causes);
    not_above(limit, "defaultRequest", "max", "default request", "max", true, here, causes);
    not_above(limit, "min", "default", "min", "default", true, here, causes);
    not_above(limit, "default", "max", "default", "max", false, here, causes);
    not_above(limit, "defaultRequest", "default", "default request", "default", true, here, causes);
  }
}

}  // namespace

std::vector<KindRules> families::limit_range() {
  using namespace columns;
  return {{.group = "",
           .kind = "LimitRange",
           .defaults = default_limit_range,
           .validate = validate_limit_range,
           .columns = {name_column(), date("Created At")},
           .cells =
               [](const Value& o, Time) {
                 return Array{name_of(o), json::text_at(o, "metadata", "creationTimestamp")};
               },
           .creates_on_update = true}};
}

}  // namespace muster::kube
