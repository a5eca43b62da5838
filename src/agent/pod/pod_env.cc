#include "agent/pod/pod_env.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

using json::as_array;
using json::as_object;
using json::at;
using json::text;

void collect_env(const json::Value& container, std::set<ObjectRef>& out) {
  for (const auto& source : json::array_at(container, "envFrom")) {
    if (!at(source, "configMapRef").is_null())
      out.emplace("configmaps", text(at(source, "configMapRef", "name")));
    if (!at(source, "secretRef").is_null())
      out.emplace("secrets", text(at(source, "secretRef", "name")));
  }
  for (const auto& item : json::array_at(container, "env")) {
    const auto& from = at(item, "valueFrom");
    if (!at(from, "configMapKeyRef").is_null())
      out.emplace("configmaps", text(at(from, "configMapKeyRef", "name")));
    if (!at(from, "secretKeyRef").is_null())
      out.emplace("secrets", text(at(from, "secretKeyRef", "name")));
  }
}

bool valid_env_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return c > 32 && c < 127 && c != '=';
  });
}

class EnvBuilder {
 public:
  explicit EnvBuilder(const EnvList& first) {
    for (const auto& [name, value] : first) set(name, value);
  }
  void set(const std::string& name, const std::string& value) {
    if (!values_.contains(name)) order_.push_back(name);
    values_[name] = value;
  }
  const std::map<std::string, std::string>& values() const { return values_; }
  EnvList list() const {
    EnvList out;
    for (const auto& name : order_) out.emplace_back(name, values_.at(name));
    return out;
  }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> order_;
};

const json::Value& find(const Objects& objects, const std::string& kind, const std::string& name) {
  const auto found = objects.find({kind, name});
  return found == objects.end() ? json::null_value() : found->second;
}

/// Secret values are base64 in JSON.
std::optional<std::string> data_value(const json::Value& object,
                                      const std::string& key,
                                      bool secret) {
  const auto& value = at(object, "data", key);
  if (!value.is_null())
    return secret ? base64_decode(json::as_string(value)) : std::optional(text(value));
  const auto& binary = at(object, "binaryData", key);
  if (!binary.is_null()) return base64_decode(json::as_string(binary));
  return std::nullopt;
}

Result<void> add_env_from(const json::Value& source,
                          const Objects& objects,
                          std::string_view ns,
                          EnvBuilder& env) {
  const auto prefix = text(at(source, "prefix"));
  for (const auto& [field, kind] :
       {std::pair("configMapRef", "configmaps"), {"secretRef", "secrets"}}) {
    const auto& ref = at(source, field);
    if (ref.is_null()) continue;
    const bool secret = std::string_view(kind) == "secrets";
    const auto name = text(at(ref, "name"));
    const auto& object = find(objects, kind, name);
    if (object.is_null()) {
      if (json::bool_at(ref, "optional")) continue;
      return fail(Code::kNotFound,
                  fmt::format("{} \"{}/{}\" not found", secret ? "secret" : "configmap", ns, name));
    }
    for (const auto& [key, value] : json::object_at(object, "data")) {
      const auto decoded = data_value(object, std::string(key), secret);
      if (decoded && valid_env_name(prefix + std::string(key)))
        env.set(prefix + std::string(key), *decoded);
    }
  }
  return {};
}

Result<std::optional<std::string>> key_value(const json::Value& ref,
                                             const std::string& kind,
                                             const Objects& objects) {
  const bool secret = kind == "secrets";
  const auto name = text(at(ref, "name"));
  const auto key = text(at(ref, "key"));
  const auto& object = find(objects, kind, name);
  const bool optional = json::bool_at(ref, "optional");
  if (object.is_null()) {
    if (optional) return std::optional<std::string>();
    return fail(Code::kNotFound,
                fmt::format("{} \"{}\" not found", secret ? "secret" : "configmap", name));
  }
  auto value = data_value(object, key, secret);
  if (!value && !optional) {
    return fail(Code::kNotFound,
                fmt::format("couldn't find key {} in {} {}/{}",
                            key,
                            secret ? "Secret" : "ConfigMap",
                            kube::namespace_of(object),
                            name));
  }
  return value;
}

/// A resource in units of `divisor`, rounded up, as Kubernetes prints it.
std::string divided(std::int64_t milli, const json::Value& divisor) {
  const auto parsed = parse_quantity(
      divisor.is_null() || json::as_string(divisor) == "0" ? "1" : json::as_string(divisor, "1"));
  const auto by = parsed && parsed->milli() > 0 ? parsed->milli() : 1000;
  return std::to_string((milli + by - 1) / by);
}

}  // namespace

std::vector<ObjectRef> references(const json::Value& pod) {
  std::set<ObjectRef> out;
  const auto& spec = at(pod, "spec");
  for (const auto* list : {"initContainers", "containers"}) {
    for (const auto& container : json::array_at(spec, list)) collect_env(container, out);
  }
  for (const auto& volume : json::array_at(spec, "volumes")) {
    if (!at(volume, "configMap").is_null())
      out.emplace("configmaps", text(at(volume, "configMap", "name")));
    if (!at(volume, "secret").is_null())
      out.emplace("secrets", text(at(volume, "secret", "secretName")));
    if (!at(volume, "persistentVolumeClaim").is_null())
      out.emplace("persistentvolumeclaims", text(at(volume, "persistentVolumeClaim", "claimName")));
    for (const auto& source : json::array_at(volume, "projected", "sources")) {
      if (!at(source, "configMap").is_null())
        out.emplace("configmaps", text(at(source, "configMap", "name")));
      if (!at(source, "secret").is_null())
        out.emplace("secrets", text(at(source, "secret", "name")));
    }
  }
  return {out.begin(), out.end()};
}

Result<std::string> field_value(const json::Value& pod,
                                const PodFacts& facts,
                                std::string_view path) {
  for (const auto* map : {"labels", "annotations"}) {
    const auto prefix = fmt::format("metadata.{}['", map);
    if (path.starts_with(prefix) && path.ends_with("']")) {
      const auto key = path.substr(prefix.size(), path.size() - prefix.size() - 2);
      return text(at(pod, "metadata", map, key));
    }
    if (path == fmt::format("metadata.{}", map)) {  // as a file of a downwardAPI volume
      std::map<std::string, std::string> sorted;
      for (const auto& [key, value] : json::object_at(pod, "metadata", map))
        sorted[std::string(key)] = text(value);
      std::string out;
      for (const auto& [key, value] : sorted)
        out += fmt::format("{}{}={}", out.empty() ? "" : "\n", key, quoted(value));
      return out;
    }
  }
  if (path == "metadata.name") return std::string(kube::name_of(pod));
  if (path == "metadata.namespace") return std::string(kube::namespace_of(pod));
  if (path == "metadata.uid") return std::string(kube::uid_of(pod));
  if (path == "spec.nodeName") return text(at(pod, "spec", "nodeName"));
  if (path == "spec.serviceAccountName") return text(at(pod, "spec", "serviceAccountName"));
  if (path == "status.hostIP" || path == "status.hostIPs") return facts.host_ip;
  if (path == "status.podIP" || path == "status.podIPs") return facts.pod_ip;
  return fail(Code::kInvalid, fmt::format("unsupported fieldPath: {}", path));
}

Result<std::string> resource_value(const json::Value& pod,
                                   const PodFacts& facts,
                                   const json::Value& own,
                                   const json::Value& selector) {
  const auto name = text(at(selector, "containerName"));
  const json::Value* container = &own;
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto& item : json::array_at(pod, "spec", list)) {
      if (!name.empty() && json::string_at(item, "name") == name) container = &item;
    }
  }
  const auto resource = text(at(selector, "resource"));
  const auto dot = resource.find('.');
  if (dot == std::string::npos)
    return fail(Code::kInvalid, fmt::format("unsupported container resource : {}", resource));
  const auto kind = resource.substr(0, dot);   // limits or requests
  const auto what = resource.substr(dot + 1);  // cpu, memory …
  const auto& amount = at(*container, "resources", kind, what);
  std::int64_t milli = 0;
  if (!amount.is_null()) {
    const auto parsed = parse_quantity(json::as_string(amount));
    if (parsed) milli = parsed->milli();
  } else if (kind == "limits") {  // no limit: what the node has
    milli = what == "cpu"      ? facts.node_cpu_milli
            : what == "memory" ? facts.node_memory_bytes * 1000
                               : 0;
  }
  return divided(milli, at(selector, "divisor"));
}

std::string expand(std::string_view input, const std::map<std::string, std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < input.size(); ++i) {
    if (input[i] != '$' || i + 1 == input.size()) {
      out += input[i];
      continue;
    }
    if (input[i + 1] == '$') {
      out += '$';
      ++i;
      continue;
    }
    const auto close = input[i + 1] == '(' ? input.find(')', i + 2) : std::string_view::npos;
    if (close == std::string_view::npos) {
      out += '$';
      continue;
    }
    const auto name = std::string(input.substr(i + 2, close - i - 2));
    const auto found = values.find(name);
    out += found != values.end() ? found->second : fmt::format("$({})", name);
    i = close;
  }
  return out;
}

Result<EnvList> container_env(const json::Value& pod,
                              const json::Value& container,
                              const PodFacts& facts,
                              const Objects& objects,
                              const EnvList& first) {
  EnvBuilder env(first);
  for (const auto& source : json::array_at(container, "envFrom")) {
    const auto added = add_env_from(source, objects, kube::namespace_of(pod), env);
    if (!added) return fail(added.error());
  }
  for (const auto& item : json::array_at(container, "env")) {
    const auto name = text(at(item, "name"));
    const auto& from = at(item, "valueFrom");
    if (from.is_null()) {
      env.set(name, expand(json::string_at(item, "value"), env.values()));
      continue;
    }
    if (const auto& ref = at(from, "fieldRef"); !ref.is_null()) {
      const auto value = field_value(pod, facts, json::string_at(ref, "fieldPath"));
      if (!value) return fail(value.error());
      env.set(name, *value);
    } else if (const auto& resource = at(from, "resourceFieldRef"); !resource.is_null()) {
      const auto value = resource_value(pod, facts, container, resource);
      if (!value) return fail(value.error());
      env.set(name, *value);
    } else {
      const bool secret = !at(from, "secretKeyRef").is_null();
      const auto value = key_value(at(from, secret ? "secretKeyRef" : "configMapKeyRef"),
                                   secret ? "secrets" : "configmaps",
                                   objects);
      if (!value) return fail(value.error());
      if (*value) env.set(name, **value);
    }
  }
  return env.list();
}

}  // namespace muster::agent
