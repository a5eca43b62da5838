/// What a training job is read as: the defaults that the operator applies in memory, and what no
/// plan can be made of.
#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "controllers/common/training.h"

namespace muster::controllers {

json::Value TrainingKind::with_defaults(const json::Value& original) const {
  json::Value job = original;
  json::make_object(job, {"spec"});
  read_legacy(job);
  auto& policy = json::make_object(job, {"spec", "runPolicy"});
  if (json::at(policy, "cleanPodPolicy").is_null()) policy["cleanPodPolicy"] = "None";
  auto& specs = json::make(job, {"spec", std::string_view(traits_.specs_field)});
  if (specs.is_object()) {
    json::Object folded;
    for (const auto& [key, value] : specs.get_object()) {
      std::string name(std::string_view(key.data(), key.size()));
      for (const auto& type : traits_.types) {
        if (traits_.fold_keys && to_lower(name) == to_lower(type)) name = type;
      }
      json::Value spec = value;
      if (spec.is_object()) {
        auto& object = spec.get_object();
        if (!json::at(spec, "replicas").is_number()) object["replicas"] = default_replicas(name);
        if (json::string_at(spec, "restartPolicy").empty())
          object["restartPolicy"] = traits_.default_restart;
        auto& containers = json::make(spec, {"template", "spec", "containers"});
        if (!traits_.port_name.empty() && containers.is_array() &&
            !containers.get_array().empty()) {
          const int at =
              std::max(0, find_container(json::at(spec, "template", "spec"), traits_.container));
          auto& container = containers.get_array()[static_cast<std::size_t>(at)];
          bool has = false;
          for (const auto& port : json::array_at(container, "ports"))
            has = has || json::string_at(port, "name") == traits_.port_name;
          if (!has && container.is_object())
            array_of(container, "ports")
                .push_back(
                    json::Object{{"name", traits_.port_name}, {"containerPort", traits_.port}});
        }
      }
      folded[name] = std::move(spec);
    }
    specs = std::move(folded);
  }
  add_defaults(job);
  return job;
}

std::string TrainingKind::check(const json::Value& job) const {
  const auto& specs = json::at(job, "spec", std::string_view(traits_.specs_field));
  if (json::as_object(specs).empty())
    return fmt::format("spec.{} must name at least one replica type", traits_.specs_field);
  for (const auto& [type, spec] : json::as_object(specs)) {
    const std::string_view name(type.data(), type.size());
    if (std::find(traits_.types.begin(), traits_.types.end(), name) == traits_.types.end()) {
      return fmt::format("spec.{}[{}] is not a replica type of a {} (wanted one of: {})",
                         traits_.specs_field,
                         name,
                         traits_.kind,
                         join(traits_.types, ", "));
    }
    if (json::array_at(spec, "template", "spec", "containers").empty()) {
      return fmt::format(
          "spec.{}[{}].template.spec.containers must not be empty", traits_.specs_field, name);
    }
    if (traits_.services &&
        find_container(json::at(spec, "template", "spec"), traits_.container) < 0) {
      return fmt::format(
          "spec.{}[{}].template.spec.containers must have at least one container with name {}",
          traits_.specs_field,
          name,
          traits_.container);
    }
  }
  return {};
}

int port_of(const Traits& traits, const ReplicaSpec& replica) {
  for (const auto& container : json::array_at(*replica.pod_template, "spec", "containers")) {
    if (json::string_at(container, "name") != traits.container) continue;
    for (const auto& port : json::array_at(container, "ports")) {
      if (json::string_at(port, "name") == traits.port_name)
        return static_cast<int>(json::int_at(port, "containerPort"));
    }
  }
  return traits.port;
}

}  // namespace muster::controllers
