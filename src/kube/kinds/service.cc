// Service: one address for many pods.
#include <fmt/core.h>

#include <set>

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

void default_service(Object& object) {
  Object& spec = object_at(object, "spec");
  put_text(spec, "sessionAffinity", "None");
  if (json::as_string(spec["sessionAffinity"]) == "ClientIP") {
    put(object_at(object_at(spec, "sessionAffinityConfig"), "clientIP"), "timeoutSeconds", 10800);
  }
  put_text(spec, "type", "ClusterIP");
  const std::string type = json::text(spec["type"]);
  each(spec, "ports", [](Object& port) {
    put_text(port, "protocol", "TCP");
    Value number = port["port"];
    Value& target = port["targetPort"];
    if (json::is_empty(target)) target = std::move(number);
  });
  if (type != "ExternalName") put_text(spec, "internalTrafficPolicy", "Cluster");
  if (type == "NodePort" || type == "LoadBalancer")
    put_text(spec, "externalTrafficPolicy", "Cluster");
  if (type == "LoadBalancer") put(spec, "allocateLoadBalancerNodePorts", true);
}

void validate_service_port(const Value& port,
                           const std::string& here,
                           bool several,
                           Causes& causes) {
  const std::string_view name = json::string_at(port, "name");
  if (name.empty()) {
    if (several) causes.required(here + ".name");
  } else {
    causes.check(here + ".name", name, check_dns_label(name));
  }
  const Value& number = json::at(port, "port");
  if (json::as_int(number) < 1 || json::as_int(number) > 65535)
    causes.invalid(here + ".port",
                   json::dump(number.is_null() ? Value(0) : number),
                   "must be between 1 and 65535, inclusive");
  validate_enum(json::at(port, "protocol"), here + ".protocol", {"SCTP", "TCP", "UDP"}, causes);
  const Value& target = json::at(port, "targetPort");
  if (target.is_int64())
    validate_range(target, here + ".targetPort", 1, 65535, causes);
  else if (target.is_string()) {
    for (const std::string& problem : port_name_problems(json::as_string(target)))
      causes.invalid(here + ".targetPort", shown(target), problem);
  }
}

/// A table of rules, one after the other, in the order in which Kubernetes reports them.
void validate_service(const Value& service, const Value* live, Causes& causes) {
  const Value& spec = json::at(service, "spec");
  const std::string_view type = json::string_at(spec, "type");
  const std::string_view cluster_ip = json::string_at(spec, "clusterIP");
  const json::Array& ports = json::array_at(spec, "ports");
  if (ports.empty() && cluster_ip != "None" && type != "ExternalName")
    causes.required("spec.ports");
  if (type == "ExternalName") {
    if (!cluster_ip.empty())
      causes.forbidden("spec.clusterIPs[0]", "may not be set when `type` is 'ExternalName'");
    const std::string_view name = json::string_at(spec, "externalName");
    if (name.empty())
      causes.required("spec.externalName");
    else
      causes.check("spec.externalName", name, check_dns_subdomain(name));
  }
  std::set<std::string_view> names;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string here = fmt::format("spec.ports[{}]", i);
    validate_service_port(ports[i], here, ports.size() > 1, causes);
    const std::string_view name = json::string_at(ports[i], "name");
    if (!name.empty() && !names.insert(name).second) causes.duplicate(here + ".name", quoted(name));
    const std::string pair =
        fmt::format("{}/{}", json::string_at(ports[i], "protocol"), json::int_at(ports[i], "port"));
    if (!seen.insert(pair).second) {
      causes.duplicate(here,
                       json::dump(json::Object{{"protocol", json::at(ports[i], "protocol")},
                                               {"port", json::at(ports[i], "port")}}));
    }
  }
  validate_labels(json::at(spec, "selector"), "spec.selector", causes);
  validate_enum(
      json::at(spec, "sessionAffinity"), "spec.sessionAffinity", {"ClientIP", "None"}, causes);
  validate_enum(json::at(spec, "type"),
                "spec.type",
                {"ClusterIP", "ExternalName", "LoadBalancer", "NodePort"},
                causes);
  if (!cluster_ip.empty() && cluster_ip != "None" && !is_address(cluster_ip)) {
    causes.invalid("spec.clusterIPs[0]",
                   quoted(cluster_ip),
                   "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  }
  if (cluster_ip == "None" && (type == "NodePort" || type == "LoadBalancer")) {
    causes.invalid("spec.clusterIPs[0]",
                   "\"None\"",
                   fmt::format("may not be set to 'None' for {} services", type));
  }
  const json::Array& external = json::array_at(spec, "externalIPs");
  for (std::size_t i = 0; i < external.size(); ++i) {
    const std::string_view address = json::as_string(external[i]);
    if (!is_address(address))
      causes.invalid(fmt::format("spec.externalIPs[{}]", i),
                     quoted(address),
                     "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
  }
  validate_enum(json::at(spec, "ipFamilyPolicy"),
                "spec.ipFamilyPolicy",
                {"PreferDualStack", "RequireDualStack", "SingleStack"},
                causes,
                false);
  validate_enum(json::at(spec, "internalTrafficPolicy"),
                "spec.internalTrafficPolicy",
                {"Cluster", "Local"},
                causes,
                false);
  validate_enum(json::at(spec, "externalTrafficPolicy"),
                "spec.externalTrafficPolicy",
                {"Cluster", "Local"},
                causes,
                false);
  const Value& policy = json::at(spec, "externalTrafficPolicy");
  if (live == nullptr && !json::is_empty(policy) && type != "NodePort" && type != "LoadBalancer" &&
      external.empty()) {
    causes.invalid("spec.externalTrafficPolicy",
                   shown(policy),
                   "may only be set for externally-accessible services");
  }
  const json::Array& sources = json::array_at(spec, "loadBalancerSourceRanges");
  if (!sources.empty() && type != "LoadBalancer")
    causes.forbidden("spec.LoadBalancerSourceRanges",
                     "may only be used when `type` is 'LoadBalancer'");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (is_address_range(json::as_string(sources[i]))) continue;
    causes.invalid(fmt::format("spec.LoadBalancerSourceRanges[{}]", i),
                   shown(sources[i]),
                   "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
  }
  if (live != nullptr) {
    const std::string_view old_ip = json::string_at(*live, "spec", "clusterIP");
    const std::string_view old_type = json::string_at(*live, "spec", "type");
    if (!old_ip.empty() && old_ip != cluster_ip && type != "ExternalName" &&
        old_type != "ExternalName") {
      causes.invalid(
          "spec.clusterIPs[0]", fmt::format("[{}]", quoted(cluster_ip)), "may not change once set");
    }
  }
}

Object first_status(const Value&, Time) { return Object{{"loadBalancer", Object()}}; }

void usage(const Value& service, Usage& used) {
  const std::string_view type = json::string_at(service, "spec", "type");
  used["services"] = Quantity::from_units(1);
  if (type == "LoadBalancer") used["services.loadbalancers"] = Quantity::from_units(1);
  if (type == "LoadBalancer" || type == "NodePort") {
    used["services.nodeports"] = Quantity::from_units(
        static_cast<std::int64_t>(json::array_at(service, "spec", "ports").size()));
  }
}

std::string external_ip(const Value& service, std::string_view type) {
  std::vector<std::string> addresses;
  for (const Value& one : json::array_at(service, "status", "loadBalancer", "ingress")) {
    const std::string ip = json::text_at(one, "ip");
    addresses.push_back(ip.empty() ? json::text_at(one, "hostname") : ip);
  }
  std::vector<std::string> given;
  for (const Value& ip : json::array_at(service, "spec", "externalIPs"))
    given.push_back(json::text(ip));
  if (type == "ExternalName") return or_none(json::text_at(service, "spec", "externalName"));
  if (type == "LoadBalancer") {
    addresses.insert(addresses.end(), given.begin(), given.end());
    return addresses.empty() ? "<pending>" : join(addresses, ",");
  }
  return given.empty() ? "<none>" : join(given, ",");
}

Array service_cells(const Value& service, Time now) {
  const Value& spec = json::at(service, "spec");
  const std::string type = json::text_at(spec, "type");
  std::vector<std::string> ports;
  for (const Value& port : json::array_at(spec, "ports")) {
    std::string text = std::to_string(json::int_at(port, "port"));
    if (json::int_at(port, "nodePort") > 0)
      text += fmt::format(":{}", json::int_at(port, "nodePort"));
    ports.push_back(text + "/" + json::text_at(port, "protocol"));
  }
  const Array& ips = json::array_at(spec, "clusterIPs");
  std::string ip = ips.empty() ? json::text_at(spec, "clusterIP") : json::text(ips[0]);
  return {name_of(service),
          type,
          or_none(std::move(ip)),
          external_ip(service, type),
          ports.empty() ? "<none>" : join(ports, ","),
          age_of(creation_time(service), now),
          labels_text(json::at(spec, "selector"))};
}

}  // namespace

std::vector<KindRules> families::service() {
  using namespace columns;
  return {{.group = "",
           .kind = "Service",
           // DNS-1123 since 1.34 (RelaxedServiceNameValidation).
           .name_rule = "label",
           .defaults = default_service,
           .first_status = first_status,
           .validate = validate_service,
           .usage = usage,
           .columns = {name_column(),
                       text("Type"),
                       text("Cluster-IP"),
                       text("External-IP"),
                       text("Port(s)"),
                       text("Age"),
                       text("Selector", kWide)},
           .cells = service_cells,
           .fields = {"metadata.name", "metadata.namespace", "spec.clusterIP", "spec.type"},
           .creates_on_update = true,
           .answers_object = true}};
}

}  // namespace muster::kube
