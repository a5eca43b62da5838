#include "sim/policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/quantity.h"
#include "base/strings.h"
#include "base/time.h"
#include "json/json.h"

namespace muster::sim {
namespace {

using engine::BackfillMode;
using engine::PlacementRule;
using engine::TenantRule;

/// Reads the keys of one mapping; remembers the first that is wrong and which were asked for.
class Keys {
 public:
  Keys(const json::Value& value, std::string where)
      : object_(json::as_object(value)), where_(std::move(where)) {
    if (!value.is_object()) wrong(fmt::format("{}: wanted keys and values", where_));
  }

  const json::Value& get(std::string_view key) {
    known_.emplace_back(key);
    const auto it = object_.find(key);
    return it == object_.end() ? json::null_value() : it->value();
  }
  std::string text(std::string_view key) {
    const json::Value& value = get(key);
    if (!value.is_null() && !value.is_string())
      wrong(fmt::format("{}.{}: wanted a text", where_, key));
    return json::text(value);
  }
  void flag(std::string_view key, bool& to) {
    const json::Value& value = get(key);
    if (value.is_null()) return;
    if (!value.is_bool()) return wrong(fmt::format("{}.{}: wanted true or false", where_, key));
    to = value.as_bool();
  }
  void number(std::string_view key, std::int32_t& to) {
    const json::Value& value = get(key);
    if (value.is_null()) return;
    if (!value.is_int64() || value.as_int64() < -1'000'000'000 || value.as_int64() > 1'000'000'000)
      return wrong(fmt::format("{}.{}: wanted a whole number", where_, key));
    to = static_cast<std::int32_t>(value.as_int64());
  }
  void duration(std::string_view key, Duration& to) {
    const std::string value = text(key);
    if (value.empty()) return;
    const auto parsed = parse_duration(value);
    if (!parsed) return wrong(fmt::format("{}.{}: {}", where_, key, parsed.error().message));
    to = *parsed;
  }
  template <typename T>
  void one_of(std::string_view key, const std::vector<std::pair<std::string, T>>& choices, T& to) {
    const std::string value = text(key);
    if (value.empty()) return;
    std::vector<std::string> names;
    for (const auto& [name, choice] : choices) {
      names.push_back(name);
      if (name != value) continue;
      to = choice;
      return;
    }
    wrong(fmt::format(
        "{}.{}: wanted one of {}, found \"{}\"", where_, key, join(names, ", "), value));
  }
  void amounts(std::string_view key, engine::ResourceList& to) {
    const json::Value& value = get(key);
    if (value.is_null()) return;
    if (!value.is_object())
      return wrong(fmt::format(
          "{}.{}: wanted resources and amounts, such as nvidia.com/gpu: 8", where_, key));
    for (const auto& member : value.as_object()) {
      const std::string name(member.key());
      const std::string amount =
          member.value().is_string() ? json::text(member.value()) : json::dump(member.value());
      const auto quantity = parse_quantity(amount);
      if (!quantity) {
        wrong(fmt::format("{}.{}.{}: {}", where_, key, name, quantity.error().message));
        continue;
      }
      to.push_back({name, name == "cpu" ? quantity->milli() : quantity->units()});
    }
  }

  void wrong(std::string message) {
    if (error_.empty()) error_ = std::move(message);
  }
  /// What was wrong, a key that nobody knows included.
  [[nodiscard]] std::string error() {
    for (const auto& member : object_) {
      const std::string key(member.key());
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const auto near = nearest(key, known_);
      wrong(fmt::format("{}: unknown key \"{}\"{}",
                        where_,
                        key,
                        near ? fmt::format(" (did you mean \"{}\"?)", *near) : ""));
    }
    return error_;
  }

 private:
  const json::Object& object_;
  std::string where_;
  std::vector<std::string> known_;
  std::string error_;
};

const std::vector<std::pair<std::string, BackfillMode>> kBackfill = {
    {"reservation", BackfillMode::kReservation},
    {"skip", BackfillMode::kSkip},
    {"fifo", BackfillMode::kFifo}};

Result<engine::Queue> parse_queue(const json::Value& value,
                                  const std::string& where,
                                  BackfillMode backfill) {
  Keys keys(value, where);
  engine::Queue queue;
  queue.backfill = backfill;
  queue.name = keys.text("name");
  if (queue.name.empty()) keys.wrong(where + ".name: is needed");
  queue.parent = keys.text("parent");
  keys.number("weight", queue.weight);
  keys.number("priority", queue.priority);
  keys.flag("reclaimable", queue.reclaimable);
  keys.one_of("backfill", kBackfill, queue.backfill);
  keys.amounts("capability", queue.capability);
  keys.amounts("guarantee", queue.guarantee);
  keys.amounts("deserved", queue.deserved);
  if (const std::string error = keys.error(); !error.empty()) return fail(Code::kInvalid, error);
  return queue;
}

Result<Policy> parse_policy(const json::Value& value, const std::string& where) {
  Keys keys(value, where);
  Policy policy;
  policy.name = keys.text("name");
  if (policy.name.empty()) keys.wrong(where + ".name: is needed");
  keys.one_of("backfill", kBackfill, policy.backfill);
  keys.number("reservations", policy.engine.reservations);
  keys.duration("patience", policy.engine.patience);
  keys.one_of<bool>("durations", {{"known", true}, {"learned", false}}, policy.durations_known);
  keys.one_of<PlacementRule>("placement",
                             {{"pack", PlacementRule::kPack},
                              {"spread", PlacementRule::kSpread},
                              {"fragmentation", PlacementRule::kFragmentation}},
                             policy.engine.placement);
  keys.one_of<TenantRule>(
      "tenantRule",
      {{"capacity", TenantRule::kCapacity}, {"proportion", TenantRule::kProportion}},
      policy.engine.tenant_rule);
  keys.one_of<Quota>("quota",
                     {{"deserved", Quota::kDeserved},
                      {"guarantee", Quota::kGuarantee},
                      {"capability", Quota::kCapability}},
                     policy.quota);
  keys.flag("preempt", policy.engine.preempt);
  keys.flag("reclaim", policy.engine.reclaim);
  keys.flag("drf", policy.engine.drf);
  keys.flag("admission", policy.engine.admission);
  keys.flag("preemptAcrossQueues", policy.engine.preempt_across_queues);
  keys.flag("resume", policy.resume);
  keys.flag("tenants", policy.tenants);
  const json::Value& queues = keys.get("queues");
  if (!queues.is_null() && !queues.is_array()) keys.wrong(where + ".queues: wanted a list");
  std::size_t n = 0;
  for (const json::Value& item : json::as_array(queues)) {
    auto queue = parse_queue(item, fmt::format("{}.queues[{}]", where, n++), policy.backfill);
    if (!queue) return fail(queue.error());
    policy.queues.push_back(std::move(*queue));
  }
  if (!policy.queues.empty()) policy.tenants = true;
  if (const std::string error = keys.error(); !error.empty()) return fail(Code::kInvalid, error);
  return policy;
}

}  // namespace

std::vector<std::string> policy_names() {
  return {"fifo", "skip", "backfill", "backfill-unknown", "spread", "fragmentation"};
}

Result<Policy> named_policy(std::string_view name) {
  Policy policy;
  policy.name = std::string(name);
  if (name == "fifo")
    policy.backfill = BackfillMode::kFifo;
  else if (name == "skip")
    policy.backfill = BackfillMode::kSkip;
  else if (name == "backfill") {
  } else if (name == "backfill-unknown")
    policy.durations_known = false;
  else if (name == "spread")
    policy.engine.placement = PlacementRule::kSpread;
  else if (name == "fragmentation")
    policy.engine.placement = PlacementRule::kFragmentation;
  else {
    const auto near = nearest(name, policy_names());
    return fail(Code::kInvalid,
                fmt::format("policy \"{}\" is unknown; wanted a YAML file or one of {}{}",
                            name,
                            join(policy_names(), ", "),
                            near ? fmt::format(" (did you mean \"{}\"?)", *near) : ""));
  }
  return policy;
}

Result<std::vector<Policy>> parse_policies(std::string_view yaml) {
  const auto parsed = json::parse_yaml_one(yaml);
  if (!parsed) return fail(parsed.error());
  std::vector<Policy> policies;
  const json::Value& list = json::at(*parsed, "policies");
  if (list.is_null()) {
    auto policy = parse_policy(*parsed, "policy");
    if (!policy) return fail(policy.error());
    policies.push_back(std::move(*policy));
    return policies;
  }
  if (!list.is_array() || list.as_array().empty())
    return fail(Code::kInvalid, "policies: wanted a list of at least one policy");
  for (std::size_t i = 0; i < list.as_array().size(); ++i) {
    auto policy = parse_policy(list.as_array()[i], fmt::format("policies[{}]", i));
    if (!policy) return fail(policy.error());
    policies.push_back(std::move(*policy));
  }
  return policies;
}

Result<Policy> parse_cluster_policy(std::string_view yaml) {
  auto parsed = json::parse_yaml_one(yaml);
  if (!parsed) return fail(parsed.error());
  if (!parsed->is_object())
    return fail(Code::kInvalid, "wanted keys and values such as placement: spread");
  const json::Value& list = json::at(*parsed, "policies");
  if (list.is_array() && list.as_array().size() != 1) {
    return fail(Code::kInvalid,
                fmt::format("policies: a cluster has one policy, found {}; keep the one to run",
                            list.as_array().size()));
  }
  json::Value only = list.is_array() ? list.as_array()[0] : *parsed;
  for (const std::string_view key : {"durations", "resume", "tenants", "quota"}) {
    if (json::as_object(only).contains(key)) {
      return fail(Code::kInvalid,
                  fmt::format("policy.{}: is for `muster sim` only; remove it", key));
    }
  }
  if (json::as_object(only).contains("queues")) {
    return fail(
        Code::kInvalid,
        "policy.queues: the queues of a cluster are its Queue objects; remove it and `kubectl apply` those");
  }
  if (only.is_object() && !only.as_object().contains("name")) only.as_object()["name"] = "cluster";
  return parse_policy(only, "policy");
}

}  // namespace muster::sim
