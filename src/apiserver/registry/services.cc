#include "apiserver/registry/services.h"

#include <fmt/core.h>

#include "kube/kinds/validate.h"
#include "kube/meta.h"

namespace muster::apiserver {
namespace {

constexpr std::uint32_t kAddressCount = 65534;  // 10.96.0.1 … 10.96.255.254
constexpr std::int64_t kPortFirst = 30000, kPortLast = 32767;

std::string address_at(std::uint32_t index) {
  return fmt::format("10.96.{}.{}", index >> 8, index & 255);
}

bool is_service(const Resource& resource) { return resource.storage == "services"; }

}  // namespace

void Services::start() {
  for (const auto& [key, stored] : core_.image.collection("services").objects()) {
    for (const json::Value& address : json::array_at(stored->object, "spec", "clusterIPs"))
      addresses_.insert(json::text(address));
    for (const json::Value& port : json::array_at(stored->object, "spec", "ports")) {
      if (const std::int64_t number = json::int_at(port, "nodePort"); number > 0)
        ports_.insert(number);
    }
  }
}

Result<void> Services::allocate(const Resource& resource,
                                json::Value& object,
                                const json::Value& live) {
  if (!is_service(resource)) return {};
  if (live.is_object() && json::equal(json::at(object, "spec"), json::at(live, "spec"))) return {};
  // A copy: the spec grows below.
  const std::string type{json::as_string(json::at(object, "spec", "type"), "ClusterIP")};
  if (type == "ExternalName") return {};
  const auto addressed = allocate_address(resource, object, live);
  if (!addressed) return addressed;
  if (type == "NodePort" || type == "LoadBalancer") return allocate_ports(resource, object);
  json::remove(object, {"spec", "externalTrafficPolicy"});
  return {};
}

Result<void> Services::allocate_address(const Resource& resource,
                                        json::Value& object,
                                        const json::Value& live) {
  json::Object& spec = json::make_object(object, {"spec"});
  std::string wanted = json::text_at(object, "spec", "clusterIP");
  const std::string before = json::text_at(live, "spec", "clusterIP");
  if (wanted.empty() && !before.empty()) wanted = before;
  if (wanted.empty()) {
    for (std::uint32_t tried = 0; tried < kAddressCount; ++tried) {
      next_ = next_ % kAddressCount + 1;
      if (next_ == 1) continue;  // the kubernetes service's
      std::string candidate = address_at(next_);
      if (addresses_.insert(candidate).second) {
        wanted = std::move(candidate);
        break;
      }
    }
    if (wanted.empty())
      return fail(Code::kInternal, "failed to allocate a serviceIP: range is full");
  } else if (wanted != "None" && wanted != before && !wanted.starts_with("10.96.")) {
    Cause cause{
        "FieldValueInvalid",
        fmt::format(
            "Invalid value: [\"{}\"]: failed to allocate IP {}: the provided IP ({}) is not in the valid range. The range of valid IPs is 10.96.0.0/16",
            wanted,
            wanted,
            wanted),
        "spec.clusterIPs"};
    return fail(kube::invalid(resource.info.gvk(), kube::name_of(object), {std::move(cause)}));
  } else if (wanted != "None" && wanted != before && !addresses_.insert(wanted).second) {
    Cause cause{
        "FieldValueInvalid",
        fmt::format(
            "Invalid value: \"{}\": failed to allocate IP {}: provided IP is already allocated",
            wanted,
            wanted),
        "spec.clusterIPs"};
    return fail(kube::invalid(resource.info.gvk(), kube::name_of(object), {std::move(cause)}));
  }
  spec["clusterIP"] = wanted;
  spec["clusterIPs"] = json::Array{json::Value(wanted)};
  if (!spec.contains("ipFamilies")) spec["ipFamilies"] = json::Array{json::Value("IPv4")};
  if (!spec.contains("ipFamilyPolicy")) spec["ipFamilyPolicy"] = "SingleStack";
  if (!spec.contains("internalTrafficPolicy")) spec["internalTrafficPolicy"] = "Cluster";
  return {};
}

Result<void> Services::allocate_ports(const Resource& resource, json::Value& object) {
  json::Value& ports = json::make(object, {"spec", "ports"});
  if (!ports.is_array()) return {};
  for (json::Value& port : ports.get_array()) {
    if (!port.is_object()) continue;
    std::int64_t number = json::int_at(port, "nodePort");
    if (number > 0 && (number < kPortFirst || number > kPortLast)) {
      const std::string message = fmt::format(
          "Invalid value: {}: provided port is not in the valid range. The range of valid ports is {}-{}",
          number,
          kPortFirst,
          kPortLast);
      const auto index = static_cast<std::size_t>(&port - ports.get_array().data());
      return fail(kube::invalid(
          resource.info.gvk(),
          kube::name_of(object),
          {Cause{"FieldValueInvalid", message, fmt::format("spec.ports[{}].nodePort", index)}}));
    }
    if (number > 0) {
      ports_.insert(number);
      continue;
    }
    for (number = kPortFirst; number <= kPortLast && !ports_.insert(number).second; ++number) {
    }
    if (number <= kPortLast) port.get_object()["nodePort"] = number;
  }
  return {};
}

void Services::release(const Resource& resource, const json::Value& object) {
  if (!is_service(resource)) return;
  for (const json::Value& address : json::array_at(object, "spec", "clusterIPs"))
    addresses_.erase(json::text(address));
  for (const json::Value& port : json::array_at(object, "spec", "ports"))
    ports_.erase(json::int_at(port, "nodePort"));
}

}  // namespace muster::apiserver
