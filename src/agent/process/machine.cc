#include "agent/process/machine.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <random>

#include "agent/files.h"
#include "agent/process/host_root.h"
#include "agent/process/keeper_link.h"
#include "agent/process/landlock.h"
#include "agent/process/messages.h"
#include "agent/process/mounts.h"
#include "agent/process/nat.h"
#include "agent/process/own_users.h"
#include "base/log.h"
#include "base/strings.h"
#include "json/json.h"

namespace muster::agent::process {
namespace {

namespace fs = std::filesystem;

/// What `work` says in a process of its own, which has one thread.
template <typename Work>
std::string read_from_child(Work work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return "no pipe";
  Fd reader(ends[0]), writer(ends[1]);
  const auto pid = fork();
  if (pid == 0) {
    const auto text = work();
    _exit(write(writer.get(), text.data(), text.size()) < 0 ? 1 : 0);
  }
  writer.reset();
  std::string out;
  char buffer[512];
  for (ssize_t got = 0; (got = read(reader.get(), buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return out;
}

bool can_make_namespaces() {
  const auto pid = fork();
  if (pid == 0)
    _exit(unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC) == 0
              ? 0
              : 1);
  int status = 1;
  while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Whether a root can be made is found out by making one.
void prepare_files(const std::string& directory, const Seen& seen, Machine& machine) {
  auto planned = prepare_roots(directory, seen);
  std::string problem = planned ? "" : planned.error().message;
  if (planned) {
    machine.roots = std::move(*planned);
    auto pipe = read_from_child([&machine] {
      const auto made = make_host_root_apart(machine.roots, {});
      std::error_code ignored;
      if (made) fs::remove_all(made->folder, ignored);
      return made ? std::string() : made.error().message;
    });
    problem = std::move(pipe);
  }
  if (problem.empty()) return;
  machine.roots.place.clear();
  machine.shortcomings.push_back(
      "pods without an image run on this machine's own files, of which only the data folder and "
      "people's homes are hidden: " +
      problem);
}

/// Found out by making a user namespace, and a mount that shows files of the agent's folder by it.
void prepare_users(const std::string& directory, Machine& machine) {
  const auto problem = read_from_child([&directory]() -> std::string {
    const auto users = make_user_namespace(kRangesFrom);
    if (!users) return users.error().message;
    const auto copy = copy_mount(directory);
    if (!copy) return copy.error().message;
    if (show_owners(copy->get(), {kRangesFrom, users->get()})) return "";
    return fmt::format("the file system of \"{}\" cannot show files with other owners", directory);
  });
  machine.maps_users = problem.empty();
  if (!machine.maps_users)
    machine.shortcomings.push_back(
        "root in a pod is root of this machine, kept from it by what is hidden alone: " + problem);
}

/// What agents left behind that crashed and whose data folder was deleted since: there are only so
/// many subnets. A bridge and the control groups of one agent have the same number.
void remove_orphans() {
  for (const auto& bridge : orphaned_bridges()) {
    log::info("agent", "removing bridge {}: its owner is gone", bridge);
    remove_link(bridge);
    remove_nat(bridge);
    cgroup::remove_tree(cgroup::prepare("muster-" + bridge.substr(4)));
  }
  for (const auto& bridge : bridges_gone_with_rules_left()) {
    log::info("agent", "removing rules of bridge {}, which is gone", bridge);
    remove_nat(bridge);
  }
}

/// Two agents that start at the same moment would choose the same subnet: whoever chooses holds
/// this lock until its bridge has the address. Nobody but root makes bridges, so that a lock that
/// cannot be opened is none that is needed.
Fd lock_choice_of_subnet() {
  Fd lock(open("/run/muster-subnet.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() >= 0) (void)flock(lock.get(), LOCK_EX);
  return lock;
}

Result<void> choose_subnet(const std::string& directory,
                           const std::string& bridge,
                           Machine& machine) {
  const auto path = directory + "/network.json";
  const auto saved = json::parse(read_file(path));
  if (saved) {
    machine.subnet.base = static_cast<std::uint32_t>(json::int_at(*saved, "base"));
    machine.bridge = json::text_at(*saved, "bridge");
  } else {
    const auto free = free_subnet();
    if (!free) return fail(free.error());
    machine.subnet = *free;
    machine.bridge = bridge;
    (void)write_file(
        path, json::dump(json::Object{{"base", machine.subnet.base}, {"bridge", machine.bridge}}));
  }
  machine.gateway = machine.subnet.base + 1;
  return {};
}

Result<void> prepare_network(const std::string& directory, std::uint32_t hash, Machine& machine) {
  const Fd choosing = lock_choice_of_subnet();
  const auto chosen = choose_subnet(directory, fmt::format("mstr{:08x}", hash), machine);
  if (!chosen) return chosen;
  const auto made =
      ensure_bridge(machine.bridge, machine.gateway, machine.subnet.prefix, directory);
  if (!made) {
    machine.shortcomings.push_back("pods share this machine's network: " + made.error().message);
    machine.bridge.clear();
    return {};
  }
  machine.translates = nat_works();
  if (machine.translates) machine.bridge_filtered = arrange_bridge(machine.bridge);
  if (!machine.translates)
    machine.shortcomings.push_back(
        "pods do not reach beyond this machine and services have no addresses "
        "of their own, only names: iptables does not work here");
  return {};
}

/// As the keeper and a container will do it; empty: it works.
std::string try_own_root(const Machine& machine) {
  auto done = become_own_root();
  if (done) done = make_own_network({machine.bridge, machine.subnet});
  if (!done) return done.error().message;
  if (unshare(CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID) != 0)
    return system_error("make namespaces", errno).message;
  const auto root = make_host_root_apart(machine.roots, {});
  std::error_code ignored;
  if (!root) return root.error().message;
  fs::remove_all(root->folder, ignored);
  return read_from_child([] {  // in the new pid namespace
    const auto processes = new_filesystem("proc", {}, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    return processes ? std::string() : processes.error().message;
  });
}

/// Where a pod has the machine's own files, the data folder is closed to it by Landlock, and sockets in
/// it ask for a key. What to tell of it.
std::string close_data(const std::string& directory, const std::string& hidden, Machine& machine) {
  std::error_code error;
  const auto folder = fs::canonical(hidden, error).string();
  // Root has other ways to it, and people expect to write in root's home.
  if (error || geteuid() == 0) return "the data folder is as open to them as to you";
  const auto missing = no_landlock();
  if (!missing.empty())
    return fmt::format("the data folder is as open to them as to you ({})", missing);
  const auto path = keeper_key(directory);
  machine.key = read_file(path);
  if (machine.key.empty()) {
    std::random_device random;
    for (int i = 0; i < 4; ++i) machine.key += fmt::format("{:08x}", random());
    const auto written = write_file(path, machine.key, 0600);
    if (!written) return written.error().message;
  }
  machine.closed = folder;
  return "the data folder is closed to them, and nothing new can be made in the folders above it";
}

/// Namespaces that need no root. What is missing, in one sentence.
Result<Machine> prepare_own_root(const std::string& directory,
                                 std::uint32_t hash,
                                 const MachineWish& wish) {
  Machine machine;
  std::string problem = geteuid() == 0 ? "namespaces are not allowed here" : "not root";
  if (wish.isolate && geteuid() != 0) {
    auto planned = prepare_bound_roots(directory, wish.seen);
    if (!planned) return fail(planned.error());
    machine.roots = std::move(*planned);
    const auto chosen = choose_subnet(directory, fmt::format("mstr{:08x}", hash), machine);
    if (!chosen) return fail(chosen.error());
    problem = read_from_child([&machine] { return try_own_root(machine); });
  }
  machine.isolates = machine.own_root = problem.empty();
  if (!machine.own_root) {
    machine = {};
    auto hidden = close_data(directory, wish.seen.hidden, machine);
    machine.shortcomings.push_back(
        fmt::format("pods share this machine's network, processes and files: no namespaces, "
                    "volumes mounted at paths, or limits ({}); {}",
                    problem,
                    hidden));
    return machine;
  }
  const auto stuck = no_way_out();
  machine.shortcomings.push_back(fmt::format(
      "without root a pod has one user, no limits of memory and processor time, and services have "
      "names but no addresses{}",
      stuck.empty()
          ? std::string()
          : fmt::format("; pods reach each other, but not beyond this machine ({})", stuck)));
  return machine;
}

}  // namespace

Result<Machine> prepare_machine(const std::string& directory, const MachineWish& wish) {
  Machine machine;
  std::uint32_t hash = 2166136261U;
  for (const char c : directory) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  machine.isolates = wish.isolate && geteuid() == 0 && can_make_namespaces();
  if (!machine.isolates) return prepare_own_root(directory, hash, wish);
  remove_orphans();
  machine.cgroups = cgroup::prepare(fmt::format("muster-{:08x}", hash));
  if (!machine.cgroups.missing.empty())
    machine.shortcomings.push_back("missing: " + machine.cgroups.missing);
  if (wish.map_users) prepare_users(directory, machine);
  prepare_files(directory, wish.seen, machine);
  const auto connected = prepare_network(directory, hash, machine);
  if (!connected) return fail(connected.error());
  return machine;
}

void clean_machine(const std::string& directory, const Machine& machine) {
  if (!machine.bridge.empty() && !machine.own_root) remove_link(machine.bridge);
  cgroup::remove_tree(machine.cgroups);
  remove_roots(directory);
  std::error_code ignored;
  fs::remove(directory + "/network.json", ignored);
}

}  // namespace muster::agent::process
