// Role, ClusterRole and their bindings.
#include <fmt/core.h>

#include "base/strings.h"
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

void default_binding(Object& object) {
  put_text(object_at(object, "roleRef"), "apiGroup", groups::kRbac);
  each(object, "subjects", [](Object& subject) {
    const std::string_view kind = json::as_string(subject["kind"]);
    if (kind == "User" || kind == "Group") put_text(subject, "apiGroup", groups::kRbac);
  });
}

void validate_role(const Value& object, bool cluster, Causes& causes) {
  const json::Array& rules = json::array_at(object, "rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string here = fmt::format("rules[{}]", i);
    if (json::array_at(rules[i], "verbs").empty()) causes.required(here + ".verbs");
    const bool urls = !json::array_at(rules[i], "nonResourceURLs").empty();
    if (urls) {
      if (!cluster)
        causes.invalid(here + ".nonResourceURLs",
                       json::dump(json::at(rules[i], "nonResourceURLs")),
                       "namespaced rules cannot apply to non-resource URLs");
      if (!json::array_at(rules[i], "apiGroups").empty() ||
          !json::array_at(rules[i], "resources").empty() ||
          !json::array_at(rules[i], "resourceNames").empty()) {
        causes.invalid(here + ".nonResourceURLs",
                       json::dump(json::at(rules[i], "nonResourceURLs")),
                       "rules cannot apply to both regular resources and non-resource URLs");
      }
      continue;
    }
    if (json::array_at(rules[i], "apiGroups").empty())
      causes.required(here + ".apiGroups", "resource rules must supply at least one api group");
    if (json::array_at(rules[i], "resources").empty())
      causes.required(here + ".resources", "resource rules must supply at least one resource");
  }
}

void validate_role_binding(const Value& object, const Value* live, bool cluster, Causes& causes) {
  const Value& ref = json::at(object, "roleRef");
  const std::string_view group = json::string_at(ref, "apiGroup");
  if (group != groups::kRbac) causes.not_supported("roleRef.apiGroup", group, {groups::kRbac});
  const std::string_view kind = json::string_at(ref, "kind");
  if (cluster && kind != "ClusterRole")
    causes.not_supported("roleRef.kind", kind, {"ClusterRole"});
  else if (kind != "Role" && kind != "ClusterRole")
    causes.not_supported("roleRef.kind", kind, {"Role", "ClusterRole"});
  if (json::is_empty(json::at(ref, "name"))) causes.required("roleRef.name");
  const json::Array& subjects = json::array_at(object, "subjects");
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const std::string here = fmt::format("subjects[{}]", i);
    if (json::is_empty(json::at(subjects[i], "name"))) causes.required(here + ".name");
    const std::string_view subject = json::string_at(subjects[i], "kind");
    if (subject == "ServiceAccount") {
      if (json::is_empty(json::at(subjects[i], "namespace")) && cluster)
        causes.required(here + ".namespace");
      if (!json::is_empty(json::at(subjects[i], "apiGroup")))
        causes.not_supported(here + ".apiGroup", json::string_at(subjects[i], "apiGroup"), {""});
    } else if (subject != "User" && subject != "Group") {
      causes.not_supported(here + ".kind", subject, {"ServiceAccount", "User", "Group"});
    }
  }
  if (live != nullptr && !json::equal(ref, json::at(*live, "roleRef")))
    causes.invalid("roleRef", json::dump(ref), "field is immutable");
}

Array role_binding_cells(const Value& object, Time now) {
  std::vector<std::string> users, groups, accounts;
  for (const Value& subject : json::array_at(object, "subjects")) {
    const std::string_view kind = json::string_at(subject, "kind");
    const std::string name = json::text_at(subject, "name");
    if (kind == "User")
      users.push_back(name);
    else if (kind == "Group")
      groups.push_back(name);
    else if (kind == "ServiceAccount")
      accounts.push_back(json::text_at(subject, "namespace") + "/" + name);
  }
  return {name_of(object),
          fmt::format("{}/{}",
                      json::string_at(object, "roleRef", "kind"),
                      json::string_at(object, "roleRef", "name")),
          age_of(creation_time(object), now),
          join(users, ", "),
          join(groups, ", "),
          join(accounts, ", ")};
}

}  // namespace

std::vector<KindRules> families::rbac() {
  using namespace columns;
  return {
      {.group = groups::kRbac,
       .kind = "Role",
       .name_rule = "path",
       .validate =
           [](const Value& o, const Value*, Causes& causes) { validate_role(o, false, causes); },
       .columns = {name_column(), date("Created At")},
       .cells =
           [](const Value& o, Time) {
             return Array{name_of(o), json::text_at(o, "metadata", "creationTimestamp")};
           },
       .creates_on_update = true},
      {.group = groups::kRbac,
       .kind = "ClusterRole",
       .name_rule = "path",
       .validate =
           [](const Value& o, const Value*, Causes& causes) { validate_role(o, true, causes); },
       .columns = {name_column(), date("Created At")},
       .cells =
           [](const Value& o, Time) {
             return Array{name_of(o), json::text_at(o, "metadata", "creationTimestamp")};
           },
       .creates_on_update = true},
      {.group = groups::kRbac,
       .kind = "RoleBinding",
       .name_rule = "path",
       .defaults = default_binding,
       .validate = [](const Value& o,
                      const Value* live,
                      Causes& causes) { validate_role_binding(o, live, false, causes); },
       .columns = {name_column(),
                   text("Role"),
                   text("Age"),
                   text("Users", kWide),
                   text("Groups", kWide),
                   text("ServiceAccounts", kWide)},
       .cells = role_binding_cells,
       .creates_on_update = true},
      {.group = groups::kRbac,
       .kind = "ClusterRoleBinding",
       .name_rule = "path",
       .defaults = default_binding,
       .validate = [](const Value& o,
                      const Value* live,
                      Causes& causes) { validate_role_binding(o, live, true, causes); },
       .columns = {name_column(),
                   text("Role"),
                   text("Age"),
                   text("Users", kWide),
                   text("Groups", kWide),
                   text("ServiceAccounts", kWide)},
       .cells = role_binding_cells,
       .creates_on_update = true}};
}

}  // namespace muster::kube
