/// How the engine shall decide. One value; change it at run time with ConfigChange.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace muster::engine {

/// Which rules order tenants and bound what they take.
enum class TenantRule : std::uint8_t {
  kCapacity,    ///< Queues borrow up to their capability and give back what others deserve (Volcano
                ///< `capacity`).
  kProportion,  ///< Shares by weight are a hard cap (Volcano `proportion`).
};

/// Where a pod goes among the nodes that can take it.
enum class PlacementRule : std::uint8_t {
  kPack,           ///< The node with the least room left in devices, then cpu.
  kSpread,         ///< The one with most.
  kFragmentation,  ///< The one where the least usable device capacity is lost for the usual mix of
                   ///< requests.
};

enum class PolicyKind : std::uint8_t {
  kMuster,   ///< Event driven: indexes, reservations, cheapest victims.
  kVolcano,  ///< Volcano's actions and plugins, cycle by cycle, as its configuration file says.
};

/// One plugin of Volcano's configuration. `off` lists the enable flags set to false
/// ("enablePreemptable" …).
struct VolcanoPlugin {
  std::string name;
  std::vector<std::string> off;
  bool hierarchy = false;  ///< enableHierarchy
  std::vector<std::pair<std::string, std::string>> arguments;
};

/// Arguments of one action (`configurations` of the file).
struct VolcanoAction {
  std::string name;
  std::vector<std::pair<std::string, std::string>> arguments;
};

struct VolcanoConfig {
  std::vector<std::string> actions = {"enqueue", "allocate", "backfill"};
  std::vector<VolcanoAction> configurations;
  std::vector<std::vector<VolcanoPlugin>> tiers;
};

struct Config {
  PolicyKind policy = PolicyKind::kMuster;
  VolcanoConfig volcano;

  std::string scheduler_name = "muster";
  std::string default_queue = "default";
  std::string device_resource = "nvidia.com/gpu";

  TenantRule tenant_rule = TenantRule::kCapacity;
  PlacementRule placement = PlacementRule::kPack;
  bool preempt = true;
  bool reclaim = true;
  bool admission =
      false;         ///< Check minResources before a gang may be considered (Volcano's enqueue).
  bool drf = false;  ///< Inside a queue, at equal priority, the gang with the smaller dominant
                     ///< share first.
  bool preempt_across_queues = true;  ///< Priority counts between queues too (kube-scheduler's
                                      ///< way); false: inside a queue only.

  /// Blocked gangs that hold a reservation at once: the first of all, and behind it gangs of
  /// several members only.
  std::int32_t reservations = 8;
  Duration patience =
      std::chrono::minutes(10);  ///< Unknown durations: wait this long before room is held back.
  std::int32_t reason_limit = 1000;  ///< Waits recomputed in one decide(), at most.
};

}  // namespace muster::engine
