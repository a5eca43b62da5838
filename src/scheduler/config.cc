#include "scheduler/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>

#include "base/strings.h"
#include "json/json.h"

namespace muster::scheduler {
namespace {

constexpr std::array<std::string_view, 8> kActions = {"enqueue",
                                                      "allocate",
                                                      "backfill",
                                                      "preempt",
                                                      "reclaim",
                                                      "shuffle",
                                                      "gangpreempt",
                                                      "gangreclaim"};
constexpr std::array<std::string_view, 24> kPlugins = {"binpack",
                                                       "capacity",
                                                       "cdp",
                                                       "conformance",
                                                       "deviceshare",
                                                       "drf",
                                                       "extender",
                                                       "gang",
                                                       "network-topology-aware",
                                                       "nodegroup",
                                                       "nodeorder",
                                                       "numa-aware",
                                                       "overcommit",
                                                       "pdb",
                                                       "predicates",
                                                       "priority",
                                                       "proportion",
                                                       "rescheduling",
                                                       "resource-strategy-fit",
                                                       "resourcequota",
                                                       "sla",
                                                       "task-topology",
                                                       "tdm",
                                                       "usage"};

std::string list_of(std::span<const std::string_view> names) {
  std::string out;
  for (const std::string_view name : names) out += (out.empty() ? "" : ", ") + std::string(name);
  return out;
}

Result<engine::VolcanoPlugin> parse_plugin(const json::Value& value) {
  engine::VolcanoPlugin plugin;
  plugin.name = json::text_at(value, "name");
  if (std::find(kPlugins.begin(), kPlugins.end(), plugin.name) == kPlugins.end()) {
    return fail(
        Code::kInvalid,
        fmt::format(
            "tiers: plugin \"{}\" is unknown; wanted one of {}", plugin.name, list_of(kPlugins)));
  }
  for (const auto& member : json::as_object(value)) {
    const std::string_view key = member.key();
    if (!key.starts_with("enable")) continue;
    if (!member.value().is_bool()) {
      return fail(Code::kInvalid,
                  fmt::format("tiers: plugin \"{}\": {}: wanted true or false, found {}",
                              plugin.name,
                              std::string(key),
                              json::dump(member.value())));
    }
    const bool on = json::as_bool(member.value(), true);
    if (key == "enableHierarchy")
      plugin.hierarchy = on;
    else if (!on)
      plugin.off.emplace_back(key);
  }
  for (const auto& member : json::object_at(value, "arguments")) {
    const json::Value& argument = member.value();
    plugin.arguments.emplace_back(
        std::string(member.key()),
        argument.is_string() ? json::text(argument) : json::dump(argument));
  }
  return plugin;
}

constexpr std::array<std::string_view, 13> kHonoured = {"binpack",
                                                        "capacity",
                                                        "conformance",
                                                        "drf",
                                                        "gang",
                                                        "nodeorder",
                                                        "overcommit",
                                                        "pdb",
                                                        "predicates",
                                                        "priority",
                                                        "proportion",
                                                        "sla",
                                                        "network-topology-aware"};

}  // namespace

std::vector<std::string> without_effect(const engine::VolcanoConfig& config) {
  std::vector<std::string> out;
  for (const auto& tier : config.tiers) {
    for (const auto& plugin : tier) {
      if (std::find(kHonoured.begin(), kHonoured.end(), plugin.name) == kHonoured.end())
        out.push_back("plugin " + plugin.name);
    }
  }
  if (std::find(config.actions.begin(), config.actions.end(), "shuffle") != config.actions.end())
    out.emplace_back("action shuffle");
  return out;
}

Result<engine::VolcanoConfig> parse_volcano_config(std::string_view yaml) {
  auto document = json::parse_yaml_one(yaml);
  if (!document) return fail(document.error());
  if (!document->is_object())
    return fail(Code::kInvalid, "wanted a map with \"actions\" and \"tiers\"");
  if (!json::at(*document, "actions").is_null() && !json::at(*document, "actions").is_string()) {
    return fail(
        Code::kInvalid,
        fmt::format("actions: wanted one string such as \"enqueue, allocate, backfill\", found {}",
                    json::dump(json::at(*document, "actions"))));
  }
  if (!json::at(*document, "tiers").is_null() && !json::at(*document, "tiers").is_array()) {
    return fail(Code::kInvalid, "tiers: wanted a list of {plugins: [...]}");
  }
  engine::VolcanoConfig config;
  config.actions.clear();
  for (const std::string& part : split_nonempty(json::string_at(*document, "actions"), ',')) {
    const std::string name(trim(part));
    if (std::find(kActions.begin(), kActions.end(), name) == kActions.end()) {
      return fail(
          Code::kInvalid,
          fmt::format("actions: \"{}\" is unknown; wanted some of {}", name, list_of(kActions)));
    }
    config.actions.push_back(name);
  }
  if (config.actions.empty()) {
    return fail(
        Code::kInvalid,
        "actions: wanted a comma-separated list such as \"enqueue, allocate, backfill\", found none");
  }
  for (const json::Value& tier : json::array_at(*document, "tiers")) {
    config.tiers.emplace_back();
    bool hierarchical_drf = false;
    bool proportion = false;
    for (const json::Value& value : json::array_at(tier, "plugins")) {
      auto plugin = parse_plugin(value);
      if (!plugin) return fail(plugin.error());
      hierarchical_drf = hierarchical_drf || (plugin->name == "drf" && plugin->hierarchy);
      proportion = proportion || plugin->name == "proportion";
      config.tiers.back().push_back(std::move(*plugin));
    }
    if (hierarchical_drf && proportion) {
      return fail(
          Code::kInvalid,
          "tiers: drf with enableHierarchy and proportion exclude each other in one tier; remove one");
    }
  }
  for (const json::Value& value : json::array_at(*document, "configurations")) {
    const std::string name = json::text_at(value, "name");
    if (std::find(kActions.begin(), kActions.end(), name) == kActions.end()) {
      return fail(Code::kInvalid,
                  fmt::format("configurations: \"{}\" is not an action; wanted one of {}",
                              name,
                              list_of(kActions)));
    }
    engine::VolcanoAction action{name, {}};
    for (const auto& member : json::object_at(value, "arguments")) {
      const json::Value& argument = member.value();
      action.arguments.emplace_back(
          std::string(member.key()),
          argument.is_string() ? json::text(argument) : json::dump(argument));
    }
    config.configurations.push_back(std::move(action));
  }
  return config;
}

}  // namespace muster::scheduler
