#include "agent/network/services.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"

namespace muster::agent {
namespace {

using json::at;
using json::text;
/// What changes together is applied once.
constexpr Duration kSettle = std::chrono::milliseconds(50);

std::string env_name(std::string_view name) {
  std::string out = replace_all(std::string(name), "-", "_");
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) {
    return static_cast<char>(std::toupper(c));
  });
  return out;
}

bool has_address(const json::Value& service) {
  const auto address = json::string_at(service, "spec", "clusterIP");
  return !address.empty() && address != "None";
}

}  // namespace

std::vector<VirtualPort> virtual_ports(const json::Value& service, const json::Value& endpoints) {
  std::vector<VirtualPort> out;
  if (!has_address(service)) return out;
  for (const auto& port : json::array_at(service, "spec", "ports")) {
    VirtualPort one;
    one.address = text(at(service, "spec", "clusterIP"));
    one.port = static_cast<int>(json::int_at(port, "port"));
    one.protocol = std::string(json::as_string(at(port, "protocol"), "TCP"));
    const auto name = json::string_at(port, "name");
    for (const auto& subset : json::array_at(endpoints, "subsets")) {
      for (const auto& target : json::array_at(subset, "ports")) {
        if (json::string_at(target, "name") != name ||
            json::as_string(at(target, "protocol"), "TCP") != one.protocol)
          continue;
        for (const auto& address : json::array_at(subset, "addresses"))
          one.targets.push_back(
              {text(at(address, "ip")), static_cast<int>(json::int_at(target, "port"))});
      }
    }
    std::sort(one.targets.begin(), one.targets.end());
    out.push_back(std::move(one));
  }
  return out;
}

EnvList service_env(Context& context, const json::Value& pod) {
  EnvList out;
  if (!json::as_bool(at(pod, "spec", "enableServiceLinks"), true)) return out;
  const auto ns = kube::namespace_of(pod);
  for (const auto& [key, service] : context.informers.get(client::resources::kServices).objects()) {
    if (kube::namespace_of(*service) != ns || !has_address(*service)) continue;
    if (ns == "default" && kube::name_of(*service) == "kubernetes") continue;  // every pod has it
    const auto& ports = json::array_at(*service, "spec", "ports");
    if (ports.empty()) continue;
    const auto prefix = env_name(kube::name_of(*service));
    out.emplace_back(prefix + "_SERVICE_HOST", text(at(*service, "spec", "clusterIP")));
    out.emplace_back(prefix + "_SERVICE_PORT", std::to_string(json::int_at(ports.front(), "port")));
    for (const auto& port : ports) {
      const auto name = json::string_at(port, "name");
      if (!name.empty())
        out.emplace_back(fmt::format("{}_SERVICE_PORT_{}", prefix, env_name(name)),
                         std::to_string(json::int_at(port, "port")));
    }
  }
  return out;
}

Services::Services(Context& context, std::string api_address, int api_port)
    : context_(context), api_address_(std::move(api_address)), api_port_(api_port) {}

void Services::changed() {
  stale_ = true;
  if (std::exchange(applying_, true)) return;
  context_.loop.spawn(apply(alive_));
}

std::vector<VirtualPort> Services::wanted() const {
  std::vector<VirtualPort> out;
  const auto& endpoints = context_.informers.get(client::resources::kEndpoints);
  for (const auto& [key, service] :
       context_.informers.get(client::resources::kServices).objects()) {
    if (key == "default/kubernetes") {
      auto ports = virtual_ports(*service, json::null_value());
      for (auto& port : ports) {
        if (!api_address_.empty()) port.targets = {{api_address_, api_port_}};
        out.push_back(std::move(port));
      }
      continue;
    }
    const auto found = endpoints.find(key);
    auto ports = virtual_ports(*service, found ? *found : json::null_value());
    out.insert(out.end(), ports.begin(), ports.end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

Task<void> Services::apply(std::shared_ptr<bool> alive) {
  while (*alive && stale_) {
    co_await context_.loop.sleep(kSettle);
    if (!*alive) co_return;
    stale_ = false;
    auto ports = wanted();
    if (ports == applied_) continue;
    const auto told = co_await context_.runtime.set_virtual_ports(ports);
    if (!*alive) co_return;
    if (!told) log::warn("agent", "addresses of services: {}", told.error().message);
    applied_ = std::move(ports);
  }
  applying_ = false;
}

}  // namespace muster::agent
