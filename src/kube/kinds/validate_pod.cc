// A table of rules for pods, in the order in which Kubernetes reports their breach.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "kube/kinds/names.h"
#include "kube/kinds/rules.h"
#include "kube/kinds/validate.h"
#include "kube/schema/schema.h"

namespace muster::kube {

void validate_resource_requirements(const json::Value& resources,
                                    const std::string& field,
                                    Causes& causes);

namespace {

using json::Value;

/// Paths are put together for every item of every pod, though hardly one is ever shown: by hand,
/// which is a third of what format() takes.
std::string at_index(const std::string& field, std::string_view list, std::size_t i) {
  std::string path;
  path.reserve(field.size() + list.size() + 8);
  return path.append(field)
      .append(1, '.')
      .append(list)
      .append(1, '[')
      .append(std::to_string(i))
      .append(1, ']');
}

const std::vector<std::string_view> kProtocols = {"SCTP", "TCP", "UDP"};

/// Every member of a volume but its name is a source.
void validate_volume(const Value& volume, const std::string& field, Causes& causes) {
  std::size_t sources = 0;
  for (const auto& member : json::as_object(volume)) {
    if (member.key() == "name") continue;
    if (sources++ > 0)
      causes.forbidden(fmt::format("{}.{}", field, std::string_view(member.key())),
                       "may not specify more than 1 volume type");
  }
  if (sources == 0) causes.required(field, "must specify a volume type");
  const Value& host_path = json::at(volume, "hostPath");
  if (host_path.is_object()) {
    if (json::is_empty(json::at(host_path, "path"))) causes.required(field + ".hostPath.path");
    validate_enum(json::at(host_path, "type"),
                  field + ".hostPath.type",
                  {"",
                   "BlockDevice",
                   "CharDevice",
                   "Directory",
                   "DirectoryOrCreate",
                   "File",
                   "FileOrCreate",
                   "Socket"},
                  causes,
                  false);
  }
  const Value& claim = json::at(volume, "persistentVolumeClaim");
  if (claim.is_object() && json::is_empty(json::at(claim, "claimName")))
    causes.required(field + ".persistentVolumeClaim.claimName");
  const Value& secret = json::at(volume, "secret");
  if (secret.is_object() && json::is_empty(json::at(secret, "secretName")))
    causes.required(field + ".secret.secretName");
  const Value& map = json::at(volume, "configMap");
  if (map.is_object() && json::is_empty(json::at(map, "name")))
    causes.required(field + ".configMap.name");
  for (const std::string_view kind : {"secret", "configMap", "downwardAPI", "projected"}) {
    const Value& mode = json::at(volume, kind, "defaultMode");
    if (!mode.is_null() && (json::as_int(mode) < 0 || json::as_int(mode) > 0777)) {
      causes.invalid(fmt::format("{}.{}.defaultMode", field, kind),
                     json::dump(mode),
                     "must be a number between 0 and 0777 (octal), both inclusive");
    }
  }
  const Value& nfs = json::at(volume, "nfs");
  if (nfs.is_object()) {
    if (json::is_empty(json::at(nfs, "server"))) causes.required(field + ".nfs.server");
    if (json::is_empty(json::at(nfs, "path"))) causes.required(field + ".nfs.path");
    if (!json::string_at(nfs, "path").starts_with('/')) {
      causes.invalid(
          field + ".nfs.path", quoted(json::string_at(nfs, "path")), "must be an absolute path");
    }
  }
  const Value& limit = json::at(volume, "emptyDir", "sizeLimit");
  if (const auto size = parse_quantity(json::as_string(limit));
      limit.is_string() && size && size->is_negative()) {
    causes.forbidden(field + ".emptyDir.sizeLimit",
                     "SizeLimit field must be a valid resource quantity");
  }
}

std::set<std::string_view> validate_volumes(const Value& spec,
                                            const std::string& field,
                                            Causes& causes) {
  std::set<std::string_view> names;
  const json::Array& volumes = json::array_at(spec, "volumes");
  for (std::size_t i = 0; i < volumes.size(); ++i) {
    const std::string here = at_index(field, "volumes", i);
    const std::string_view name = json::string_at(volumes[i], "name");
    validate_volume(volumes[i], here, causes);
    validate_volume_paths(volumes[i], here, causes);
    if (name.empty()) {
      causes.required(here + ".name");
    } else {
      causes.check(here + ".name", name, check_dns_label(name));
      if (!names.insert(name).second) causes.duplicate(here + ".name", quoted(name));
    }
  }
  return names;
}

void validate_ports(const Value& container, const std::string& field, Causes& causes) {
  std::set<std::string_view> names;
  const json::Array& ports = json::array_at(container, "ports");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string here = at_index(field, "ports", i);
    const std::string_view name = json::string_at(ports[i], "name");
    if (!name.empty()) {
      for (const std::string& problem : port_name_problems(name))
        causes.invalid(here + ".name", quoted(name), problem);
      if (!names.insert(name).second) causes.duplicate(here + ".name", quoted(name));
    }
    const Value& number = json::at(ports[i], "containerPort");
    if (json::as_int(number) == 0)
      causes.required(here + ".containerPort");
    else
      validate_range(number, here + ".containerPort", 1, 65535, causes);
    const Value& host = json::at(ports[i], "hostPort");
    if (json::as_int(host) != 0) validate_range(host, here + ".hostPort", 1, 65535, causes);
    validate_enum(json::at(ports[i], "protocol"), here + ".protocol", kProtocols, causes);
  }
}

/// What a field reference may name; labels and annotations also with a key in brackets.
bool known_field_path(std::string_view path) {
  static const std::set<std::string_view> kPaths = {"metadata.name",
                                                    "metadata.namespace",
                                                    "metadata.uid",
                                                    "metadata.labels",
                                                    "metadata.annotations",
                                                    "spec.nodeName",
                                                    "spec.restartPolicy",
                                                    "spec.schedulerName",
                                                    "spec.serviceAccountName",
                                                    "spec.hostNetwork",
                                                    "status.phase",
                                                    "status.hostIP",
                                                    "status.hostIPs",
                                                    "status.podIP",
                                                    "status.podIPs",
                                                    "status.nominatedNodeName"};
  const auto bracket = path.find("['");
  if (bracket != std::string_view::npos && path.ends_with("']")) {
    const auto base = path.substr(0, bracket);
    return base == "metadata.labels" || base == "metadata.annotations";
  }
  return kPaths.contains(path);
}

/// The name of a ConfigMap or Secret.
void validate_reference(std::string_view name, const std::string& field, Causes& causes) {
  if (name.empty())
    causes.required(field + ".name");
  else
    causes.check(field + ".name", name, check_dns_subdomain(name));
}

/// A key in one.
void validate_key(std::string_view key, const std::string& field, Causes& causes) {
  if (key.empty()) {
    causes.required(field);
    return;
  }
  causes.check(field, key, check_config_key(key));
  // Both are wrong with it, and both are said.
  if (key.starts_with("..") && key.find('/') != std::string_view::npos)
    causes.invalid(field, quoted(key), "must not start with '..'");
}

void validate_env(const Value& container, const std::string& field, Causes& causes) {
  const json::Array& list = json::array_at(container, "env");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string_view name = json::string_at(list[i], "name");
    const Value& from = json::at(list[i], "valueFrom");
    if (!name.empty() && check_env_name(name).empty() && from.is_null()) continue;
    const std::string here = at_index(field, "env", i);
    if (name.empty())
      causes.required(here + ".name");
    else
      causes.check(here + ".name", name, check_env_name(name));
    if (from.is_null()) continue;
    std::size_t sources = 0;
    for (const std::string_view source :
         {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"}) {
      if (!json::at(from, source).is_object()) continue;
      ++sources;
      if (source == "fieldRef" && json::is_empty(json::at(from, source, "fieldPath")))
        causes.required(here + ".valueFrom.fieldRef.fieldPath");
      else if (const std::string_view path = json::string_at(from, source, "fieldPath");
               source == "fieldRef" && !known_field_path(path)) {
        causes.invalid(
            here + ".valueFrom.fieldRef.fieldPath",
            quoted(path),
            fmt::format("error converting fieldPath: field label not supported: {}", path));
      }
      if (source == "resourceFieldRef" && json::is_empty(json::at(from, source, "resource")))
        causes.required(here + ".valueFrom.resourceFieldRef.resource");
      if (source == "configMapKeyRef" || source == "secretKeyRef") {
        const std::string ref = fmt::format("{}.valueFrom.{}", here, source);
        validate_reference(json::string_at(from, source, "name"), ref, causes);
        validate_key(json::string_at(from, source, "key"), ref + ".key", causes);
      }
    }
    if (sources == 0) {
      causes.invalid(
          here + ".valueFrom",
          "\"\"",
          "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`");
    } else if (sources > 1) {
      causes.invalid(
          here + ".valueFrom", "\"\"", "may not have more than one field specified at a time");
    }
    if (!json::is_empty(json::at(list[i], "value")))
      causes.invalid(here + ".valueFrom", "\"\"", "may not be specified when `value` is not empty");
  }
}

void validate_env_from(const Value& container, const std::string& field, Causes& causes) {
  const json::Array& list = json::array_at(container, "envFrom");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value& from = list[i];
    const bool map = json::at(from, "configMapRef").is_object();
    const bool secret = json::at(from, "secretRef").is_object();
    for (const std::string_view source : {"configMapRef", "secretRef"}) {
      if (json::at(from, source).is_object())
        validate_reference(json::string_at(from, source, "name"),
                           at_index(field, "envFrom", i) + "." + std::string(source),
                           causes);
    }
    if (!map && !secret)
      causes.invalid(
          field + ".envFrom", "\"\"", "must specify one of: `configMapRef` or `secretRef`");
    if (map && secret)
      causes.invalid(
          field + ".envFrom", "\"\"", "may not have more than one field specified at a time");
  }
}

void validate_mounts(const Value& container,
                     const std::string& field,
                     const std::set<std::string_view>& volumes,
                     Causes& causes) {
  std::set<std::string_view> paths;
  const json::Array& mounts = json::array_at(container, "volumeMounts");
  for (std::size_t i = 0; i < mounts.size(); ++i) {
    const std::string here = at_index(field, "volumeMounts", i);
    const std::string_view name = json::string_at(mounts[i], "name");
    const std::string_view path = json::string_at(mounts[i], "mountPath");
    if (name.empty())
      causes.required(here + ".name");
    else if (!volumes.contains(name))
      causes.add(
          {"FieldValueNotFound", fmt::format("Not found: {}", quoted(name)), here + ".name"});
    if (path.empty())
      causes.required(here + ".mountPath");
    else if (!paths.insert(path).second)
      causes.invalid(here + ".mountPath", quoted(path), "must be unique");
    const std::string_view sub = json::string_at(mounts[i], "subPath");
    if (sub.starts_with('/'))
      causes.invalid(field + ".volumeMounts.subPath", quoted(sub), "must be a relative path");
    for (const std::string& part : sub.empty() ? std::vector<std::string>() : split(sub, '/')) {
      if (part == "..")
        causes.invalid(field + ".volumeMounts.subPath", quoted(sub), "must not contain '..'");
    }
  }
}

void validate_probe(const Value& probe, const std::string& field, Causes& causes) {
  if (!probe.is_object()) return;
  validate_handler(probe, field, true, causes);
  for (const std::string_view key : {"initialDelaySeconds",
                                     "timeoutSeconds",
                                     "periodSeconds",
                                     "successThreshold",
                                     "failureThreshold"}) {
    validate_non_negative(json::at(probe, key), fmt::format("{}.{}", field, key), causes);
  }
}

void validate_container(const Value& container,
                        const std::string& field,
                        const std::set<std::string_view>& volumes,
                        Causes& causes) {
  const std::string_view name = json::string_at(container, "name");
  if (name.empty())
    causes.required(field + ".name");
  else
    causes.check(field + ".name", name, check_dns_label(name));
  const std::string_view image = json::string_at(container, "image");
  if (image.empty())
    causes.required(field + ".image");
  else if (trim(image).size() != image.size())
    causes.invalid(field + ".image", quoted(image), "must not have leading or trailing whitespace");
  validate_enum(json::at(container, "terminationMessagePolicy"),
                field + ".terminationMessagePolicy",
                {"File", "FallbackToLogsOnError"},
                causes);
  validate_ports(container, field, causes);
  validate_env(container, field, causes);
  validate_env_from(container, field, causes);
  validate_mounts(container, field, volumes, causes);
  validate_enum(json::at(container, "imagePullPolicy"),
                field + ".imagePullPolicy",
                {"Always", "IfNotPresent", "Never"},
                causes);
  validate_resource_requirements(json::at(container, "resources"), field + ".resources", causes);
  for (const Value& policy : json::array_at(container, "resizePolicy")) {
    validate_enum(
        json::at(policy, "resourceName"), field + ".resizePolicy", {"cpu", "memory"}, causes);
    validate_enum(json::at(policy, "restartPolicy"),
                  field + ".resizePolicy",
                  {"NotRequired", "RestartContainer"},
                  causes);
  }
  for (const std::string_view hook : {"postStart", "preStop"}) {
    const Value& handler = json::at(container, "lifecycle", hook);
    if (handler.is_object())
      validate_handler(handler, fmt::format("{}.lifecycle.{}", field, hook), false, causes);
  }
  validate_security_context(
      json::at(container, "securityContext"), field + ".securityContext", true, causes);
}

/// No two containers may have the same port of the node; on the node's network the two numbers are
/// one.
void validate_host_ports(const Value& spec, const std::string& field, Causes& causes) {
  std::set<std::string> taken;
  const json::Array& containers = json::array_at(spec, "containers");
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const json::Array& ports = json::array_at(containers[i], "ports");
    for (std::size_t p = 0; p < ports.size(); ++p) {
      const std::int64_t host = json::int_at(ports[p], "hostPort");
      if (host == 0) continue;
      const std::string here = at_index(at_index(field, "containers", i), "ports", p) + ".hostPort";
      const std::string key = fmt::format("{}/{}/{}",
                                          json::as_string(json::at(ports[p], "protocol"), "TCP"),
                                          json::string_at(ports[p], "hostIP"),
                                          host);
      if (!taken.insert(key).second) causes.duplicate(here, quoted(key));
      if (json::bool_at(spec, "hostNetwork") && host != json::int_at(ports[p], "containerPort")) {
        causes.invalid(
            here, fmt::format("{}", host), "must match `containerPort` when `hostNetwork` is true");
      }
    }
  }
}

void validate_containers(const Value& spec,
                         const std::string& field,
                         const std::set<std::string_view>& volumes,
                         Causes& causes) {
  std::set<std::string_view> names;
  const json::Array& containers = json::array_at(spec, "containers");
  if (containers.empty()) {
    causes.required(field + ".containers");
    return;
  }
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string here = at_index(field, "containers", i);
    validate_container(containers[i], here, volumes, causes);
    const std::string_view name = json::string_at(containers[i], "name");
    if (!name.empty() && !names.insert(name).second) causes.duplicate(here + ".name", quoted(name));
    for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      if (!json::at(containers[i], probe).is_object()) continue;
      validate_probe(json::at(containers[i], probe), fmt::format("{}.{}", here, probe), causes);
      const Value& successes = json::at(containers[i], probe, "successThreshold");
      if (probe != "readinessProbe" && json::as_int(successes, 1) > 1)
        causes.invalid(
            fmt::format("{}.{}.successThreshold", here, probe), json::dump(successes), "must be 1");
    }
  }
  validate_host_ports(spec, field, causes);
  const json::Array& inits = json::array_at(spec, "initContainers");
  for (std::size_t i = 0; i < inits.size(); ++i) {
    const std::string here = at_index(field, "initContainers", i);
    validate_container(inits[i], here, volumes, causes);
    const std::string_view name = json::string_at(inits[i], "name");
    if (!name.empty() && !names.insert(name).second) causes.duplicate(here + ".name", quoted(name));
    const bool sidecar = json::string_at(inits[i], "restartPolicy") == "Always";
    for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"}) {
      if (!json::at(inits[i], probe).is_object()) continue;
      if (sidecar)
        validate_probe(json::at(inits[i], probe), fmt::format("{}.{}", here, probe), causes);
      else
        causes.forbidden(fmt::format("{}.{}", here, probe),
                         "may not be set for init containers without restartPolicy=Always");
    }
  }
}

void validate_node_selector_requirement(const Value& expression,
                                        const std::string& field,
                                        Causes& causes) {
  const std::string_view op = json::string_at(expression, "operator");
  const std::size_t values = json::array_at(expression, "values").size();
  if (op == "In" || op == "NotIn") {
    if (values == 0)
      causes.required(field + ".values", "must be specified when `operator` is 'In' or 'NotIn'");
  } else if (op == "Exists" || op == "DoesNotExist") {
    if (values > 0)
      causes.forbidden(field + ".values",
                       "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  } else if (op == "Gt" || op == "Lt") {
    if (values != 1)
      causes.required(field + ".values",
                      "must be specified single value when `operator` is 'Lt' or 'Gt'");
  } else {
    causes.invalid(field + ".operator", quoted(op), "not a valid selector operator");
  }
  const std::string_view key = json::string_at(expression, "key");
  for (const std::string& problem : qualified_name_problems(key))
    causes.invalid(field + ".key", quoted(key), problem);
}

void validate_node_selector_term(const Value& term, const std::string& field, Causes& causes) {
  const json::Array& expressions = json::array_at(term, "matchExpressions");
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    validate_node_selector_requirement(
        expressions[i], at_index(field, "matchExpressions", i), causes);
  }
  const json::Array& fields = json::array_at(term, "matchFields");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string here = at_index(field, "matchFields", i);
    const std::string_view op = json::string_at(fields[i], "operator");
    if (op != "In" && op != "NotIn")
      causes.invalid(here + ".operator", quoted(op), "not a valid selector operator");
    else if (json::array_at(fields[i], "values").size() != 1)
      causes.required(
          here + ".values",
          "must be only one value when `operator` is 'In' or 'NotIn' for node field selector");
    if (json::string_at(fields[i], "key") != "metadata.name") {
      causes.invalid(
          here + ".key", shown(json::at(fields[i], "key")), "not a valid field selector key");
    }
  }
}

void validate_pod_affinity_terms(const Value& affinity, const std::string& field, Causes& causes) {
  const auto term_rules = [&](const Value& term, const std::string& here) {
    const std::string_view key = json::string_at(term, "topologyKey");
    validate_label_selector(json::at(term, "labelSelector"), here + ".labelSelector", causes);
    if (key.empty()) causes.required(here + ".topologyKey", "can not be empty");
    for (const std::string& problem : qualified_name_problems(key))
      causes.invalid(here + ".topologyKey", quoted(key), problem);
  };
  const json::Array& required =
      json::array_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution");
  for (std::size_t i = 0; i < required.size(); ++i)
    term_rules(required[i], at_index(field, "requiredDuringSchedulingIgnoredDuringExecution", i));
  const json::Array& preferred =
      json::array_at(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    const std::string here = at_index(field, "preferredDuringSchedulingIgnoredDuringExecution", i);
    const std::int64_t weight = json::int_at(preferred[i], "weight");
    if (weight < 1 || weight > 100)
      causes.invalid(here + ".weight", fmt::format("{}", weight), "must be in the range 1-100");
    term_rules(json::at(preferred[i], "podAffinityTerm"), here + ".podAffinityTerm");
  }
}

void validate_affinity(const Value& affinity, const std::string& field, Causes& causes) {
  if (!affinity.is_object()) return;
  const Value& node = json::at(affinity, "nodeAffinity");
  const Value& required = json::at(node, "requiredDuringSchedulingIgnoredDuringExecution");
  if (required.is_object()) {
    const std::string here = field + ".nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    const json::Array& terms = json::array_at(required, "nodeSelectorTerms");
    if (terms.empty())
      causes.required(here + ".nodeSelectorTerms", "must have at least one node selector term");
    for (std::size_t i = 0; i < terms.size(); ++i)
      validate_node_selector_term(terms[i], at_index(here, "nodeSelectorTerms", i), causes);
  }
  const json::Array& preferred =
      json::array_at(node, "preferredDuringSchedulingIgnoredDuringExecution");
  for (std::size_t i = 0; i < preferred.size(); ++i) {
    const std::string here =
        at_index(field + ".nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution", i);
    const std::int64_t weight = json::int_at(preferred[i], "weight");
    if (weight <= 0 || weight > 100)
      causes.invalid(here + ".weight", fmt::format("{}", weight), "must be in the range 1-100");
    validate_node_selector_term(json::at(preferred[i], "preference"), here + ".preference", causes);
  }
  validate_pod_affinity_terms(json::at(affinity, "podAffinity"), field + ".podAffinity", causes);
  validate_pod_affinity_terms(
      json::at(affinity, "podAntiAffinity"), field + ".podAntiAffinity", causes);
}

void validate_gates(const Value& spec, const std::string& field, Causes& causes) {
  std::set<std::string_view> seen;
  const json::Array& gates = json::array_at(spec, "schedulingGates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    const std::string here = at_index(field, "schedulingGates", i);
    const std::string_view name = json::string_at(gates[i], "name");
    for (const std::string& problem : qualified_name_problems(name))
      causes.invalid(here, quoted(name), problem);
    if (!seen.insert(name).second) causes.duplicate(here, quoted(name));
  }
}

void validate_spread(const Value& spec, const std::string& field, Causes& causes) {
  std::set<std::string> seen;
  const json::Array& list = json::array_at(spec, "topologySpreadConstraints");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string here = at_index(field, "topologySpreadConstraints", i);
    const Value& one = list[i];
    const std::int64_t skew = json::int_at(one, "maxSkew");
    if (skew <= 0)
      causes.invalid(here + ".maxSkew", fmt::format("{}", skew), "must be greater than zero");
    const std::string_view key = json::string_at(one, "topologyKey");
    if (key.empty()) {
      causes.required(here + ".topologyKey", "can not be empty");
    } else {
      for (const std::string& problem : qualified_name_problems(key))
        causes.invalid(here + ".topologyKey", quoted(key), problem);
    }
    const std::string_view when = json::string_at(one, "whenUnsatisfiable");
    if (when != "DoNotSchedule" && when != "ScheduleAnyway")
      causes.not_supported(here + ".whenUnsatisfiable", when, {"DoNotSchedule", "ScheduleAnyway"});
    const std::string pair = fmt::format("{{{}, {}}}", key, when);
    if (!seen.insert(pair).second)
      causes.duplicate(here + ".{topologyKey, whenUnsatisfiable}", quoted(pair));
    const Value& domains = json::at(one, "minDomains");
    if (!domains.is_null()) {
      if (json::as_int(domains) <= 0)
        causes.invalid(here + ".minDomains", json::dump(domains), "must be greater than zero");
      if (when != "DoNotSchedule") {
        causes.invalid(
            here + ".minDomains",
            json::dump(domains),
            "can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway");
      }
    }
    validate_enum(json::at(one, "nodeAffinityPolicy"),
                  here + ".nodeAffinityPolicy",
                  {"Honor", "Ignore"},
                  causes,
                  false);
    validate_enum(json::at(one, "nodeTaintsPolicy"),
                  here + ".nodeTaintsPolicy",
                  {"Honor", "Ignore"},
                  causes,
                  false);
    validate_label_selector(json::at(one, "labelSelector"), here + ".labelSelector", causes);
  }
}

void validate_tolerations(const Value& spec, const std::string& field, Causes& causes) {
  const json::Array& list = json::array_at(spec, "tolerations");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Value& one = list[i];
    const std::string_view key = json::string_at(one, "key");
    const std::string_view op = json::string_at(one, "operator");
    const std::string_view effect = json::string_at(one, "effect");
    const std::string here = at_index(field, "tolerations", i);
    if (!key.empty()) {
      if (!check_label_key(key).empty()) {
        for (const std::string& problem : qualified_name_problems(key))
          causes.invalid(here + ".key", quoted(key), problem);
      }
    } else if (op != "Exists") {
      causes.invalid(
          here + ".operator",
          quoted(op),
          "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    }
    const Value& seconds = json::at(one, "tolerationSeconds");
    if (!seconds.is_null() && effect != "NoExecute")
      causes.invalid(here + ".effect",
                     quoted(effect),
                     "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (op.empty() || op == "Equal") {
      const std::string_view value = json::string_at(one, "value");
      causes.check(here + ".operator", value, check_label_value(value));
    } else if (op == "Exists") {
      if (!json::is_empty(json::at(one, "value")))
        causes.invalid(here + ".operator",
                       shown(json::at(one, "value")),
                       "value must be empty when `operator` is 'Exists'");
    } else {
      causes.not_supported(here + ".operator", op, {"Equal", "Exists"});
    }
    if (!effect.empty())
      validate_enum(json::at(one, "effect"),
                    here + ".effect",
                    {"NoSchedule", "PreferNoSchedule", "NoExecute"},
                    causes);
  }
}

void validate_names(const Value& spec, const std::string& field, Causes& causes) {
  const auto subdomain = [&](std::string_view key) {
    const std::string_view text = json::string_at(spec, key);
    if (!text.empty())
      causes.check(fmt::format("{}.{}", field, key), text, check_dns_subdomain(text));
  };
  const auto label = [&](std::string_view key) {
    const std::string_view text = json::string_at(spec, key);
    if (!text.empty()) causes.check(fmt::format("{}.{}", field, key), text, check_dns_label(text));
  };
  subdomain("serviceAccountName");
  subdomain("nodeName");
  const Value& deadline = json::at(spec, "activeDeadlineSeconds");
  if (!deadline.is_null())
    validate_range(deadline, field + ".activeDeadlineSeconds", 1, 2147483647LL, causes);
  label("hostname");
  label("subdomain");
  validate_tolerations(spec, field, causes);
  subdomain("priorityClassName");
  subdomain("runtimeClassName");
  validate_enum(json::at(spec, "preemptionPolicy"),
                field + ".preemptionPolicy",
                {"Never", "PreemptLowerPriority"},
                causes,
                false);
  const Value& group = json::at(spec, "schedulingGroup");
  if (group.is_object()) {
    const std::string_view name = json::string_at(group, "podGroupName");
    if (json::at(group, "podGroupName").is_null())
      causes.invalid(
          field + ".schedulingGroup.podGroupName", "null", "must specify one of: `podGroupName`");
    else
      causes.check(field + ".schedulingGroup.podGroupName", name, check_dns_subdomain(name));
    if (!json::is_empty(json::at(spec, "evictionResponders"))) {
      causes.forbidden(field + ".schedulingGroup", "may not be set when evictionResponders is set");
    }
  }
}

constexpr std::string_view kUpdateText =
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
    "`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "
    "negative)";

void copy_images(Value& into, const Value& from, std::string_view list) {
  Value* target = into.get_object().if_contains(list);
  const json::Array& source = json::array_at(from, list);
  if (target == nullptr || !target->is_array() || target->get_array().size() != source.size())
    return;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (!target->get_array()[i].is_object()) continue;
    const Value& image = json::at(source[i], "image");
    if (!image.is_null()) target->get_array()[i].get_object()["image"] = image;
  }
}

/// Go's structs have no difference between absent and empty, so neither counts as a change.
Value without_empty(const Value& value) {
  if (value.is_object()) {
    json::Object out;
    for (const auto& member : value.get_object()) {
      Value inner = without_empty(member.value());
      if (!inner.is_null() && !(inner.is_object() && inner.get_object().empty()) &&
          !(inner.is_array() && inner.get_array().empty()) &&
          !(inner.is_string() && inner.get_string().empty())) {
        out.emplace(member.key(), std::move(inner));
      }
    }
    return out;
  }
  if (value.is_array()) {
    json::Array out;
    for (const Value& item : value.get_array()) out.push_back(without_empty(item));
    return out;
  }
  return value;
}

std::string changed_members(const Value& updated, const Value& live) {
  std::set<std::string> keys;
  for (const auto& member : json::as_object(updated)) keys.emplace(member.key());
  for (const auto& member : json::as_object(live)) keys.emplace(member.key());
  std::string text;
  for (const std::string& key : keys) {
    const Value& now = json::at(updated, key);
    const Value& before = json::at(live, key);
    if (json::equal(now, before)) continue;
    text +=
        fmt::format("\n- \"{}\": {}\n+ \"{}\": {}", key, json::dump(before), key, json::dump(now));
  }
  return text;
}

}  // namespace

void validate_pod_spec(const Value& spec, const std::string& field, Causes& causes) {
  const auto volumes = validate_volumes(spec, field, causes);
  validate_containers(spec, field, volumes, causes);
  if (json::at(spec, "resources").is_object())
    validate_resource_requirements(json::at(spec, "resources"), field + ".resources", causes);
  validate_enum(json::at(spec, "restartPolicy"),
                field + ".restartPolicy",
                {"Always", "OnFailure", "Never"},
                causes);
  validate_enum(json::at(spec, "dnsPolicy"),
                field + ".dnsPolicy",
                {"ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"},
                causes);
  validate_labels(json::at(spec, "nodeSelector"), field + ".nodeSelector", causes);
  validate_affinity(json::at(spec, "affinity"), field + ".affinity", causes);
  validate_gates(spec, field, causes);
  validate_spread(spec, field, causes);
  validate_names(spec, field, causes);
  validate_pod_settings(spec, field, causes);
}

void validate_new_pod(const Value& spec, Causes& causes) {
  if (!json::array_at(spec, "ephemeralContainers").empty())
    causes.forbidden("spec.ephemeralContainers", "cannot be set on create");
  if (!json::array_at(spec, "schedulingGates").empty() &&
      !json::is_empty(json::at(spec, "nodeName"))) {
    causes.forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared");
  }
}

void validate_pod_update(const Value& updated, const Value& live, Causes& causes) {
  const Value& now = json::at(updated, "spec");
  const Value& before = json::at(live, "spec");
  if (!now.is_object() || json::equal(now, before)) return;
  if (json::array_at(now, "containers").size() != json::array_at(before, "containers").size() ||
      json::array_at(now, "initContainers").size() !=
          json::array_at(before, "initContainers").size()) {
    causes.forbidden("spec.containers", "pod updates may not add or remove containers");
    return;
  }
  const Value& deadline = json::at(now, "activeDeadlineSeconds");
  const Value& old_deadline = json::at(before, "activeDeadlineSeconds");
  if (!old_deadline.is_null() &&
      (deadline.is_null() || json::as_int(deadline) > json::as_int(old_deadline))) {
    if (deadline.is_null())
      causes.invalid("spec.activeDeadlineSeconds",
                     "null",
                     "must not update from a positive integer to nil value");
    else
      causes.invalid("spec.activeDeadlineSeconds",
                     json::dump(deadline),
                     fmt::format("must be less than or equal to previous value"));
  }
  const json::Array& tolerations = json::array_at(now, "tolerations");
  for (const Value& old : json::array_at(before, "tolerations")) {
    if (std::none_of(tolerations.begin(), tolerations.end(), [&](const Value& one) {
          return json::equal(one, old);
        })) {
      causes.forbidden("spec.tolerations",
                       "existing toleration can not be modified except its tolerationSeconds");
      break;
    }
  }
  const json::Array& old_gates = json::array_at(before, "schedulingGates");
  const json::Array& gates = json::array_at(now, "schedulingGates");
  for (std::size_t index = 0; index < gates.size(); ++index) {
    const Value& gate = gates[index];
    if (std::none_of(old_gates.begin(), old_gates.end(), [&](const Value& one) {
          return json::equal(one, gate);
        })) {
      causes.forbidden(at_index("spec", "schedulingGates", index) + ".name",
                       "only deletion is allowed, but found new scheduling gate '" +
                           json::text_at(gate, "name") + "'");
    }
  }
  // Put back what may change; whatever differs then may not.
  Value allowed = now;
  copy_images(allowed, before, "containers");
  copy_images(allowed, before, "initContainers");
  const bool gated = !old_gates.empty();
  std::vector<std::string_view> free = {
      "activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"};
  // A gated pod's placement may still be narrowed.
  if (gated) free.insert(free.end(), {"nodeSelector", "affinity"});
  const Value& grace = json::at(before, "terminationGracePeriodSeconds");
  if (json::as_int(grace) < 0 && json::int_at(now, "terminationGracePeriodSeconds") == 1)
    free.push_back("terminationGracePeriodSeconds");
  for (const std::string_view key : free) {
    const Value& old = json::at(before, key);
    if (old.is_null())
      json::remove(allowed, {key});
    else
      json::make(allowed, {key}) = old;
  }
  const Value left = without_empty(allowed);
  const Value right = without_empty(before);
  if (!json::equal(left, right))
    causes.forbidden("spec", std::string(kUpdateText) + changed_members(left, right));
}

}  // namespace muster::kube
