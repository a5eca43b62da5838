#include "controllers/endpoints/slices.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "controllers/common/native_kinds.h"
#include "controllers/common/workload.h"
#include "controllers/endpoints/plan.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::controllers::endpoints {
namespace {

constexpr std::size_t kMostInSlice = 100;

json::Value endpoint_of(const json::Value& pod, const json::Value& service) {
  const bool publish_all = json::bool_at(service, "spec", "publishNotReadyAddresses");
  const bool ready = is_ready(pod), going = is_deleting(pod);
  json::Object endpoint{{"addresses", json::Array{json::at(pod, "status", "podIP")}},
                        {"conditions",
                         json::Object{{"ready", publish_all || (ready && !going)},
                                      {"serving", ready},
                                      {"terminating", going}}}};
  const auto hostname = json::string_at(pod, "spec", "hostname");
  if (!hostname.empty() && json::string_at(pod, "spec", "subdomain") == name_of(service))
    endpoint["hostname"] = hostname;
  if (const auto& node = json::at(pod, "spec", "nodeName"); node.is_string())
    endpoint["nodeName"] = node;
  endpoint["targetRef"] = json::Object{{"kind", "Pod"},
                                       {"namespace", namespace_of(pod)},
                                       {"name", name_of(pod)},
                                       {"uid", uid_of(pod)}};
  return endpoint;
}

/// The same for the same service, ports and place in the row, so that a restart finds its own
/// slices again.
std::string slice_name(const json::Value& service, const json::Array& ports, std::size_t chunk) {
  const auto hash =
      template_hash(json::Array{uid_of(service), ports, static_cast<std::int64_t>(chunk)});
  return fmt::format("{}-{}", name_of(service), hash.substr(0, 5));
}

json::Value slice_labels(const json::Value& service) {
  json::Object labels = json::object_at(service, "metadata", "labels");
  labels[kube::names::kubernetes::kServiceName] = name_of(service);
  labels[kube::names::kubernetes::kSliceManager] = kube::names::kubernetes::kSliceController;
  if (json::string_at(service, "spec", "clusterIP") == "None")
    labels[kube::names::kubernetes::kHeadless] = "";
  return labels;
}

struct Group {
  json::Array ports, endpoints;
};

}  // namespace

Plan plan_slices(const json::Value& service, const Objects& pods, const Objects& found) {
  Plan plan;
  std::vector<Group> groups;
  for (const auto* pod : pods) {
    const auto phase = phase_of(*pod);
    if (json::string_at(*pod, "status", "podIP").empty() || phase == "Succeeded" ||
        phase == "Failed")
      continue;
    auto ports = ports_of(service, *pod);
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& each) {
      return json::equal(each.ports, ports);
    });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{std::move(ports), {}});
    group->endpoints.push_back(endpoint_of(*pod, service));
  }
  // A service without pods has one slice that says so.
  if (groups.empty()) groups.emplace_back();
  std::map<std::string, json::Value> wanted;
  const auto labels = slice_labels(service);
  for (const auto& group : groups) {
    const std::size_t chunks =
        std::max<std::size_t>(1, (group.endpoints.size() + kMostInSlice - 1) / kMostInSlice);
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      json::Array part;
      for (std::size_t i = chunk * kMostInSlice;
           i < std::min(group.endpoints.size(), (chunk + 1) * kMostInSlice);
           ++i)
        part.push_back(group.endpoints[i]);
      wanted[slice_name(service, group.ports, chunk)] = json::Object{
          {"addressType", "IPv4"}, {"endpoints", std::move(part)}, {"ports", group.ports}};
    }
  }
  for (const auto* slice : found) {
    const auto match = wanted.find(name_of(*slice));
    if (match == wanted.end()) {
      if (!is_deleting(*slice)) plan.actions.push_back(remove(kinds::kEndpointSlice, *slice));
      continue;
    }
    json::Object change;
    for (const std::string_view field : {"endpoints", "ports"}) {
      const auto& now = json::at(*slice, field);
      if (!json::equal(now, json::at(match->second, field)) &&
          !(json::is_empty(now) && json::is_empty(json::at(match->second, field))))
        change[field] = json::at(match->second, field);
    }
    if (!json::equal(json::at(*slice, "metadata", "labels"), labels))
      change["metadata"] =
          json::Object{{"labels", map_patch(json::at(*slice, "metadata", "labels"), labels)}};
    if (!change.empty())
      plan.actions.push_back(patch(kinds::kEndpointSlice, name_of(*slice), std::move(change)));
    wanted.erase(match);
  }
  for (auto& [name, body] : wanted) {
    // make_child needs to know what the service is; lists do not say it.
    json::Value owner = service;
    owner.as_object()["apiVersion"] = "v1";
    owner.as_object()["kind"] = "Service";
    auto slice =
        make_child(owner, kube::resources::kEndpointSlices.api_version(), "EndpointSlice", name);
    json::make_object(slice, {"metadata"})["generateName"] = name_of(service) + "-";
    json::make_object(slice, {"metadata"})["labels"] = labels;
    for (auto& [key, value] : body.as_object()) slice.as_object()[key] = std::move(value);
    plan.actions.push_back(create(kinds::kEndpointSlice, std::move(slice)));
  }
  return plan;
}

}  // namespace muster::controllers::endpoints
