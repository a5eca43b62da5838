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
  /// Queues borrow up to their capability and give back what others deserve (Volcano `capacity`).
  kCapacity,
  /// Shares by weight are a hard cap (Volcano `proportion`).
  kProportion,
};

/// Where a pod goes among the nodes that can take it.
enum class PlacementRule : std::uint8_t {
  /// The node with the least room left in devices, then cpu.
  kPack,
  /// The one with most.
  kSpread,
  /// The one where the least usable device capacity is lost for the usual mix of requests.
  kFragmentation,
};

enum class PolicyKind : std::uint8_t {
  /// Event driven: indexes, reservations, cheapest victims.
  kMuster,
  /// Volcano's actions and plugins, cycle by cycle, as its configuration file says.
  kVolcano,
};

/// One plugin of Volcano's configuration. `off` lists the enable flags set to false
/// ("enablePreemptable" …).
struct VolcanoPlugin {
  std::string name;
  std::vector<std::string> off;
  /// enableHierarchy
  bool hierarchy = false;
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
  /// Check minResources before a gang may be considered (Volcano's enqueue).
  bool admission = false;
  /// Inside a queue, at equal priority, the gang with the smaller dominant share first.
  bool drf = false;
  /// Priority counts between queues too (kube-scheduler's way); false: inside a queue only.
  bool preempt_across_queues = true;

  /// Blocked gangs that hold a reservation at once: the first of all, and behind it gangs of
  /// several members only.
  std::int32_t reservations = 8;
  /// Unknown durations: wait this long before room is held back.
  Duration patience = std::chrono::minutes(10);
  /// Ends teach how long such work takes. Without it only what is declared, or limited, counts.
  bool learn = true;
  /// Waits recomputed in one decide(), at most.
  std::int32_t reason_limit = 1000;
  /// After every decision walk all tables and stop the program where they disagree. For tests: it
  /// costs as much as there is in the tables.
  bool check_tables = false;
};

}  // namespace muster::engine
