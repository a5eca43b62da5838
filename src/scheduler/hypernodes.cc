#include "scheduler/hypernodes.h"

#include <fmt/core.h>

#include <algorithm>
#include <regex>
#include <set>

#include "kube/meta.h"
#include "kube/names.h"

namespace muster::scheduler {
namespace {

std::string label_key(std::int64_t tier) {
  return fmt::format("{}{}", kube::names::volcano::kHyperNodeTierPrefix, tier);
}

bool has_labels(const engine::Labels& labels, const json::Value& wanted) {
  const auto& all = json::as_object(wanted);
  return std::all_of(all.begin(), all.end(), [&](const auto& member) {
    return std::any_of(labels.begin(), labels.end(), [&](const auto& label) {
      return label.first == std::string_view(member.key()) &&
             label.second == json::text(member.value());
    });
  });
}

/// Does the member's selector name this one? Labels are for nodes only.
bool selects(const json::Value& selector, const std::string& name, const engine::Labels* labels) {
  if (const std::string_view exact = json::string_at(selector, "exactMatch", "name");
      !exact.empty())
    return exact == name;
  if (const std::string_view pattern = json::string_at(selector, "regexMatch", "pattern");
      !pattern.empty()) {
    try {
      return std::regex_search(name, std::regex(std::string(pattern)));
    } catch (const std::regex_error&) {
      // Volcano's webhook refuses it; a cluster without the webhook has a HyperNode without
      // members.
      return false;
    }
  }
  const json::Value& match = json::at(selector, "labelMatch", "matchLabels");
  return labels != nullptr && match.is_object() && has_labels(*labels, match);
}

}  // namespace

void HyperNodes::rebuild(const std::vector<client::ObjectPtr>& hypernodes,
                         const std::map<std::string, engine::Labels>& nodes) {
  tiers_.clear();
  labels_.clear();
  std::vector<const json::Value*> by_tier;
  for (const auto& object : hypernodes) by_tier.push_back(object.get());
  const auto tier_of = [](const json::Value& h) { return json::int_at(h, "spec", "tier"); };
  // Low tiers first: a HyperNode is made of nodes and of HyperNodes below it.
  std::stable_sort(by_tier.begin(), by_tier.end(), [&](const auto* a, const auto* b) {
    return tier_of(*a) < tier_of(*b);
  });
  std::map<std::string, std::set<std::string>> members;
  for (const json::Value* hypernode : by_tier) {
    std::set<std::string>& mine = members[std::string(kube::name_of(*hypernode))];
    for (const json::Value& member : json::array_at(*hypernode, "spec", "members")) {
      const json::Value& selector = json::at(member, "selector");
      if (json::string_at(member, "type") == "HyperNode") {
        for (const auto& [name, below] : members) {
          if (&below != &mine && selects(selector, name, nullptr))
            mine.insert(below.begin(), below.end());
        }
      } else {
        for (const auto& [name, labels] : nodes) {
          if (selects(selector, name, &labels)) mine.insert(name);
        }
      }
    }
    tiers_[tier_of(*hypernode)] = json::text_at(*hypernode, "spec", "tierName");
    for (const std::string& node : mine)
      labels_[node].emplace_back(label_key(tier_of(*hypernode)),
                                 std::string(kube::name_of(*hypernode)));
  }
}

const engine::Labels& HyperNodes::labels_of(const std::string& node) const {
  static const engine::Labels kNone;
  const auto found = labels_.find(node);
  return found == labels_.end() ? kNone : found->second;
}

std::vector<engine::TopologyLevel> HyperNodes::levels(const json::Value& network_topology) const {
  std::vector<engine::TopologyLevel> out;
  if (!network_topology.is_object() || tiers_.empty()) return out;
  std::int64_t highest = tiers_.rbegin()->first;
  const json::Value& allowed = json::at(network_topology, "highestTierAllowed");
  const std::string name = json::text_at(network_topology, "highestTierName");
  bool bounded = allowed.is_number();
  if (bounded) highest = json::as_int(allowed);
  for (const auto& [tier, tier_name] : tiers_) {
    if (allowed.is_null() && !name.empty() && tier_name == name) {
      highest = tier;
      bounded = true;
    }
  }
  // Hard, but with the whole cluster allowed, is as soft as soft.
  const bool hard = json::as_string(json::at(network_topology, "mode"), "hard") != "soft" &&
                    bounded && highest <= tiers_.rbegin()->first;
  for (auto tier = tiers_.rbegin(); tier != tiers_.rend(); ++tier) {
    if (tier->first > highest) continue;
    out.push_back({label_key(tier->first), hard && out.empty()});
  }
  return out;
}

}  // namespace muster::scheduler
