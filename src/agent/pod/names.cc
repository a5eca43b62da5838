#include "agent/pod/names.h"

#include <fmt/core.h>

#include "kube/meta.h"

namespace muster::agent {

std::string pod_hostname(const json::Value& pod) {
  auto name = json::text_at(pod, "spec", "hostname");
  if (name.empty()) name = std::string(kube::name_of(pod));
  if (name.size() > 63) {
    name.resize(63);
    while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  }
  return name;
}

std::string pod_fqdn(const json::Value& pod) {
  const auto subdomain = json::string_at(pod, "spec", "subdomain");
  if (subdomain.empty()) return "";
  return fmt::format(
      "{}.{}.{}.svc.cluster.local", pod_hostname(pod), subdomain, kube::namespace_of(pod));
}

std::string hosts_file(const json::Value& pod, const std::string& address) {
  std::string out =
      "# Kubernetes-managed hosts file.\n"
      "127.0.0.1\tlocalhost\n"
      "::1\tlocalhost ip6-localhost ip6-loopback\n"
      "fe00::0\tip6-localnet\n"
      "fe00::0\tip6-mcastprefix\n"
      "fe00::1\tip6-allnodes\n"
      "fe00::2\tip6-allrouters\n";
  const auto fqdn = pod_fqdn(pod);
  if (!address.empty())
    out += fmt::format("{}\t{}{}{}\n", address, fqdn, fqdn.empty() ? "" : "\t", pod_hostname(pod));
  const auto& aliases = json::array_at(pod, "spec", "hostAliases");
  if (!aliases.empty()) out += "\n# Entries added by HostAliases.\n";
  for (const auto& alias : aliases) {
    out += json::text_at(alias, "ip");
    for (const auto& name : json::array_at(alias, "hostnames")) out += "\t" + json::text(name);
    out += "\n";
  }
  return out;
}

}  // namespace muster::agent
