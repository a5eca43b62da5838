#include "main/scheduler_config.h"

#include "json/json.h"
#include "scheduler/config.h"
#include "sim/policy.h"

namespace muster {
namespace {

bool is_volcanos(const json::Value& document) {
  const json::Object& keys = json::as_object(document);
  return keys.contains("actions") || keys.contains("tiers") || keys.contains("configurations");
}

}  // namespace

Result<scheduler::Config> parse_scheduler_config(std::string_view yaml) {
  const auto document = json::parse_yaml_one(yaml);
  if (!document) return fail(document.error());
  scheduler::Config config;
  if (is_volcanos(*document)) {
    auto volcano = scheduler::parse_volcano_config(yaml);
    if (!volcano) return fail(volcano.error());
    config.without_effect = scheduler::without_effect(*volcano);
    config.engine.policy = engine::PolicyKind::kVolcano;
    config.engine.volcano = std::move(*volcano);
    return config;
  }
  if (!document->is_object() || document->as_object().empty()) {
    return fail(
        Code::kInvalid,
        "wanted Volcano's \"actions\" and \"tiers\", or keys of Muster's own policy such as \"placement: spread\"");
  }
  auto policy = sim::parse_cluster_policy(yaml);
  if (!policy) return fail(policy.error());
  config.engine = std::move(policy->engine);
  config.backfill = policy->backfill;
  return config;
}

}  // namespace muster
