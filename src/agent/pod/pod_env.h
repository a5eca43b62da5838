/// A container's environment and the objects that a pod refers to. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "json/json.h"
#include "kube/meta.h"

namespace muster::agent {

/// ("configmaps" | "secrets" | "persistentvolumeclaims", name) in the pod's namespace.
using ObjectRef = std::pair<std::string, std::string>;
/// Every object the pod's environment and volumes name.
std::vector<ObjectRef> references(const json::Value& pod);
/// Null: it does not exist.
using Objects = std::map<ObjectRef, json::Value>;

/// What is known of the pod only on its node.
struct PodFacts {
  std::string pod_ip;
  std::string host_ip;
  std::int64_t node_cpu_milli = 0;  // for resourceFieldRef without a limit
  std::int64_t node_memory_bytes = 0;
};

/// metadata.name, metadata.labels['x'], status.podIP … ; fails for an unknown path.
Result<std::string> field_value(const json::Value& pod,
                                const PodFacts& facts,
                                std::string_view path);
Result<std::string> resource_value(const json::Value& pod,
                                   const PodFacts& facts,
                                   const json::Value& container,
                                   const json::Value& selector);

/// "$(NAME)" with the value of NAME, "$$" as "$"; an unknown name stays as written.
std::string expand(std::string_view text, const std::map<std::string, std::string>& values);

using EnvList = std::vector<std::pair<std::string, std::string>>;  // in order, a name once
/// envFrom first, then env, later ones seeing earlier ones. The error's text is what Kubernetes
/// shows.
Result<EnvList> container_env(const json::Value& pod,
                              const json::Value& container,
                              const PodFacts& facts,
                              const Objects& objects,
                              const EnvList& first);

}  // namespace muster::agent
