#include "cli/submit/pai_facts.h"

#include "hived/config_map.h"
#include "kube/meta.h"

namespace muster::cli {

namespace r = client::resources;

Task<pai::Facts> pai_facts(Session& session, std::string protocol) {
  pai::Facts facts;
  if (session.connected()) {
    const auto map = co_await session.cluster().get(
        r::kConfigMaps, hived::kConfigMapNamespace, hived::kConfigMapName);
    if (map) {
      const auto config = hived::parse_config(json::string_at(*map, "data", hived::kConfigMapKey));
      if (config) facts = pai::facts_of(*config);
    }
    const auto claims =
        co_await session.cluster().list(r::kPersistentVolumeClaims, {.ns = session.ns});
    if (claims) {
      for (const json::Value& claim : claims->items) {
        const std::string name(kube::name_of(claim));
        facts.storages[name] = {name, kube::label(claim, "share") != "false"};
      }
    }
    if (!facts.hived) {
      const auto queues = co_await session.cluster().list(r::kQueues, {});
      if (queues) {
        for (const json::Value& queue : queues->items)
          facts.virtual_clusters[std::string(kube::name_of(queue))] = {};
      }
    }
  }
  if (facts.virtual_clusters.empty()) {
    const auto parsed = json::parse_yaml_one(protocol);
    std::string named = parsed ? json::text_at(*parsed, "defaults", "virtualCluster") : "";
    facts.virtual_clusters[named.empty() ? "default" : named] = {};
  }
  facts.ns = session.ns;
  facts.now = session.now();
  co_return facts;
}

}  // namespace muster::cli
