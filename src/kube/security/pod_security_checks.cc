/// The single rules of the standards, one function each, in the order in which Kubernetes reports
/// them: those of baseline by name, then those of restricted by name.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>

#include "base/strings.h"
#include "kube/names.h"
#include "kube/security/pod_security.h"

namespace muster::kube {
namespace {

using json::Value;
using Names = std::vector<std::string>;
using NameSet = std::set<std::string>;

struct Pod {
  const Value& metadata;
  const Value& spec;
  int minor;

  [[nodiscard]] const Value& context() const { return json::at(spec, "securityContext"); }
  [[nodiscard]] bool windows() const { return json::string_at(spec, "os", "name") == "windows"; }
  /// Has users of its own, so that its root is nobody outside.
  [[nodiscard]] bool own_users() const {
    const Value& host_users = json::at(spec, "hostUsers");
    return host_users.is_bool() && !host_users.get_bool();
  }
  void each_container(const std::function<void(const Value& container)>& visit) const {
    for (const std::string_view list : {"initContainers", "containers", "ephemeralContainers"}) {
      for (const Value& container : json::array_at(spec, list)) visit(container);
    }
  }
  /// The names of the containers for which `bad` holds.
  [[nodiscard]] Names containers(
      const std::function<bool(const Value& container, const Value& context)>& bad) const {
    Names names;
    each_container([&](const Value& container) {
      if (bad(container, json::at(container, "securityContext")))
        names.push_back(json::text_at(container, "name"));
    });
    return names;
  }
};

Names list_of(const NameSet& names) { return Names(names.begin(), names.end()); }

std::string quotes(const Names& names) { return "\"" + join(names, "\", \"") + "\""; }

std::string_view one_or_many(std::string_view one, std::string_view many, std::size_t count) {
  return count == 1 ? one : many;
}

/// `container "a"`, `containers "a", "b"`.
std::string these(std::string_view what, const Names& names) {
  return fmt::format("{}{} {}", what, names.size() == 1 ? "" : "s", quotes(names));
}

/// `pod and containers "a", "b"`.
std::string setters(bool pod, const Names& containers) {
  Names parts;
  if (pod) parts.emplace_back("pod");
  if (!containers.empty()) parts.push_back(these("container", containers));
  return join(parts, " and ");
}

using Found = std::optional<Violation>;

/// A value of the pod's and of the containers' security context that only some may have.
struct Setting {
  bool pod = false;
  Names containers;
  NameSet values;
  [[nodiscard]] bool any() const { return pod || !containers.empty(); }
};

Setting bad_types(const Pod& pod,
                  std::string_view member,
                  const std::function<bool(std::string_view type)>& good) {
  Setting found;
  const auto look = [&](const Value& context) {
    const Value& given = json::at(context, member);
    if (!given.is_object()) return false;
    const std::string type = json::text_at(given, "type");
    if (good(type)) return false;
    found.values.insert(type);
    return true;
  };
  found.pod = look(pod.context());
  found.containers =
      pod.containers([&](const Value&, const Value& context) { return look(context); });
  return found;
}

Found app_armor(const Pod& pod) {
  const Setting found = bad_types(pod, "appArmorProfile", [](std::string_view type) {
    return type == "RuntimeDefault" || type == "Localhost";
  });
  Names who, annotations;
  if (found.any()) who.push_back(setters(found.pod, found.containers));
  for (const auto& member : json::object_at(pod.metadata, "annotations")) {
    const std::string_view value = json::as_string(member.value());
    if (std::string_view(member.key()).starts_with(names::kubernetes::kAppArmorPrefix) &&
        !value.empty() && value != "runtime/default" && !value.starts_with("localhost/"))
      annotations.push_back(fmt::format("{}={}", std::string_view(member.key()), quoted(value)));
  }
  std::sort(annotations.begin(), annotations.end());
  Names values = list_of(found.values);
  values.insert(values.end(), annotations.begin(), annotations.end());
  if (!annotations.empty())
    who.emplace_back(one_or_many("annotation", "annotations", annotations.size()));
  if (who.empty()) return std::nullopt;
  return Violation{
      std::string(
          one_or_many("forbidden AppArmor profile", "forbidden AppArmor profiles", values.size())),
      fmt::format(
          "{} must not set AppArmor profile type to {}", join(who, " and "), quotes(values))};
}

Found capabilities_baseline(const Pod& pod) {
  static const NameSet kAllowed = {"AUDIT_WRITE",
                                   "CHOWN",
                                   "DAC_OVERRIDE",
                                   "FOWNER",
                                   "FSETID",
                                   "KILL",
                                   "MKNOD",
                                   "NET_BIND_SERVICE",
                                   "SETFCAP",
                                   "SETGID",
                                   "SETPCAP",
                                   "SETUID",
                                   "SYS_CHROOT"};
  NameSet added;
  const Names bad = pod.containers([&](const Value&, const Value& context) {
    bool any = false;
    for (const Value& each : json::array_at(context, "capabilities", "add")) {
      if (kAllowed.contains(json::text(each))) continue;
      added.insert(json::text(each));
      any = true;
    }
    return any;
  });
  if (bad.empty()) return std::nullopt;
  return Violation{"non-default capabilities",
                   fmt::format("{} must not include {} in securityContext.capabilities.add",
                               these("container", bad),
                               quotes(list_of(added)))};
}

Found host_namespaces(const Pod& pod) {
  Names shared;
  for (const std::string_view key : {"hostNetwork", "hostPID", "hostIPC"}) {
    if (json::bool_at(pod.spec, key)) shared.push_back(std::string(key) + "=true");
  }
  if (shared.empty()) return std::nullopt;
  return Violation{"host namespaces", join(shared, ", ")};
}

/// Not of the standard, which knows no runtime that gives pods users of their own unless they ask
/// for the machine's.
Found host_users(const Pod& pod) {
  if (!json::bool_at(pod.spec, "hostUsers")) return std::nullopt;
  return Violation{"host users", "hostUsers=true"};
}

Found host_paths(const Pod& pod) {
  Names volumes;
  for (const Value& volume : json::array_at(pod.spec, "volumes")) {
    if (json::at(volume, "hostPath").is_object()) volumes.push_back(json::text_at(volume, "name"));
  }
  if (volumes.empty()) return std::nullopt;
  return Violation{"hostPath volumes", these("volume", volumes)};
}

Found host_ports(const Pod& pod) {
  NameSet ports;
  const Names bad = pod.containers([&](const Value& container, const Value&) {
    bool any = false;
    for (const Value& port : json::array_at(container, "ports")) {
      const std::int64_t number = json::int_at(port, "hostPort");
      if (number == 0) continue;
      ports.insert(std::to_string(number));
      any = true;
    }
    return any;
  });
  if (bad.empty()) return std::nullopt;
  return Violation{"hostPort",
                   fmt::format("{} {} {} {}",
                               these("container", bad),
                               one_or_many("uses", "use", bad.size()),
                               one_or_many("hostPort", "hostPorts", ports.size()),
                               join(list_of(ports), ", "))};
}

Found handler_hosts(const Pod& pod) {
  NameSet bad, hosts;
  pod.each_container([&](const Value& container) {
    const auto look = [&](const Value& handler) {
      for (const std::string_view way : {"httpGet", "tcpSocket"}) {
        const std::string host = json::text_at(handler, way, "host");
        if (host.empty()) continue;
        hosts.insert(host);
        bad.insert(json::text_at(container, "name"));
      }
    };
    for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"})
      look(json::at(container, probe));
    for (const std::string_view hook : {"postStart", "preStop"})
      look(json::at(container, "lifecycle", hook));
  });
  if (bad.empty()) return std::nullopt;
  return Violation{
      "probe or lifecycle host",
      fmt::format("{} {} {} {}",
                  these("container", list_of(bad)),
                  one_or_many("uses", "use", bad.size()),
                  one_or_many("probe or lifecycle host", "probe or lifecycle hosts", hosts.size()),
                  quotes(list_of(hosts)))};
}

Found privileged(const Pod& pod) {
  const Names bad = pod.containers(
      [](const Value&, const Value& context) { return json::bool_at(context, "privileged"); });
  if (bad.empty()) return std::nullopt;
  return Violation{
      "privileged",
      fmt::format("{} must not set securityContext.privileged=true", these("container", bad))};
}

Found proc_mount_always(const Pod& pod) {
  NameSet values;
  const Names bad = pod.containers([&](const Value&, const Value& context) {
    const Value& given = json::at(context, "procMount");
    if (given.is_null() || json::as_string(given) == "Default") return false;
    values.insert(json::text(given));
    return true;
  });
  if (bad.empty()) return std::nullopt;
  return Violation{"procMount",
                   fmt::format("{} must not set securityContext.procMount to {}",
                               these("container", bad),
                               quotes(list_of(values)))};
}

Found proc_mount(const Pod& pod) {
  return pod.minor >= 35 && pod.own_users() ? std::nullopt : proc_mount_always(pod);
}

Found se_linux(const Pod& pod) {
  NameSet types;
  bool user = false, role = false;
  const auto look = [&](const Value& context) {
    const Value& options = json::at(context, "seLinuxOptions");
    if (!options.is_object()) return false;
    const std::string type = json::text_at(options, "type");
    const bool good = type.empty() || type == "container_t" || type == "container_init_t" ||
                      type == "container_kvm_t" ||
                      (pod.minor >= 31 && type == "container_engine_t");
    if (!good) types.insert(type);
    const bool has_user = !json::string_at(options, "user").empty();
    const bool has_role = !json::string_at(options, "role").empty();
    user = user || has_user;
    role = role || has_role;
    return !good || has_user || has_role;
  };
  const bool of_pod = look(pod.context());
  const Names containers =
      pod.containers([&](const Value&, const Value& context) { return look(context); });
  if (!of_pod && containers.empty()) return std::nullopt;
  Names what;
  if (!types.empty()) what.push_back(these("type", list_of(types)));
  if (user) what.emplace_back("user may not be set");
  if (role) what.emplace_back("role may not be set");
  return Violation{"seLinuxOptions",
                   fmt::format("{} set forbidden securityContext.seLinuxOptions: {}",
                               setters(of_pod, containers),
                               join(what, "; "))};
}

Found seccomp_annotations(const Pod& pod) {
  NameSet forbidden;
  const auto look = [&](const std::string& key) {
    const Value& given = json::at(pod.metadata, "annotations", key);
    const std::string_view value = json::as_string(given);
    if (given.is_null() || value == "runtime/default" || value == "docker/default" ||
        value.starts_with("localhost/"))
      return;
    forbidden.insert(fmt::format("{}={}", key, quoted(value)));
  };
  look(std::string(names::kubernetes::kPodSeccomp));
  pod.each_container([&](const Value& container) {
    look(std::string(names::kubernetes::kSeccompPrefix) + json::text_at(container, "name"));
  });
  if (forbidden.empty()) return std::nullopt;
  return Violation{"seccompProfile",
                   fmt::format("forbidden {} {}",
                               one_or_many("annotation", "annotations", forbidden.size()),
                               join(list_of(forbidden), ", "))};
}

bool good_seccomp(std::string_view type) { return type == "RuntimeDefault" || type == "Localhost"; }

Found seccomp_baseline(const Pod& pod) {
  if (pod.minor < 19) return seccomp_annotations(pod);
  const Setting found = bad_types(pod, "seccompProfile", good_seccomp);
  if (!found.any()) return std::nullopt;
  return Violation{"seccompProfile",
                   fmt::format("{} must not set securityContext.seccompProfile.type to {}",
                               setters(found.pod, found.containers),
                               quotes(list_of(found.values)))};
}

Found sysctls(const Pod& pod) {
  static const std::vector<std::pair<std::string_view, int>> kSince = {
      {"kernel.shm_rmid_forced", 0},
      {"net.ipv4.ip_local_port_range", 0},
      {"net.ipv4.tcp_syncookies", 0},
      {"net.ipv4.ping_group_range", 0},
      {"net.ipv4.ip_unprivileged_port_start", 0},
      {"net.ipv4.ip_local_reserved_ports", 27},
      {"net.ipv4.tcp_keepalive_time", 29},
      {"net.ipv4.tcp_fin_timeout", 29},
      {"net.ipv4.tcp_keepalive_intvl", 29},
      {"net.ipv4.tcp_keepalive_probes", 29},
      {"net.ipv4.tcp_rmem", 32},
      {"net.ipv4.tcp_wmem", 32},
      {"net.ipv4.tcp_slow_start_after_idle", 37},
      {"net.ipv4.tcp_notsent_lowat", 37}};
  Names bad;
  for (const Value& each : json::array_at(pod.context(), "sysctls")) {
    const std::string_view name = json::string_at(each, "name");
    const bool allowed = std::any_of(kSince.begin(), kSince.end(), [&](const auto& known) {
      return known.first == name && pod.minor >= known.second;
    });
    if (!allowed) bad.emplace_back(name);
  }
  if (bad.empty()) return std::nullopt;
  return Violation{"forbidden sysctls", join(bad, ", ")};
}

Found host_process(const Pod& pod) {
  const auto set = [](const Value& context) {
    return json::bool_at(context, "windowsOptions", "hostProcess");
  };
  const bool of_pod = set(pod.context());
  const Names containers =
      pod.containers([&](const Value&, const Value& context) { return set(context); });
  if (!of_pod && containers.empty()) return std::nullopt;
  return Violation{"hostProcess",
                   fmt::format("{} must not set securityContext.windowsOptions.hostProcess=true",
                               setters(of_pod, containers))};
}

Found privilege_escalation(const Pod& pod) {
  if (pod.minor < 8 || (pod.minor >= 25 && pod.windows())) return std::nullopt;
  const Names bad = pod.containers([](const Value&, const Value& context) {
    const Value& given = json::at(context, "allowPrivilegeEscalation");
    return !given.is_bool() || given.get_bool();
  });
  if (bad.empty()) return std::nullopt;
  return Violation{"allowPrivilegeEscalation != false",
                   fmt::format("{} must set securityContext.allowPrivilegeEscalation=false",
                               these("container", bad))};
}

Found capabilities_restricted(const Pod& pod) {
  if (pod.minor >= 25 && pod.windows()) return std::nullopt;
  NameSet added;
  const Names keep = pod.containers([](const Value&, const Value& context) {
    const json::Array& dropped = json::array_at(context, "capabilities", "drop");
    return std::none_of(dropped.begin(), dropped.end(), [](const Value& each) {
      return json::as_string(each) == "ALL";
    });
  });
  const Names add = pod.containers([&](const Value&, const Value& context) {
    bool any = false;
    for (const Value& each : json::array_at(context, "capabilities", "add")) {
      if (json::as_string(each) == "NET_BIND_SERVICE") continue;
      added.insert(json::text(each));
      any = true;
    }
    return any;
  });
  Names details;
  if (!keep.empty())
    details.push_back(fmt::format(R"({} must set securityContext.capabilities.drop=["ALL"])",
                                  these("container", keep)));
  if (!add.empty())
    details.push_back(fmt::format("{} must not include {} in securityContext.capabilities.add",
                                  these("container", add),
                                  quotes(list_of(added))));
  if (details.empty()) return std::nullopt;
  return Violation{"unrestricted capabilities", join(details, "; ")};
}

Found restricted_volumes(const Pod& pod) {
  static constexpr std::string_view kAllowed[] = {"configMap",
                                                  "csi",
                                                  "downwardAPI",
                                                  "emptyDir",
                                                  "ephemeral",
                                                  "image",
                                                  "persistentVolumeClaim",
                                                  "projected",
                                                  "secret"};
  static constexpr std::string_view kKnown[] = {"hostPath",
                                                "gcePersistentDisk",
                                                "awsElasticBlockStore",
                                                "gitRepo",
                                                "nfs",
                                                "iscsi",
                                                "glusterfs",
                                                "rbd",
                                                "flexVolume",
                                                "cinder",
                                                "cephfs",
                                                "flocker",
                                                "fc",
                                                "azureFile",
                                                "vsphereVolume",
                                                "quobyte",
                                                "azureDisk",
                                                "photonPersistentDisk",
                                                "portworxVolume",
                                                "scaleIO",
                                                "storageos"};
  Names bad;
  NameSet types;
  for (const Value& volume : json::array_at(pod.spec, "volumes")) {
    const auto is = [&](std::string_view type) { return json::at(volume, type).is_object(); };
    if (std::any_of(std::begin(kAllowed), std::end(kAllowed), is)) continue;
    bad.push_back(json::text_at(volume, "name"));
    const auto* type = std::find_if(std::begin(kKnown), std::end(kKnown), is);
    types.insert(type == std::end(kKnown) ? "unknown" : std::string(*type));
  }
  if (bad.empty()) return std::nullopt;
  return Violation{
      "restricted volume types",
      fmt::format("{} {} {} {}",
                  these("volume", bad),
                  one_or_many("uses", "use", bad.size()),
                  one_or_many("restricted volume type", "restricted volume types", types.size()),
                  quotes(list_of(types)))};
}

Found run_as_non_root(const Pod& pod) {
  if (pod.minor >= 35 && pod.own_users()) return std::nullopt;
  const Value& of_pod = json::at(pod.context(), "runAsNonRoot");
  const bool refused = of_pod.is_bool() && !of_pod.get_bool();
  const bool promised = of_pod.is_bool() && of_pod.get_bool();
  const Names against = pod.containers([](const Value&, const Value& context) {
    const Value& given = json::at(context, "runAsNonRoot");
    return given.is_bool() && !given.get_bool();
  });
  if (refused || !against.empty()) {
    return Violation{"runAsNonRoot != true",
                     fmt::format("{} must not set securityContext.runAsNonRoot=false",
                                 setters(refused, against))};
  }
  const Names silent = pod.containers([&](const Value&, const Value& context) {
    return !promised && !json::at(context, "runAsNonRoot").is_bool();
  });
  if (silent.empty()) return std::nullopt;
  return Violation{"runAsNonRoot != true",
                   fmt::format("pod or {} must set securityContext.runAsNonRoot=true",
                               these("container", silent))};
}

Found run_as_user(const Pod& pod) {
  if (pod.minor < 23 || (pod.minor >= 35 && pod.own_users())) return std::nullopt;
  const auto root = [](const Value& context) {
    const Value& user = json::at(context, "runAsUser");
    return user.is_number() && json::as_int(user) == 0;
  };
  const bool of_pod = root(pod.context());
  const Names containers =
      pod.containers([&](const Value&, const Value& context) { return root(context); });
  if (!of_pod && containers.empty()) return std::nullopt;
  return Violation{"runAsUser=0",
                   fmt::format("{} must not set runAsUser=0", setters(of_pod, containers))};
}

Found seccomp_restricted(const Pod& pod) {
  if (pod.minor >= 25 && pod.windows()) return std::nullopt;
  if (auto bad = seccomp_baseline(pod)) return bad;
  const bool of_pod = json::at(pod.context(), "seccompProfile").is_object();
  const Names silent = pod.containers([&](const Value&, const Value& context) {
    return !of_pod && !json::at(context, "seccompProfile").is_object();
  });
  if (silent.empty()) return std::nullopt;
  return Violation{
      "seccompProfile",
      fmt::format(
          R"(pod or {} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")",
          these("container", silent))};
}

/// `until`: the minor version from which a restricted rule stands in for this one at that level;
/// `since`: the first that has the rule.
struct Rule {
  SecurityLevel level;
  Found (*check)(const Pod& pod);
  int since = 0;
  int replaced_since = LevelVersion::kLatest + 1;
};

}  // namespace

std::vector<Violation> security_violations(const LevelVersion& level,
                                           const json::Value& metadata,
                                           const json::Value& spec) {
  constexpr auto kBaseline = SecurityLevel::kBaseline;
  constexpr auto kRestricted = SecurityLevel::kRestricted;
  static const Rule kRules[] = {{kBaseline, app_armor},
                                {kBaseline, capabilities_baseline, 0, 22},
                                {kBaseline, host_namespaces},
                                {kBaseline, host_paths, 0, 0},
                                {kBaseline, host_ports},
                                {kBaseline, host_users},
                                {kBaseline, handler_hosts, 34},
                                {kBaseline, privileged},
                                {kBaseline, proc_mount, 0, 35},
                                {kBaseline, se_linux},
                                {kBaseline, seccomp_baseline, 0, 19},
                                {kBaseline, sysctls},
                                {kBaseline, host_process},
                                {kRestricted, privilege_escalation, 8},
                                {kRestricted, capabilities_restricted, 22},
                                {kRestricted, proc_mount_always, 35},
                                {kRestricted, restricted_volumes},
                                {kRestricted, run_as_non_root},
                                {kRestricted, run_as_user, 23},
                                {kRestricted, seccomp_restricted, 19}};
  std::vector<Violation> violations;
  if (level.privileged()) return violations;
  const Pod pod{metadata, spec, level.minor};
  for (const Rule& rule : kRules) {
    if (rule.level > level.level || level.minor < rule.since) continue;
    if (level.level == kRestricted && level.minor >= rule.replaced_since) continue;
    if (auto found = rule.check(pod)) violations.push_back(std::move(*found));
  }
  return violations;
}

}  // namespace muster::kube
