// NetworkPolicy, Ingress and IngressClass: kept and shown; no part of Muster acts on them.
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

void default_network_policy(Object& object) {
  Object& spec = object_at(object, "spec");
  put(spec, "podSelector", Object());
  Value& types = spec["policyTypes"];
  if (!json::is_empty(types)) return;
  json::Array list{"Ingress"};
  const Value* egress = spec.if_contains("egress");
  if (egress != nullptr && !json::is_empty(*egress)) list.emplace_back("Egress");
  spec["policyTypes"] = std::move(list);
}

}  // namespace

std::vector<KindRules> families::network() {
  using namespace columns;
  return {{.group = groups::kNetworking,
           .kind = "NetworkPolicy",
           .defaults = default_network_policy,
           .columns = {name_column(), text("Pod-Selector"), text("Age")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{name_of(o),
                              selector_text(json::at(o, "spec", "podSelector")),
                              age_of(creation_time(o), now)};
               },
           .generation = true},
          {.group = groups::kNetworking,
           .kind = "IngressClass",
           .columns = {name_column(), text("Controller"), text("Parameters"), text("Age")},
           .cells =
               [](const Value& o, Time now) {
                 return Array{name_of(o),
                              json::text_at(o, "spec", "controller"),
                              "<none>",
                              age_of(creation_time(o), now)};
               },
           .generation = true},
          {.group = groups::kNetworking, .kind = "Ingress", .generation = true}};
}

}  // namespace muster::kube
