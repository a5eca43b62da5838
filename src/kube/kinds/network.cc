// NetworkPolicy, which the agent enforces; Ingress and IngressClass, kept and shown.
#include <fmt/core.h>

#include "kube/kinds/defaults.h"
#include "kube/kinds/families.h"
#include "kube/kinds/kind.h"
#include "kube/kinds/names.h"
#include "kube/kinds/put.h"
#include "kube/kinds/rules.h"
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

void validate_policy_port(const Value& port, const std::string& field, Causes& causes) {
  validate_enum(
      json::at(port, "protocol"), field + ".protocol", {"SCTP", "TCP", "UDP"}, causes, false);
  const Value& number = json::at(port, "port");
  const Value& last = json::at(port, "endPort");
  if (number.is_string()) {
    for (const auto& problem : port_name_problems(json::as_string(number)))
      causes.invalid(field + ".port", shown(number), problem);
  } else if (!number.is_null()) {
    validate_range(number, field + ".port", 1, 65535, causes);
  }
  if (last.is_null()) return;
  if (number.is_null())
    causes.invalid(
        field + ".endPort", shown(last), "may not be specified when `port` is not specified");
  else if (number.is_string())
    causes.invalid(
        field + ".endPort", shown(last), "may not be specified when `port` is non-numeric");
  else if (json::as_int(last) < json::as_int(number))
    causes.invalid(field + ".endPort", shown(last), "must be greater than or equal to `port`");
  else
    validate_range(last, field + ".endPort", 1, 65535, causes);
}

void validate_block(const Value& block, const std::string& field, Causes& causes) {
  constexpr auto kWanted = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
  const auto range = json::string_at(block, "cidr");
  if (range.empty()) return causes.required(field + ".cidr");
  if (!is_address_range(range))
    return causes.invalid(field + ".cidr", shown(json::at(block, "cidr")), kWanted);
  std::size_t i = 0;
  for (const Value& one : json::array_at(block, "except")) {
    const auto place = fmt::format("{}.except[{}]", field, i++);
    if (!is_address_range(json::as_string(one))) causes.invalid(place, shown(one), kWanted);
  }
}

void validate_policy_peer(const Value& peer, const std::string& field, Causes& causes) {
  const Value& block = json::at(peer, "ipBlock");
  int selectors = 0;
  for (const auto* member : {"podSelector", "namespaceSelector"}) {
    const Value& selector = json::at(peer, member);
    if (selector.is_null()) continue;
    ++selectors;
    validate_label_selector(selector, field + "." + member, causes);
  }
  if (!block.is_null()) validate_block(block, field + ".ipBlock", causes);
  if (block.is_null() && selectors == 0) causes.required(field, "must specify a peer");
  if (!block.is_null() && selectors > 0)
    causes.forbidden(field, "may not specify both ipBlock and another peer");
}

void validate_network_policy(const Value& object, const Value*, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  validate_label_selector(json::at(spec, "podSelector"), "spec.podSelector", causes);
  for (const auto& [member, peers] : {std::pair("ingress", "from"), {"egress", "to"}}) {
    std::size_t i = 0;
    for (const Value& rule : json::array_at(spec, member)) {
      const auto place = fmt::format("spec.{}[{}]", member, i++);
      std::size_t n = 0;
      for (const Value& port : json::array_at(rule, "ports"))
        validate_policy_port(port, fmt::format("{}.ports[{}]", place, n++), causes);
      n = 0;
      for (const Value& peer : json::array_at(rule, peers))
        validate_policy_peer(peer, fmt::format("{}.{}[{}]", place, peers, n++), causes);
    }
  }
  std::size_t i = 0;
  for (const Value& type : json::array_at(spec, "policyTypes"))
    validate_enum(type, fmt::format("spec.policyTypes[{}]", i++), {"Egress", "Ingress"}, causes);
}

}  // namespace

std::vector<KindRules> families::network() {
  using namespace columns;
  return {{.group = groups::kNetworking,
           .kind = "NetworkPolicy",
           .defaults = default_network_policy,
           .validate = validate_network_policy,
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
