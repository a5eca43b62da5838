#include "kube/kinds/defaults.h"

namespace muster::kube {
namespace {

using json::Object;
using json::Value;

void put(Object& object, std::string_view key, Value value) {
  if (!object.contains(key)) object.emplace(key, std::move(value));
}

/// Empty counts as absent, as it does for Go's strings.
void put_text(Object& object, std::string_view key, std::string_view text) {
  Value& value = object[key];
  if (json::as_string(value).empty()) value = text;
}

template <typename Fn>
void each(Object& object, std::string_view key, Fn fn) {
  Value* list = object.if_contains(key);
  if (list == nullptr || !list->is_array()) return;
  for (Value& item : list->get_array()) {
    if (item.is_object()) fn(item.get_object());
  }
}

template <typename Fn>
void with(Object& object, std::string_view key, Fn fn) {
  Value* member = object.if_contains(key);
  if (member != nullptr && member->is_object()) fn(member->get_object());
}

std::string_view pull_policy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const std::size_t slash = image.rfind('/');
  const std::string_view last = slash == std::string_view::npos ? image : image.substr(slash + 1);
  const std::size_t colon = last.find(':');
  return colon == std::string_view::npos || last.substr(colon + 1) == "latest" ? "Always"
                                                                               : "IfNotPresent";
}

void default_http_get(Object& holder) {
  with(holder, "httpGet", [](Object& get) {
    put_text(get, "path", "/");
    put_text(get, "scheme", "HTTP");
  });
  with(holder, "grpc", [](Object& grpc) { put(grpc, "service", ""); });
}

void default_probe(Object& probe) {
  const auto number = [&](std::string_view key, std::int64_t value) {
    Value& have = probe[key];
    if (json::as_int(have) == 0) have = value;
  };
  number("timeoutSeconds", 1);
  number("periodSeconds", 10);
  number("successThreshold", 1);
  number("failureThreshold", 3);
  default_http_get(probe);
}

void default_field_refs(Object& item) {
  with(item, "fieldRef", [](Object& ref) { put_text(ref, "apiVersion", "v1"); });
  with(item, "resourceFieldRef", [](Object& ref) { put(ref, "divisor", "0"); });
}

void requests_from_limits(Object& resources) {
  Value* limits = resources.if_contains("limits");
  if (limits == nullptr || !limits->is_object() || limits->get_object().empty()) return;
  const Object copy = limits->get_object();  // the reference dies when "requests" is added
  Value& requests = resources["requests"];
  if (!requests.is_object()) requests.emplace_object();
  for (const auto& limit : copy) put(requests.get_object(), limit.key(), limit.value());
}

void default_container(Object& container, bool pod, bool host_network) {
  Value& resources = container["resources"];
  if (!resources.is_object()) resources.emplace_object();
  if (pod) requests_from_limits(resources.get_object());
  put_text(container, "terminationMessagePath", "/dev/termination-log");
  put_text(container, "terminationMessagePolicy", "File");
  const Value* image = container.if_contains("image");
  put_text(container,
           "imagePullPolicy",
           pull_policy(image == nullptr ? std::string_view() : json::as_string(*image)));
  each(container, "ports", [&](Object& port) {
    put_text(port, "protocol", "TCP");
    if (host_network && json::is_empty(port["hostPort"])) port["hostPort"] = port["containerPort"];
  });
  each(container, "env", [](Object& env) { with(env, "valueFrom", default_field_refs); });
  for (const std::string_view probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    with(container, probe, default_probe);
  with(container, "lifecycle", [](Object& lifecycle) {
    with(lifecycle, "postStart", default_http_get);
    with(lifecycle, "preStop", default_http_get);
  });
}

void default_volume(Object& volume) {
  if (volume.size() == 1 && volume.contains("name")) {
    volume["emptyDir"].emplace_object();
    return;
  }
  with(volume, "secret", [](Object& secret) { put(secret, "defaultMode", 420); });
  with(volume, "configMap", [](Object& map) { put(map, "defaultMode", 420); });
  with(volume, "hostPath", [](Object& path) { put(path, "type", ""); });
  const auto items = [](Object& source) { each(source, "items", default_field_refs); };
  with(volume, "downwardAPI", [&](Object& api) {
    put(api, "defaultMode", 420);
    items(api);
  });
  with(volume, "projected", [&](Object& projected) {
    put(projected, "defaultMode", 420);
    each(projected, "sources", [&](Object& source) {
      with(source, "downwardAPI", items);
      with(source, "serviceAccountToken", [](Object& token) {
        put(token, "expirationSeconds", 3600);
      });
    });
  });
  with(volume, "ephemeral", [](Object& ephemeral) {
    with(ephemeral, "volumeClaimTemplate", [](Object& claim) {
      with(claim, "spec", [](Object& spec) { put_text(spec, "volumeMode", "Filesystem"); });
    });
  });
}

}  // namespace

void default_pod_spec(json::Value& value, bool pod) {
  if (!value.is_object()) return;
  Object& spec = value.get_object();
  const Value* network = spec.if_contains("hostNetwork");
  const bool host_network = network != nullptr && json::as_bool(*network);
  each(spec, "volumes", default_volume);
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    each(spec, list, [&](Object& container) {
      default_container(container, pod && list != "ephemeralContainers", host_network);
    });
  }
  put_text(spec, "restartPolicy", "Always");
  put(spec, "terminationGracePeriodSeconds", 30);
  put_text(spec, "dnsPolicy", "ClusterFirst");
  // One account under two names: each fills the other.
  const std::string account = json::text(
      spec.contains("serviceAccountName") ? spec["serviceAccountName"] : json::null_value());
  const std::string old_account =
      json::text(spec.contains("serviceAccount") ? spec["serviceAccount"] : json::null_value());
  if (!account.empty())
    spec["serviceAccount"] = account;
  else if (!old_account.empty())
    spec["serviceAccountName"] = old_account;
  put(spec, "securityContext", Object());
  put_text(spec, "schedulerName", "default-scheduler");
  if (!pod) return;
  put(spec, "enableServiceLinks", true);
  with(spec, "resources", requests_from_limits);
}

}  // namespace muster::kube
