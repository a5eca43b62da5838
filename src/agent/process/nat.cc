#include "agent/process/nat.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/process/run_program.h"
#include "base/log.h"
#include "base/strings.h"

namespace muster::agent::process {
namespace {

// Addresses of services that nothing translated: refused at once instead of lost on the way out.
constexpr auto kServiceSubnet = "10.96.0.0/16";

std::string chain(const std::string& bridge, const char* what) {
  return fmt::format("MUSTER-{}-{}", what, bridge.substr(4));
}

std::string fence_chain(const std::string& bridge, std::size_t number) {
  return chain(bridge, fmt::format("F{}", number).c_str());
}

constexpr std::string_view kNewChain = "-N MUSTER-";

/// Those of this bridge, from the output of `iptables -S`.
std::vector<std::string> chains_in(const std::string& rules, const std::string& bridge) {
  std::vector<std::string> out;
  for (const auto& line : split_nonempty(rules, '\n')) {
    if (line.starts_with(kNewChain) && line.ends_with("-" + bridge.substr(4)))
      out.push_back(line.substr(3));
  }
  return out;
}

/// Lets pass, one line each, what goes this way.
std::string way_rules(const std::string& name, bool inbound, const Fence::Way& way) {
  std::string rules;
  for (const auto& peer : way.peers) {
    const auto from = fmt::format("-A {} {} {}", name, inbound ? "-s" : "-d", peer);
    if (way.ports.empty()) rules += from + " -j RETURN\n";
    for (const auto& ports : way.ports) {
      const auto range = ports.first == 0 ? std::string()
                         : ports.first == ports.last
                             ? fmt::format(" --dport {}", ports.first)
                             : fmt::format(" --dport {}:{}", ports.first, ports.last);
      rules += fmt::format("{} -p {}{} -j RETURN\n", from, to_lower(ports.protocol), range);
    }
  }
  return rules;
}

/// A pod's packets pass the fence of their sender, then that of their receiver; answers pass.
std::string forward_rules(const NatConfig& config, const std::vector<Fence>& fences) {
  const auto forward = chain(config.bridge, "FWD");
  const auto& bridge = config.bridge;
  std::string chains = fmt::format(":{} - [0:0]\n", forward);
  std::string rules = fmt::format("-A {} -i {} -d {} -j REJECT\n", forward, bridge, kServiceSubnet);
  std::string ways;
  if (!fences.empty()) {
    for (const auto* side : {"-i", "-o"}) {
      rules += fmt::format("-A {} {} {} -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT\n",
                           forward,
                           side,
                           bridge);
      // What belongs to a connection that was forgotten (conntrack.h) begins none anew, whoever of
      // the two sends it.
      rules += fmt::format(
          "-A {} {} {} -p tcp ! --syn -m conntrack --ctstate NEW -j DROP\n", forward, side, bridge);
    }
  }
  for (const bool inbound : {false, true}) {
    for (std::size_t i = 0; i < fences.size(); ++i) {
      if (fences[i].inbound != inbound) continue;
      const auto name = fence_chain(bridge, i);
      chains += fmt::format(":{} - [0:0]\n", name);
      for (const auto& pod : fences[i].pods)
        rules += fmt::format("-A {} {} {} {} {}/32 -j {}\n",
                             forward,
                             inbound ? "-o" : "-i",
                             bridge,
                             inbound ? "-d" : "-s",
                             pod,
                             name);
      for (const auto& way : fences[i].ways) ways += way_rules(name, inbound, way);
      ways += fmt::format("-A {} -j DROP\n", name);
    }
  }
  rules += fmt::format("-A {} -i {} -j ACCEPT\n", forward, bridge);
  rules += fmt::format("-A {} -o {} -j ACCEPT\n", forward, bridge);
  return "*filter\n" + chains + rules + ways + "COMMIT\n";
}

/// Somebody else may hold the lock of the rules for a while. Whoever waits longer than this waits for
/// something that does not end, and so would the end of muster.
constexpr Duration kPatience = std::chrono::seconds(10);

Result<std::string> run(std::vector<std::string> words, const std::string& input) {
  return run_program(std::move(words), input, kPatience);
}

/// The rules that lead from the machine's own chains to ours.
struct Jump {
  const char* table;
  std::string words;  // behind "-A "
};
std::vector<Jump> jumps(const std::string& bridge) {
  return {{"nat", fmt::format("PREROUTING -i {} -j {}", bridge, chain(bridge, "SVC"))},
          {"nat", fmt::format("OUTPUT -d {} -j {}", kServiceSubnet, chain(bridge, "SVC"))},
          {"nat", fmt::format("POSTROUTING -j {}", chain(bridge, "OUT"))},
          {"filter", fmt::format("FORWARD -j {}", chain(bridge, "FWD"))}};
}

std::vector<std::string> command(const Jump& jump, const char* action) {
  std::vector<std::string> words{"iptables", "-w", "-t", jump.table, action};
  for (auto& word : split_nonempty(jump.words, ' ')) words.push_back(std::move(word));
  return words;
}

}  // namespace

bool nat_works() {
  return run({"iptables", "-w", "-t", "nat", "-S", "POSTROUTING"}, "").has_value();
}

std::string nat_rules(const NatConfig& config,
                      const std::vector<VirtualPort>& ports,
                      const std::vector<Fence>& fences) {
  const auto services = chain(config.bridge, "SVC");
  const auto out = chain(config.bridge, "OUT");
  std::string rules = fmt::format("*nat\n:{} - [0:0]\n:{} - [0:0]\n", services, out);
  std::set<std::string> targets;
  for (const auto& port : ports) {
    for (std::size_t i = 0; i < port.targets.size(); ++i) {
      // Each rule sees what those before it let pass: 1/3, then 1/2 of the rest, then all.
      const auto left = port.targets.size() - i;
      const auto share = left == 1
                             ? std::string()
                             : fmt::format(" -m statistic --mode random --probability {:.10f}",
                                           1.0 / static_cast<double>(left));
      rules += fmt::format("-A {} -d {}/32 -p {} --dport {}{} -j DNAT --to-destination {}:{}\n",
                           services,
                           port.address,
                           to_lower(port.protocol),
                           port.port,
                           share,
                           port.targets[i].address,
                           port.targets[i].port);
      targets.insert(port.targets[i].address);
    }
  }
  rules += fmt::format("-A {} -s {} ! -o {} -j MASQUERADE\n", out, config.subnet, config.bridge);
  // From a pod to itself through a virtual address: the answer must come back this way.
  for (const auto& target : targets)
    rules += fmt::format(
        "-A {0} -s {1}/32 -d {1}/32 -o {2} -j MASQUERADE\n", out, target, config.bridge);
  return rules + "COMMIT\n" + forward_rules(config, fences);
}

Result<void> apply_nat(const NatConfig& config,
                       const std::vector<VirtualPort>& ports,
                       const std::vector<Fence>& fences) {
  auto rules = nat_rules(config, ports, fences);
  const auto there = run({"iptables", "-w", "-t", "filter", "-S"}, "");
  if (!there) return fail(there.error());
  std::set<std::string> wanted{chain(config.bridge, "FWD")};
  for (std::size_t i = 0; i < fences.size(); ++i) wanted.insert(fence_chain(config.bridge, i));
  std::string old;
  for (const auto& name : chains_in(*there, config.bridge)) {
    if (!wanted.contains(name)) old += fmt::format("-F {0}\n-X {0}\n", name);
  }
  // Behind the rules that no longer lead to them.
  rules.insert(rules.rfind("COMMIT"), old);
  const auto written = run({"iptables-restore", "--noflush", "-w"}, rules);
  if (!written) return fail(written.error());
  for (const auto& jump : jumps(config.bridge)) {
    if (run(command(jump, "-C"), "")) continue;
    const auto added = run(command(jump, "-I"), "");
    if (!added) return fail(added.error());
  }
  return {};
}

bool arrange_bridge(const std::string& bridge) {
  bool filtered = false;
  std::ifstream("/proc/sys/net/bridge/bridge-nf-call-iptables") >> filtered;
  const std::string settings = "/proc/sys/net/ipv4/";
  std::ofstream(settings + "ip_forward") << "1";
  std::ofstream(settings + "conf/" + bridge + "/forwarding") << "1";
  std::ofstream(settings + "conf/" + bridge + "/proxy_arp_pvlan") << !filtered;
  // It is this machine's business to forward between two of its ports.
  std::ofstream(settings + "conf/" + bridge + "/send_redirects") << filtered;
  // Left to itself the kernel thinks about every answer for most of a second.
  std::ofstream(settings + "neigh/" + bridge + "/proxy_delay") << "0";
  std::error_code ignored;
  for (const auto& port :
       std::filesystem::directory_iterator("/sys/class/net/" + bridge + "/brif", ignored)) {
    std::ofstream(port.path() / "isolated") << !filtered;
    std::ofstream(port.path() / "hairpin_mode") << filtered;
  }
  return filtered;
}

std::vector<std::string> bridges_gone(const std::string& rules,
                                      const std::function<bool(const std::string&)>& exists) {
  std::set<std::string> gone;
  for (const auto& line : split_nonempty(rules, '\n')) {
    if (!line.starts_with(kNewChain)) continue;
    const auto bridge = "mstr" + line.substr(line.rfind('-') + 1);
    if (!exists(bridge)) gone.insert(bridge);
  }
  return {gone.begin(), gone.end()};
}

std::vector<std::string> bridges_gone_with_rules_left() {
  std::string rules;
  for (const auto* table : {"nat", "filter"}) {
    const auto printed = run({"iptables", "-w", "-t", table, "-S"}, "");
    if (printed) rules += *printed;
  }
  return bridges_gone(rules, [](const std::string& bridge) {
    return access(("/sys/class/net/" + bridge).c_str(), F_OK) == 0;
  });
}

void remove_nat(const std::string& bridge) {
  bool hangs = false;  // what hung once hangs again, and the end of muster waits
  const auto try_run = [&hangs](std::vector<std::string> words, const std::string& input) {
    Result<std::string> done = fail(Code::kTimeout, "given up");
    if (!hangs) done = run(std::move(words), input);
    hangs = hangs || (!done && done.error().code == Code::kTimeout);
    return done;
  };
  for (const auto& jump : jumps(bridge)) (void)try_run(command(jump, "-D"), "");
  for (const auto* table : {"nat", "filter"}) {
    const auto there = try_run({"iptables", "-w", "-t", table, "-S"}, "");
    if (!there) continue;
    std::string empty, remove;
    for (const auto& name : chains_in(*there, bridge)) {
      empty += fmt::format("-F {}\n", name);
      remove += fmt::format("-X {}\n", name);
    }
    if (!empty.empty())
      (void)try_run({"iptables-restore", "--noflush", "-w"},
                    fmt::format("*{}\n{}{}COMMIT\n", table, empty, remove));
  }
  if (hangs) log::warn("agent", "rules of bridge {} stay: iptables does not end", bridge);
}

}  // namespace muster::agent::process
