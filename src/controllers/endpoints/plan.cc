#include "controllers/endpoints/plan.h"

#include "base/strings.h"

namespace muster::controllers::endpoints {
namespace {

/// The port of the pod that a service port leads to; 0 when it names one that the pod does not
/// have.
std::int64_t target_port(const json::Value& port, const json::Value& pod) {
  const auto& target = json::at(port, "targetPort");
  if (target.is_number() && json::as_int(target) != 0) return json::as_int(target);
  const auto name = json::as_string(target);
  if (name.empty()) return json::int_at(port, "port");
  for (const auto& container : json::array_at(pod, "spec", "containers")) {
    for (const auto& each : json::array_at(container, "ports")) {
      if (json::string_at(each, "name") == name) return json::int_at(each, "containerPort");
    }
  }
  return 0;
}

json::Value address_of(const json::Value& pod, const std::string& service) {
  json::Object address{{"ip", json::at(pod, "status", "podIP")}};
  const auto hostname = json::string_at(pod, "spec", "hostname");
  // Such a pod has a name below the service's.
  if (!hostname.empty() && json::string_at(pod, "spec", "subdomain") == service)
    address["hostname"] = hostname;
  if (const auto& node = json::at(pod, "spec", "nodeName"); node.is_string())
    address["nodeName"] = node;
  address["targetRef"] = json::Object{{"kind", "Pod"},
                                      {"namespace", namespace_of(pod)},
                                      {"name", name_of(pod)},
                                      {"uid", uid_of(pod)}};
  return address;
}

struct Subset {
  json::Array ports, ready, unready;
};

}  // namespace

json::Array ports_of(const json::Value& service, const json::Value& pod) {
  json::Array result;
  for (const auto& port : json::array_at(service, "spec", "ports")) {
    const auto number = target_port(port, pod);
    if (number == 0) continue;
    json::Object entry;
    if (const auto& name = json::at(port, "name"); !json::as_string(name).empty())
      entry["name"] = name;
    entry["port"] = number;
    entry["protocol"] =
        json::string_at(port, "protocol").empty() ? "TCP" : json::string_at(port, "protocol");
    result.push_back(std::move(entry));
  }
  return result;
}

Plan plan(const json::Value& service, const Objects& pods, const json::Value* found) {
  Plan plan;
  const bool publish_all = json::bool_at(service, "spec", "publishNotReadyAddresses");
  std::vector<Subset> subsets;
  for (const auto* pod : pods) {
    const auto phase = phase_of(*pod);
    if (json::string_at(*pod, "status", "podIP").empty() || phase == "Succeeded" ||
        phase == "Failed")
      continue;
    if (is_deleting(*pod) && !publish_all) continue;
    auto ports = ports_of(service, *pod);
    Subset* into = nullptr;
    for (auto& subset : subsets) {
      if (json::equal(subset.ports, ports)) into = &subset;
    }
    if (into == nullptr) into = &subsets.emplace_back(Subset{std::move(ports), {}, {}});
    (publish_all || is_ready(*pod) ? into->ready : into->unready)
        .push_back(address_of(*pod, name_of(service)));
  }
  json::Array list;
  for (auto& subset : subsets) {
    json::Object entry;
    if (!subset.ready.empty()) entry["addresses"] = std::move(subset.ready);
    if (!subset.unready.empty()) entry["notReadyAddresses"] = std::move(subset.unready);
    if (!subset.ports.empty()) entry["ports"] = std::move(subset.ports);
    list.push_back(std::move(entry));
  }
  if (found == nullptr) {
    json::Value object = json::Object{
        {"apiVersion", "v1"},
        {"kind", "Endpoints"},
        {"metadata",
         json::Object{{"name", name_of(service)}, {"namespace", namespace_of(service)}}}};
    if (const auto& labels = json::at(service, "metadata", "labels"); labels.is_object())
      json::make_object(object, {"metadata"})["labels"] = labels;
    object.as_object()["subsets"] = std::move(list);
    plan.actions.push_back(create(kinds::kEndpoints, std::move(object)));
  } else if (!json::equal(json::at(*found, "subsets"), list) &&
             !(list.empty() && json::array_at(*found, "subsets").empty())) {
    plan.actions.push_back(
        patch(kinds::kEndpoints, name_of(service), json::Object{{"subsets", std::move(list)}}));
  }
  return plan;
}

}  // namespace muster::controllers::endpoints
