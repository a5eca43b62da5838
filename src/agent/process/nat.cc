#include "agent/process/nat.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <set>

#include "agent/process/messages.h"
#include "base/strings.h"

extern char** environ;

namespace muster::agent::process {
namespace {

// Addresses of services that nothing translated: refused at once instead of lost on the way out.
constexpr auto kServiceSubnet = "10.96.0.0/16";

std::string chain(const std::string& bridge, const char* what) {
  return fmt::format("MUSTER-{}-{}", what, bridge.substr(4));
}

/// Runs a program with `input`; what it prints, or what it says on failure.
Result<std::string> run(std::vector<std::string> words, const std::string& input) {
  int in[2], out[2], err[2];
  if (pipe2(out, O_CLOEXEC) != 0) return fail(system_error("pipe", errno));
  Fd out_read(out[0]), out_write(out[1]);
  if (pipe2(in, O_CLOEXEC) != 0) return fail(system_error("pipe", errno));
  Fd in_read(in[0]), in_write(in[1]);
  if (pipe2(err, O_CLOEXEC) != 0) return fail(system_error("pipe", errno));
  Fd err_read(err[0]), err_write(err[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in_read.get(), 0);
  posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, err_write.get(), 2);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  const int problem = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (problem != 0) return fail(system_error(fmt::format("start \"{}\"", words[0]), problem));
  in_read.reset();
  out_write.reset();
  err_write.reset();
  for (std::size_t done = 0; done < input.size();) {
    const auto wrote = write(in_write.get(), input.data() + done, input.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  in_write.reset();
  const auto read_all = [](int fd) {  // one after the other: what is said on failure is short
    std::string all;
    char buffer[4096];
    for (ssize_t got; (got = read(fd, buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<std::size_t>(got));
    return all;
  };
  auto printed = read_all(out_read.get());
  const auto said = read_all(err_read.get());
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (status == 0) return printed;
  return fail(Code::kInternal, fmt::format("{}: {}", words[0], trim(said)));
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

std::string nat_rules(const NatConfig& config, const std::vector<VirtualPort>& ports) {
  const auto services = chain(config.bridge, "SVC");
  const auto out = chain(config.bridge, "OUT");
  const auto forward = chain(config.bridge, "FWD");
  std::string rules = fmt::format("*nat\n:{} - [0:0]\n:{} - [0:0]\n", services, out);
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
    }
  }
  rules += fmt::format("-A {} -s {} ! -o {} -j MASQUERADE\n", out, config.subnet, config.bridge);
  // From pod to pod through a virtual address: the answer must come back this way.
  rules += fmt::format("-A {} -s {} -o {} -m conntrack --ctstate DNAT -j MASQUERADE\nCOMMIT\n",
                       out,
                       config.subnet,
                       config.bridge);
  rules += fmt::format("*filter\n:{} - [0:0]\n", forward);
  rules += fmt::format("-A {} -i {} -d {} -j REJECT\n", forward, config.bridge, kServiceSubnet);
  rules += fmt::format("-A {} -i {} -j ACCEPT\n", forward, config.bridge);
  rules += fmt::format("-A {} -o {} -j ACCEPT\nCOMMIT\n", forward, config.bridge);
  return rules;
}

Result<void> apply_nat(const NatConfig& config, const std::vector<VirtualPort>& ports) {
  const auto written = run({"iptables-restore", "--noflush", "-w"}, nat_rules(config, ports));
  if (!written) return fail(written.error());
  for (const auto& jump : jumps(config.bridge)) {
    if (run(command(jump, "-C"), "")) continue;
    const auto added = run(command(jump, "-I"), "");
    if (!added) return fail(added.error());
  }
  std::ofstream("/proc/sys/net/ipv4/ip_forward") << "1";
  return {};
}

std::vector<std::string> bridges_gone(const std::string& rules,
                                      const std::function<bool(const std::string&)>& exists) {
  std::set<std::string> gone;
  for (const auto& line : split_nonempty(rules, '\n')) {
    for (const auto* what : {"SVC", "OUT", "FWD"}) {
      const auto start = fmt::format("-N MUSTER-{}-", what);
      if (!line.starts_with(start)) continue;
      const auto bridge = "mstr" + line.substr(start.size());
      if (!exists(bridge)) gone.insert(bridge);
    }
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
  for (const auto& jump : jumps(bridge)) (void)run(command(jump, "-D"), "");
  for (const auto& [table, what] : {std::pair("nat", "SVC"), {"nat", "OUT"}, {"filter", "FWD"}}) {
    (void)run({"iptables", "-w", "-t", table, "-F", chain(bridge, what)}, "");
    (void)run({"iptables", "-w", "-t", table, "-X", chain(bridge, what)}, "");
  }
}

}  // namespace muster::agent::process
