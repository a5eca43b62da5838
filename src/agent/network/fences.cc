#include "agent/network/fences.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/strings.h"
#include "kube/meta.h"
#include "kube/selector/selector.h"

namespace muster::agent {
namespace {

using json::at;
using kube::LabelSelector;

constexpr auto kAnywhere = "0.0.0.0/0";
/// What the policies of one namespace may put into the machine's table: a fraction of a second.
constexpr std::size_t kLinesMax = 20'000;

struct Network {
  std::uint32_t base = 0;  // host order
  int prefix = 32;
  [[nodiscard]] std::uint32_t mask() const { return prefix == 0 ? 0 : ~0U << (32 - prefix); }
  [[nodiscard]] bool holds(const Network& other) const {
    return other.prefix >= prefix && (other.base & mask()) == base;
  }
};

std::optional<Network> parse_network(std::string_view text) {
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto prefix = parse_int(text.substr(slash + 1));
  in_addr address{};
  if (!prefix || *prefix < 0 || *prefix > 32 ||
      inet_pton(AF_INET, std::string(text.substr(0, slash)).c_str(), &address) != 1)
    return std::nullopt;
  Network out{0, static_cast<int>(*prefix)};
  out.base = ntohl(address.s_addr) & out.mask();
  return out;
}

std::string text_of(const Network& network) {
  return fmt::format("{}.{}.{}.{}/{}",
                     network.base >> 24,
                     (network.base >> 16) & 255,
                     (network.base >> 8) & 255,
                     network.base & 255,
                     network.prefix);
}

/// Halves it until each part is whole or gone.
void add_without(const Network& network,
                 const std::vector<Network>& except,
                 std::vector<std::string>& out) {
  const auto holds = [&](const Network& one) { return one.holds(network); };
  if (std::any_of(except.begin(), except.end(), holds)) return;
  const auto held = [&](const Network& one) { return network.holds(one); };
  if (std::none_of(except.begin(), except.end(), held)) {
    out.push_back(text_of(network));
    return;
  }
  const int prefix = network.prefix + 1;
  add_without({network.base, prefix}, except, out);
  add_without({network.base | (1U << (32 - prefix)), prefix}, except, out);
}

/// The port of this name of a pod's containers; 0: it has none.
int named_port(const json::Value& pod, std::string_view name, std::string_view protocol) {
  for (const auto* list : {"containers", "initContainers"}) {
    for (const auto& container : json::array_at(pod, "spec", list)) {
      for (const auto& port : json::array_at(container, "ports")) {
        if (json::string_at(port, "name") == name &&
            json::as_string(at(port, "protocol"), "TCP") == protocol)
          return static_cast<int>(json::int_at(port, "containerPort"));
      }
    }
  }
  return 0;
}

/// A policy's selector that cannot be read selects nothing; the server refuses such.
LabelSelector selector_of(const json::Value& object) {
  auto parsed = LabelSelector::from_object(object);
  return parsed ? std::move(*parsed) : *LabelSelector::from_object(json::null_value());
}

/// One `ingress` or `egress` entry: whom it speaks of is found once, for all pods.
struct Rule {
  std::vector<std::string> networks;
  std::vector<const AddressedPod*> pods;
  const json::Array* ports = nullptr;  // empty: all
};

/// The policies' rules, applied to one pod after another.
class Fencing {
 public:
  Fencing(const std::map<std::string, client::ObjectPtr>& namespaces,
          const std::vector<AddressedPod>& pods)
      : namespaces_(namespaces) {
    for (const auto& pod : pods) {
      const std::string ns(kube::namespace_of(*pod.pod));
      by_namespace_[ns].push_back(&pod);
      namespace_of_[pod.address] = ns;
    }
  }

  void add(const json::Value& policy) {
    const auto selector = selector_of(at(policy, "spec", "podSelector"));
    std::vector<const AddressedPod*> selected;
    for (const auto* pod : pods_in(std::string(kube::namespace_of(policy)))) {
      if (selector.matches_object(*pod->pod)) selected.push_back(pod);
    }
    if (selected.empty()) return;
    for (const auto& type : json::array_at(policy, "spec", "policyTypes")) {
      const bool inbound = json::as_string(type) == "Ingress";
      const auto rules = rules_of(policy, inbound);
      for (const auto* pod : selected) {
        auto& ways = ways_[{inbound, pod->address}];
        for (const auto& rule : rules) add_ways(rule, inbound, *pod, ways);
      }
    }
  }

  /// Pods that let the same pass have one fence. Those that a namespace asks for beyond its share are
  /// shut: the machine's table is everybody's, and no pod starts while it is written.
  [[nodiscard]] std::vector<Fence> fences() && {
    std::map<std::pair<bool, std::vector<Fence::Way>>, std::vector<std::string>> alike;
    for (auto& [key, ways] : ways_) {
      std::sort(ways.begin(), ways.end());
      ways.erase(std::unique(ways.begin(), ways.end()), ways.end());
      alike[{key.first, std::move(ways)}].push_back(key.second);
    }
    std::vector<Fence> out;
    std::map<std::string, std::size_t> lines;  // by namespace
    for (auto& [key, pods] : alike) {
      std::size_t& used = lines[namespace_of_[pods.front()]];
      used += lines_of(key.second);
      const bool shut = used > kLinesMax;
      out.push_back({key.first, shut ? std::vector<Fence::Way>() : key.second, std::move(pods)});
    }
    return out;
  }

 private:
  static std::size_t lines_of(const std::vector<Fence::Way>& ways) {
    std::size_t lines = 0;
    for (const auto& way : ways)
      lines += way.peers.size() * std::max<std::size_t>(way.ports.size(), 1);
    return lines;
  }

  const std::vector<const AddressedPod*>& pods_in(const std::string& ns) const {
    static const std::vector<const AddressedPod*> kNone;
    const auto found = by_namespace_.find(ns);
    return found == by_namespace_.end() ? kNone : found->second;
  }

  std::vector<Rule> rules_of(const json::Value& policy, bool inbound) const {
    std::vector<Rule> out;
    for (const auto& entry : json::array_at(policy, "spec", inbound ? "ingress" : "egress")) {
      Rule rule;
      rule.ports = &json::array_at(entry, "ports");
      const auto& peers = json::array_at(entry, inbound ? "from" : "to");
      if (peers.empty()) rule.networks.emplace_back(kAnywhere);
      for (const auto& peer : peers) add_peer(peer, std::string(kube::namespace_of(policy)), rule);
      out.push_back(std::move(rule));
    }
    return out;
  }

  void add_peer(const json::Value& peer, const std::string& own, Rule& rule) const {
    if (const auto& block = at(peer, "ipBlock"); !block.is_null()) {
      std::vector<std::string> except;
      for (const auto& one : json::array_at(block, "except")) except.push_back(json::text(one));
      for (auto& part : network_without(json::string_at(block, "cidr"), except))
        rule.networks.push_back(std::move(part));
      return;
    }
    const auto& elsewhere = at(peer, "namespaceSelector");
    const auto& selected = at(peer, "podSelector");
    const auto pods = selected.is_null() ? LabelSelector() : selector_of(selected);
    const auto add = [&](const std::string& ns) {
      for (const auto* pod : pods_in(ns)) {
        if (pods.matches_object(*pod->pod)) rule.pods.push_back(pod);
      }
    };
    if (elsewhere.is_null()) return add(own);
    const auto spaces = selector_of(elsewhere);
    for (const auto& [name, ns] : namespaces_) {
      if (spaces.matches_object(*ns)) add(name);
    }
  }

  /// `pod` is whose fence it is; a port's name is that of the pod that is called.
  static void add_ways(const Rule& rule,
                       bool inbound,
                       const AddressedPod& pod,
                       std::vector<Fence::Way>& ways) {
    Fence::Way way;
    way.peers = rule.networks;
    for (const auto* peer : rule.pods) way.peers.push_back(peer->address + "/32");
    bool any = rule.ports->empty();
    for (const auto& port : *rule.ports) {
      Fence::Ports one;
      one.protocol = std::string(json::as_string(at(port, "protocol"), "TCP"));
      const auto& number = at(port, "port");
      if (number.is_string() && !inbound) {
        for (const auto* peer : rule.pods) {
          one.first = one.last = named_port(*peer->pod, json::as_string(number), one.protocol);
          if (one.first != 0) ways.push_back({{peer->address + "/32"}, {one}});
        }
        continue;
      }
      if (number.is_string()) {
        one.first = one.last = named_port(*pod.pod, json::as_string(number), one.protocol);
        if (one.first == 0) continue;
      } else if (!number.is_null()) {
        one.first = static_cast<int>(json::as_int(number));
        one.last = static_cast<int>(json::as_int(at(port, "endPort"), one.first));
      }
      way.ports.push_back(std::move(one));
      any = true;
    }
    if (any && !way.peers.empty()) ways.push_back(std::move(way));
  }

  const std::map<std::string, client::ObjectPtr>& namespaces_;
  std::map<std::string, std::vector<const AddressedPod*>> by_namespace_;
  std::map<std::string, std::string> namespace_of_;                       // by address
  std::map<std::pair<bool, std::string>, std::vector<Fence::Way>> ways_;  // direction, address
};

}  // namespace

std::vector<std::string> network_without(std::string_view network,
                                         const std::vector<std::string>& except) {
  std::vector<std::string> out;
  const auto whole = parse_network(network);
  if (!whole) return out;
  std::vector<Network> gone;
  for (const auto& one : except) {
    if (const auto parsed = parse_network(one); parsed) gone.push_back(*parsed);
  }
  add_without(*whole, gone, out);
  return out;
}

std::vector<Fence> fences(const std::vector<client::ObjectPtr>& policies,
                          const std::map<std::string, client::ObjectPtr>& namespaces,
                          const std::vector<AddressedPod>& pods) {
  Fencing fencing(namespaces, pods);
  for (const auto& policy : policies) fencing.add(*policy);
  return std::move(fencing).fences();
}

}  // namespace muster::agent
