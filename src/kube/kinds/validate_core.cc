#include <fmt/core.h>

#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/names.h"

namespace muster::kube {
namespace {

using json::Value;

constexpr std::size_t kDataBytesMax = 1024 * 1024;

/// Sizes and keys of data and binaryData together, as ConfigMap and Secret have them.
void validate_data(const Value& object,
                   const std::vector<std::string_view>& members,
                   bool base64,
                   Causes& causes) {
  std::size_t total = 0;
  for (const std::string_view member : members) {
    for (const auto& entry : json::object_at(object, member)) {
      const std::string_view key = entry.key();
      causes.check(fmt::format("{}[{}]", member, key), key, check_config_key(key));
      const std::size_t size = json::as_string(entry.value()).size();
      total += base64 || member == "binaryData" ? size / 4 * 3 : size;
    }
  }
  if (total > kDataBytesMax) causes.too_long(base64 ? "data" : "[]", kDataBytesMax);
}

void immutable_data(const Value& now,
                    const Value& before,
                    const std::vector<std::string_view>& members,
                    Causes& causes) {
  if (!json::bool_at(before, "immutable")) return;
  if (!json::bool_at(now, "immutable"))
    causes.forbidden("immutable", "field is immutable when `immutable` is set");
  for (const std::string_view member : members) {
    const Value& value = json::at(now, member);
    const Value& old = json::at(before, member);
    if (!json::equal(value, old) && !(json::is_empty(value) && json::is_empty(old))) {
      causes.forbidden(std::string(member), "field is immutable when `immutable` is set");
    }
  }
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

}  // namespace

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

void validate_config_map(const Value& map, const Value* live, Causes& causes) {
  validate_data(map, {"data", "binaryData"}, false, causes);
  for (const auto& entry : json::object_at(map, "binaryData")) {
    if (json::object_at(map, "data").contains(entry.key())) {
      causes.invalid(fmt::format("data[{}]", std::string_view(entry.key())),
                     quoted(std::string_view(entry.key())),
                     "duplicate of key present in binaryData");
    }
  }
  if (live != nullptr) immutable_data(map, *live, {"data", "binaryData"}, causes);
}

void validate_secret(const Value& secret, const Value* live, Causes& causes) {
  validate_data(secret, {"data"}, true, causes);
  const std::string_view type = json::string_at(secret, "type");
  const Value& data = json::at(secret, "data");
  const auto need = [&](std::string_view key) {
    if (json::at(data, key).is_null()) causes.required(fmt::format("data[{}]", key));
  };
  if (type == names::kubernetes::kTls) {
    need("tls.crt");
    need("tls.key");
  } else if (type == names::kubernetes::kSshAuth) {
    need("ssh-privatekey");
  } else if (type == names::kubernetes::kDockerConfigJson) {
    need(".dockerconfigjson");
    const auto config = base64_decode(json::string_at(data, ".dockerconfigjson"));
    if (config && !json::at(data, ".dockerconfigjson").is_null() && !json::parse(*config)) {
      const std::string found =
          config->empty() ? "unexpected end of JSON input"
                          : fmt::format("invalid character '{}' looking for beginning of value",
                                        config->front());
      causes.invalid("data[.dockerconfigjson]", "\"<secret contents redacted>\"", found);
    }
  } else if (type == names::kubernetes::kServiceAccountToken) {
    if (annotation(secret, names::kubernetes::kServiceAccountName).empty())
      causes.required(
          fmt::format("metadata.annotations[{}]", names::kubernetes::kServiceAccountName));
  } else if (type == names::kubernetes::kBasicAuth) {
    if (json::at(data, "username").is_null() && json::at(data, "password").is_null()) {
      causes.required("data[username]");
      causes.required("data[password]");
    }
  }
  if (live != nullptr) {
    immutable(json::at(secret, "type"), json::at(*live, "type"), "type", causes);
    immutable_data(secret, *live, {"data"}, causes);
  }
}

void validate_taints(const Value& taints, const std::string& field, Causes& causes) {
  std::set<std::string> seen;
  const json::Array& list = json::as_array(taints);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = fmt::format("{}[{}]", field, i);
    const std::string_view key = json::string_at(list[i], "key");
    const std::string_view value = json::string_at(list[i], "value");
    const std::string_view effect = json::string_at(list[i], "effect");
    if (!check_label_key(key).empty()) {
      for (const std::string& problem : qualified_name_problems(key))
        causes.invalid(here + ".key", quoted(key), problem);
    }
    causes.check(here + ".value", value, check_label_value(value));
    validate_enum(json::at(list[i], "effect"),
                  here + ".effect",
                  {"NoSchedule", "PreferNoSchedule", "NoExecute"},
                  causes);
    if (!seen.insert(fmt::format("{}:{}", key, effect)).second) {
      causes.duplicate(here,
                       json::dump(list[i]) + ": taints must be unique by key and effect pair");
    }
  }
}

void validate_node(const Value& node, Causes& causes) {
  validate_taints(json::at(node, "spec", "taints"), "metadata.taints", causes);
  const json::Array& ranges = json::array_at(node, "spec", "podCIDRs");
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (is_address_range(json::as_string(ranges[i]))) continue;
    causes.invalid(fmt::format("spec.podCIDRs[{}]", i),
                   shown(ranges[i]),
                   "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
  }
  validate_resource_list(json::at(node, "status", "capacity"), "status.capacity", false, causes);
  validate_resource_list(
      json::at(node, "status", "allocatable"), "status.allocatable", false, causes);
}

void validate_priority_class(const Value& object, const Value* live, Causes& causes) {
  const std::string_view name = name_of(object);
  const std::int64_t value = json::int_at(object, "value");
  const bool system = name.starts_with("system-");
  if (system && name != "system-node-critical" && name != "system-cluster-critical") {
    causes.forbidden(
        "metadata.name",
        "priority class names with 'system-' prefix are reserved for system use only. error: " +
            std::string(name) + " is not a known system priority class");
  } else if (!system && value > 1'000'000'000) {
    causes.forbidden(
        "value",
        fmt::format("maximum allowed value of a user defined priority is {}", 1'000'000'000));
  }
  validate_enum(json::at(object, "preemptionPolicy"),
                "preemptionPolicy",
                {"PreemptLowerPriority", "Never"},
                causes,
                false);
  if (live != nullptr) {
    if (value != json::int_at(*live, "value"))
      causes.forbidden("value", "may not be changed in an update.");
    const Value& policy = json::at(object, "preemptionPolicy");
    const Value& old = json::at(*live, "preemptionPolicy");
    if (!json::equal(policy, old))
      causes.invalid("preemptionPolicy", shown(policy), "field is immutable");
  }
}

void validate_pdb(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& least = json::at(spec, "minAvailable");
  const Value& most = json::at(spec, "maxUnavailable");
  if (!least.is_null() && !most.is_null()) {
    causes.invalid("spec", json::dump(spec), "minAvailable and maxUnavailable cannot be both set");
  }
  validate_int_or_percent(least, "spec.minAvailable", causes);
  validate_int_or_percent(most, "spec.maxUnavailable", causes);
  validate_label_selector(json::at(spec, "selector"), "spec.selector", causes);
  validate_enum(json::at(spec, "unhealthyPodEvictionPolicy"),
                "spec.unhealthyPodEvictionPolicy",
                {"AlwaysAllow", "IfHealthyBudget"},
                causes,
                false);
}

void validate_claim(const Value& object, const Value* live, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const json::Array& modes = json::array_at(spec, "accessModes");
  if (modes.empty()) causes.required("spec.accessModes", "at least 1 access mode is required");
  for (const Value& mode : modes)
    validate_enum(mode,
                  "spec.accessModes",
                  {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"},
                  causes);
  const Value& storage = json::at(spec, "resources", "requests", "storage");
  if (storage.is_null()) {
    causes.required("spec.resources[storage]");
  } else if (const auto quantity =
                 parse_quantity(storage.is_string() ? json::text(storage) : json::dump(storage));
             quantity && (quantity->is_negative() || quantity->is_zero())) {
    causes.invalid(
        "spec.resources[storage]", quoted(quantity->text()), "must be greater than zero");
  }
  validate_enum(
      json::at(spec, "volumeMode"), "spec.volumeMode", {"Block", "Filesystem"}, causes, false);
  const std::string_view storage_class = json::string_at(spec, "storageClassName");
  if (!storage_class.empty())
    causes.check("spec.storageClassName", storage_class, check_dns_subdomain(storage_class));
  validate_label_selector(json::at(spec, "selector"), "spec.selector", causes);
  if (live == nullptr) return;
  Value now = spec;
  Value before = json::at(*live, "spec");
  const bool bound = json::string_at(*live, "status", "phase") == "Bound";
  for (Value* value : {&now, &before}) {
    // A claim that is bound may grow.
    if (bound) json::remove(*value, {"resources", "requests"});
    if (bound) json::remove(*value, {"volumeAttributesClassName"});
    json::remove(*value, {"dataSourceRef"});
  }
  // A class may be given to a claim that has none yet.
  if (json::at(before, "storageClassName").is_null() && !bound)
    json::remove(now, {"storageClassName"});
  const bool binding = json::is_empty(json::at(before, "volumeName"));  // the binder fills it once
  if (binding) {
    json::remove(now, {"volumeName"});
    json::remove(before, {"volumeName"});
  }
  if (!json::equal(now, before)) {
    causes.forbidden(
        "spec",
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims");
  }
}

void validate_event(const Value& object, bool new_api, Causes& causes) {
  const Value& involved = json::at(object, new_api ? "regarding" : "involvedObject");
  const std::string field = new_api ? "regarding.namespace" : "involvedObject.namespace";
  const std::string_view space = json::string_at(involved, "namespace");
  const std::string_view own = namespace_of(object);
  if (space.empty()) {
    if (!own.empty() && own != "default" && own != "kube-system")
      causes.invalid(field, "\"\"", "does not match event.namespace");
  } else if (space != own) {
    causes.invalid(field, quoted(space), "does not match event.namespace");
  }
  if (!new_api) return;
  const std::string_view type = json::string_at(object, "type");
  const bool known = type == "Normal" || type == "Warning";
  if (json::is_empty(json::at(object, "eventTime"))) {
    causes.required("eventTime");
    // An event of old, to which the rest does not apply.
    if (!known) causes.invalid("type", "\"\"", fmt::format("has invalid value: {}", type));
    return;
  }
  const std::string_view controller = json::string_at(object, "reportingController");
  if (controller.empty()) causes.required("reportingController");
  for (const std::string& problem : qualified_name_problems(controller))
    causes.invalid("reportingController", quoted(controller), problem);
  if (json::is_empty(json::at(object, "reportingInstance"))) causes.required("reportingInstance");
  if (json::is_empty(json::at(object, "action"))) causes.required("action");
  if (json::is_empty(json::at(object, "reason"))) causes.required("reason");
  if (!known) causes.invalid("type", "\"\"", fmt::format("has invalid value: {}", type));
  if (json::string_at(object, "note").size() > 1024)
    causes.invalid(
        "note", quoted(json::string_at(object, "note")), "can have at most 1024 characters");
}

void validate_lease(const Value& object, Causes& causes) {
  const Value& spec = json::at(object, "spec");
  const Value& duration = json::at(spec, "leaseDurationSeconds");
  if (!duration.is_null() && json::as_int(duration) <= 0)
    causes.invalid("spec.leaseDurationSeconds", json::dump(duration), "must be greater than 0");
  validate_non_negative(json::at(spec, "leaseTransitions"), "spec.leaseTransitions", causes);
}

void validate_role(const Value& object, bool cluster, Causes& causes) {
  const json::Array& rules = json::array_at(object, "rules");
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::string here = fmt::format("rules[{}]", i);
    if (json::array_at(rules[i], "verbs").empty()) causes.required(here + ".verbs");
    const bool urls = !json::array_at(rules[i], "nonResourceURLs").empty();
    if (urls) {
      if (!cluster)
        causes.invalid(here + ".nonResourceURLs",
                       json::dump(json::at(rules[i], "nonResourceURLs")),
                       "namespaced rules cannot apply to non-resource URLs");
      if (!json::array_at(rules[i], "apiGroups").empty() ||
          !json::array_at(rules[i], "resources").empty() ||
          !json::array_at(rules[i], "resourceNames").empty()) {
        causes.invalid(here + ".nonResourceURLs",
                       json::dump(json::at(rules[i], "nonResourceURLs")),
                       "rules cannot apply to both regular resources and non-resource URLs");
      }
      continue;
    }
    if (json::array_at(rules[i], "apiGroups").empty())
      causes.required(here + ".apiGroups", "resource rules must supply at least one api group");
    if (json::array_at(rules[i], "resources").empty())
      causes.required(here + ".resources", "resource rules must supply at least one resource");
  }
}

void validate_role_binding(const Value& object, const Value* live, bool cluster, Causes& causes) {
  const Value& ref = json::at(object, "roleRef");
  const std::string_view group = json::string_at(ref, "apiGroup");
  if (group != groups::kRbac) causes.not_supported("roleRef.apiGroup", group, {groups::kRbac});
  const std::string_view kind = json::string_at(ref, "kind");
  if (cluster && kind != "ClusterRole")
    causes.not_supported("roleRef.kind", kind, {"ClusterRole"});
  else if (kind != "Role" && kind != "ClusterRole")
    causes.not_supported("roleRef.kind", kind, {"Role", "ClusterRole"});
  if (json::is_empty(json::at(ref, "name"))) causes.required("roleRef.name");
  const json::Array& subjects = json::array_at(object, "subjects");
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const std::string here = fmt::format("subjects[{}]", i);
    if (json::is_empty(json::at(subjects[i], "name"))) causes.required(here + ".name");
    const std::string_view subject = json::string_at(subjects[i], "kind");
    if (subject == "ServiceAccount") {
      if (json::is_empty(json::at(subjects[i], "namespace")) && cluster)
        causes.required(here + ".namespace");
      if (!json::is_empty(json::at(subjects[i], "apiGroup")))
        causes.not_supported(here + ".apiGroup", json::string_at(subjects[i], "apiGroup"), {""});
    } else if (subject != "User" && subject != "Group") {
      causes.not_supported(here + ".kind", subject, {"ServiceAccount", "User", "Group"});
    }
  }
  if (live != nullptr && !json::equal(ref, json::at(*live, "roleRef")))
    causes.invalid("roleRef", json::dump(ref), "field is immutable");
}

}  // namespace muster::kube
