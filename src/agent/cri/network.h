/// How pods of a container runtime come to the bridge of all other pods: what the plugins of CNI
/// are told. They take their addresses from the upper quarter of the bridge's; the process runtime
/// has no more than half of them (user_range.h).
#pragma once

#include <cstdint>
#include <string>

namespace muster::agent::cri {

struct Bridge {
  std::string name;
  std::uint32_t base = 0;  // of its /16
};

/// `directory`: where the plugin for addresses remembers those it gave away. Pure.
std::string network_list(const Bridge& bridge, const std::string& directory);

/// The folder of the plugins; empty: they are not installed.
std::string plugin_folder();

}  // namespace muster::agent::cri
