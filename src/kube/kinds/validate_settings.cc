/// Settings of pods and containers beside images, ports and volumes: handlers, security contexts,
/// DNS, host names, claims.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr std::string_view kAddressText =
    "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
constexpr std::size_t kNameserversMax = 3, kSearchesMax = 32;

void validate_handler_port(const Value& port, const std::string& field, Causes& causes) {
  if (port.is_string()) {
    for (const std::string& problem : port_name_problems(json::as_string(port)))
      causes.invalid(field, shown(port), problem);
  } else if (json::as_int(port) < 1 || json::as_int(port) > 65535) {
    causes.invalid(field,
                   json::dump(port.is_null() ? Value(0) : port),
                   "must be between 1 and 65535, inclusive");
  }
}

void validate_dns(const Value& spec, const std::string& field, Causes& causes) {
  const Value& config = json::at(spec, "dnsConfig");
  const json::Array& servers = json::array_at(config, "nameservers");
  if (json::string_at(spec, "dnsPolicy") == "None") {
    if (!config.is_object())
      causes.required(field + ".dnsConfig", "must provide `dnsConfig` when `dnsPolicy` is None");
    else if (servers.empty())
      causes.required(field + ".dnsConfig.nameservers",
                      "must provide at least one DNS nameserver when `dnsPolicy` is None");
  }
  if (servers.size() > kNameserversMax) {
    causes.invalid(field + ".dnsConfig.nameservers",
                   json::dump(json::at(config, "nameservers")),
                   fmt::format("must not have more than {} nameservers", kNameserversMax));
  }
  for (std::size_t i = 0; i < servers.size(); ++i) {
    if (!is_address(json::as_string(servers[i])))
      causes.invalid(
          fmt::format("{}.dnsConfig.nameservers[{}]", field, i), shown(servers[i]), kAddressText);
  }
  const json::Array& searches = json::array_at(config, "searches");
  if (searches.size() > kSearchesMax) {
    causes.invalid(field + ".dnsConfig.searches",
                   json::dump(json::at(config, "searches")),
                   fmt::format("must not have more than {} search paths", kSearchesMax));
  }
}

bool is_sysctl(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  const auto outer = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  char before = '.';
  for (const char c : name) {
    const bool separator = c == '.' || c == '/';
    if (!outer(c) && !separator && c != '-' && c != '_') return false;
    if (!outer(c) && (before == '.' || before == '/')) return false;
    if (separator && !outer(before)) return false;
    before = c;
  }
  return outer(before);
}

void validate_claims(const Value& spec, const std::string& field, Causes& causes) {
  const json::Array& claims = json::array_at(spec, "resourceClaims");
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const std::string here = fmt::format("{}.resourceClaims[{}]", field, i);
    const std::string_view name = json::string_at(claims[i], "name");
    if (name.empty())
      causes.required(here + ".name");
    else if (!names.insert(name).second)
      causes.duplicate(here + ".name", quoted(name));
    const bool own = !json::is_empty(json::at(claims[i], "resourceClaimName"));
    const bool made = !json::is_empty(json::at(claims[i], "resourceClaimTemplateName"));
    if (own && made)
      causes.invalid(
          here,
          json::dump(claims[i]),
          "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified");
    if (!own && !made)
      causes.invalid(here,
                     json::dump(claims[i]),
                     "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`");
  }
}

/// A profile is a file below the machine's folder of profiles, and of the type Localhost alone.
void validate_local_profile(const Value& seccomp, const std::string& field, Causes& causes) {
  const bool local = json::string_at(seccomp, "type") == "Localhost";
  const Value& profile = json::at(seccomp, "localhostProfile");
  if (!profile.is_string()) {
    if (local) causes.required(field, "must be set when seccomp type is Localhost");
    return;
  }
  const std::string_view path = json::as_string(profile);
  if (!local)
    return causes.invalid(field, quoted(path), "can only be set when seccomp type is Localhost");
  if (path.starts_with('/')) causes.invalid(field, quoted(path), "must be a relative path");
  for (const std::string& part : split(path, '/')) {
    if (part == "..") return causes.invalid(field, quoted(path), "must not contain '..'");
  }
}

}  // namespace

void validate_handler(const Value& handler, const std::string& field, bool probe, Causes& causes) {
  std::size_t handlers = 0;
  for (const std::string_view kind : {"exec", "httpGet", "tcpSocket", "grpc", "sleep"}) {
    if (!json::at(handler, kind).is_object() || (probe ? kind == "sleep" : kind == "grpc"))
      continue;
    if (handlers++ > 0)
      causes.forbidden(fmt::format("{}.{}", field, kind),
                       "may not specify more than 1 handler type");
  }
  if (handlers == 0) causes.required(field, "must specify a handler type");
  const Value& exec = json::at(handler, "exec");
  if (exec.is_object() && json::array_at(exec, "command").empty())
    causes.required(field + ".exec.command");
  const Value& get = json::at(handler, "httpGet");
  if (get.is_object()) {
    validate_handler_port(json::at(get, "port"), field + ".httpGet.port", causes);
    validate_enum(
        json::at(get, "scheme"), field + ".httpGet.scheme", {"HTTP", "HTTPS"}, causes, false);
  }
  const Value& tcp = json::at(handler, "tcpSocket");
  if (tcp.is_object())
    validate_handler_port(json::at(tcp, "port"), field + ".tcpSocket.port", causes);
}

void validate_security_context(const Value& context,
                               const std::string& field,
                               bool container,
                               Causes& causes) {
  if (!context.is_object()) return;
  for (const std::string_view key : {"runAsUser", "runAsGroup", "fsGroup"}) {
    const Value& id = json::at(context, key);
    if (!id.is_null()) validate_range(id, fmt::format("{}.{}", field, key), 0, 2147483647, causes);
  }
  const json::Array& groups = json::array_at(context, "supplementalGroups");
  for (std::size_t i = 0; i < groups.size(); ++i)
    validate_range(
        groups[i], fmt::format("{}.supplementalGroups[{}]", field, i), 0, 2147483647, causes);
  const json::Array& sysctls = json::array_at(context, "sysctls");
  for (std::size_t i = 0; i < sysctls.size(); ++i) {
    const std::string_view name = json::string_at(sysctls[i], "name");
    const std::string here = fmt::format("{}.sysctls[{}].name", field, i);
    if (name.empty())
      causes.required(here);
    else if (!is_sysctl(name)) {
      causes.invalid(
          here,
          quoted(name),
          "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
    }
  }
  const Value& seccomp = json::at(context, "seccompProfile");
  if (seccomp.is_object()) {
    validate_enum(json::at(seccomp, "type"),
                  field + ".seccompProfile.type",
                  {"Localhost", "RuntimeDefault", "Unconfined"},
                  causes);
    validate_local_profile(seccomp, field + ".seccompProfile.localhostProfile", causes);
  }
  const Value& escalation = json::at(context, "allowPrivilegeEscalation");
  if (container && json::bool_at(context, "privileged") && escalation.is_bool() &&
      !escalation.get_bool()) {
    causes.invalid(field,
                   json::dump(context),
                   "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
  }
}

/// What a pod shares with the host is not the pod's to set.
void validate_host_sysctls(const Value& spec, const std::string& field, Causes& causes) {
  const bool ipc = json::bool_at(spec, "hostIPC"), network = json::bool_at(spec, "hostNetwork");
  if (!ipc && !network) return;
  const json::Array& sysctls = json::array_at(spec, "securityContext", "sysctls");
  for (std::size_t i = 0; i < sysctls.size(); ++i) {
    const std::string name = replace_all(json::string_at(sysctls[i], "name"), "/", ".");
    const bool of_ipc = name == "kernel.sem" || name.starts_with("kernel.shm") ||
                        name.starts_with("kernel.msg") || name.starts_with("fs.mqueue.");
    const std::string_view shared = ipc && of_ipc                         ? "hostIPC"
                                    : network && name.starts_with("net.") ? "hostNetwork"
                                                                          : "";
    if (shared.empty()) continue;
    causes.invalid(fmt::format("{}.securityContext.sysctls[{}].name", field, i),
                   quoted(json::string_at(sysctls[i], "name")),
                   fmt::format("may not be specified when '{}' is true", shared));
  }
}

/// Only a pod with users of its own may see all of /proc.
void validate_proc_mounts(const Value& spec, const std::string& field, Causes& causes) {
  const Value& host_users = json::at(spec, "hostUsers");
  if (host_users.is_bool() && !host_users.get_bool()) return;
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    const json::Array& containers = json::array_at(spec, list);
    for (std::size_t i = 0; i < containers.size(); ++i) {
      if (json::string_at(containers[i], "securityContext", "procMount") != "Unmasked") continue;
      causes.invalid(fmt::format("{}.{}[{}].securityContext.procMount", field, list, i),
                     quoted("Unmasked"),
                     "`hostUsers` must be false to use `Unmasked`");
    }
  }
}

void validate_pod_settings(const Value& spec, const std::string& field, Causes& causes) {
  validate_proc_mounts(spec, field, causes);
  validate_host_sysctls(spec, field, causes);
  validate_security_context(
      json::at(spec, "securityContext"), field + ".securityContext", false, causes);
  if (json::bool_at(spec, "shareProcessNamespace") && json::bool_at(spec, "hostPID")) {
    causes.invalid(field + ".shareProcessNamespace",
                   "true",
                   "ShareProcessNamespace and HostPID cannot both be enabled");
  }
  validate_dns(spec, field, causes);
  const json::Array& aliases = json::array_at(spec, "hostAliases");
  for (std::size_t i = 0; i < aliases.size(); ++i) {
    const std::string_view address = json::string_at(aliases[i], "ip");
    if (!is_address(address))
      causes.invalid(fmt::format("{}.hostAliases[{}].ip", field, i), quoted(address), kAddressText);
  }
  validate_enum(json::at(spec, "os", "name"), field + ".os", {"linux", "windows"}, causes, false);
  const json::Array& gates = json::array_at(spec, "readinessGates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::string_view type = json::string_at(gates[i], "conditionType");
    for (const std::string& problem : qualified_name_problems(type))
      causes.invalid(
          fmt::format("{}.readinessGates[{}].conditionType", field, i), quoted(type), problem);
  }
  validate_claims(spec, field, causes);
  for (const std::string_view list : {"requests", "limits"}) {
    for (const auto& member : json::object_at(spec, "resources", list)) {
      const std::string_view name = member.key();
      if (name == "cpu" || name == "memory" || name.starts_with("hugepages-")) continue;
      causes.not_supported(fmt::format("{}.resources.{}[{}]", field, list, name),
                           name,
                           {"cpu", "hugepages-", "memory"});
    }
  }
}

}  // namespace muster::kube
