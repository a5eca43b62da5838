#include "engine/volcano/plugin.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

constexpr std::array<std::pair<std::string_view, MakePlugin*>, 12> kPlugins = {{
    {"binpack", make_binpack},
    {"capacity", make_capacity},
    {"conformance", make_conformance},
    {"drf", make_drf},
    {"gang", make_gang},
    {"nodeorder", make_nodeorder},
    {"overcommit", make_overcommit},
    {"pdb", make_pdb},
    {"predicates", make_predicates},
    {"priority", make_priority},
    {"proportion", make_proportion},
    {"sla", make_sla},
}};

}  // namespace

bool Plugin::on(std::string_view flag) const {
  return std::find(config_.off.begin(), config_.off.end(), flag) == config_.off.end();
}

std::string Plugin::argument(std::string_view name) const {
  for (const auto& [k, v] : config_.arguments) {
    if (k == name) return v;
  }
  return "";
}

std::int64_t Plugin::integer(std::string_view name, std::int64_t fallback) const {
  return parse_int(argument(name)).value_or(fallback);
}

std::unique_ptr<Plugin> make_plugin(const VolcanoPlugin& config, Snapshot& snapshot) {
  for (const auto& [name, make] : kPlugins) {
    if (name == config.name) return make(config, snapshot);
  }
  return std::make_unique<Plugin>(config, snapshot);
}

}  // namespace muster::engine::volcano
