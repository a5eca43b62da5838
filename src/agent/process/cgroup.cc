#include "agent/process/cgroup.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "agent/process/messages.h"
#include "base/strings.h"

namespace muster::agent::process::cgroup {
namespace {

namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Result<void> write_file(const std::string& path, const std::string& text) {
  const Fd fd(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return fail(system_error(fmt::format("open \"{}\"", path), errno));
  if (write(fd.get(), text.data(), text.size()) < 0)
    return fail(system_error(fmt::format("write \"{}\" to \"{}\"", text, path), errno));
  return {};
}

std::int64_t number_in(const std::string& path) {
  return parse_int(trim(read_file(path))).value_or(0);
}

/// The value of "key 123" lines.
std::int64_t field_in(const std::string& path, std::string_view key) {
  for (const auto& line : split(read_file(path), '\n')) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return parse_int(line.substr(key.size() + 1)).value_or(0);
  }
  return 0;
}

/// The path of this process's group in the hierarchy of `controller` ("" for v2).
std::string own_group(const std::string& controller) {
  for (const auto& line : split(read_file("/proc/self/cgroup"), '\n')) {
    const auto parts = split(line, ':');
    if (parts.size() < 3) continue;
    const auto names = split(parts[1], ',');
    if (controller.empty() ? parts[1].empty()
                           : std::find(names.begin(), names.end(), controller) != names.end())
      return parts[2];
  }
  return "/";
}

struct MountPoint {
  std::string path, type, options;
};
std::vector<MountPoint> cgroup_mounts() {
  std::vector<MountPoint> found;
  for (const auto& line : split(read_file("/proc/self/mounts"), '\n')) {
    const auto parts = split(line, ' ');
    if (parts.size() > 3 && (parts[2] == "cgroup" || parts[2] == "cgroup2"))
      found.push_back({parts[1], parts[2], parts[3]});
  }
  return found;
}

std::string v1_directory(const std::vector<MountPoint>& mounts,
                         const std::string& controller,
                         const std::string& name) {
  for (const auto& mount : mounts) {
    const auto options = split(mount.options, ',');
    if (mount.type != "cgroup" ||
        std::find(options.begin(), options.end(), controller) == options.end())
      continue;
    const auto own = own_group(controller);
    const auto path = mount.path + (own == "/" ? "" : own) + "/" + name;
    if (mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return path;
  }
  return "";
}

/// v2 forbids groups that have both processes and controlled children, so ours is made beside our
/// own.
std::string v2_directory(const MountPoint& mount, const std::string& name) {
  auto own = own_group("");
  for (auto base = fs::path(mount.path + own);; base = base.parent_path()) {
    if (base.string().size() < mount.path.size()) return "";
    (void)write_file(base / "cgroup.subtree_control", "+cpu +memory +pids");
    const auto enabled = read_file(base / "cgroup.subtree_control");
    if (enabled.find("memory") != std::string::npos && enabled.find("cpu") != std::string::npos) {
      const auto path = (base / name).string();
      if (mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) return "";
      (void)write_file(path + "/cgroup.subtree_control", "+cpu +memory +pids");
      return path;
    }
    if (base == mount.path) return "";
  }
}

/// The distinct directories of a group, whether they exist or not.
std::vector<std::string> directories(const Tree& tree, const std::string& group) {
  std::set<std::string> seen;
  std::vector<std::string> out;
  for (const auto* parent : {&tree.cpu, &tree.cpuacct, &tree.memory, &tree.pids}) {
    if (!parent->empty() && seen.insert(*parent).second)
      out.push_back(group.empty() ? *parent : *parent + "/" + group);
  }
  return out;
}

bool needs_cpu(const Limits& limits) {
  return limits.cpu_milli > 0 || limits.cpu_request_milli > 0;
}

/// Containers that ask for no processor time share one group that gives way to all others, as
/// Kubernetes' best-effort class does.
constexpr auto kBestEffort = "/besteffort";

/// Where a container with these limits belongs.
std::vector<std::string> homes(const Tree& tree, const std::string& group, const Limits& limits) {
  if (tree.version != Version::kV1) return directories(tree, group);
  std::vector<std::string> out;
  const auto add = [&out](const std::string& parent, const std::string& name) {
    if (!parent.empty()) out.push_back(parent + name);
  };
  add(tree.cpu, needs_cpu(limits) ? "/" + group : kBestEffort);
  add(tree.cpuacct, "/" + group);
  add(tree.memory, "/" + group);
  if (limits.pids > 0) add(tree.pids, "/" + group);
  return out;
}

Result<void> apply_limits(const Tree& tree, const std::string& group, const Limits& limits) {
  if (tree.version == Version::kNone) return {};
  constexpr std::int64_t kPeriodUs = 100'000;
  struct Setting {
    std::string path, value;
  };
  std::vector<Setting> settings;
  const bool v2 = tree.version == Version::kV2;
  const auto quota_us = std::max<std::int64_t>(1000, limits.cpu_milli * kPeriodUs / 1000);
  if (limits.cpu_milli > 0) {
    if (v2) {
      settings.push_back(
          {tree.cpu + "/" + group + "/cpu.max", fmt::format("{} {}", quota_us, kPeriodUs)});
    } else {
      settings.push_back({tree.cpu + "/" + group + "/cpu.cfs_quota_us", std::to_string(quota_us)});
    }
  }
  if (limits.cpu_request_milli > 0 || (v2 && limits.cpu_milli == 0)) {
    const auto shares = std::clamp<std::int64_t>(limits.cpu_request_milli * 1024 / 1000, 2, 262144);
    if (v2) {
      settings.push_back({tree.cpu + "/" + group + "/cpu.weight",
                          std::to_string(1 + (shares - 2) * 9999 / 262142)});
    } else {
      settings.push_back({tree.cpu + "/" + group + "/cpu.shares", std::to_string(shares)});
    }
  }
  if (limits.memory_bytes > 0)
    settings.push_back({tree.memory + "/" + group + (v2 ? "/memory.max" : "/memory.limit_in_bytes"),
                        std::to_string(limits.memory_bytes)});
  if (limits.pids > 0)
    settings.push_back({tree.pids + "/" + group + "/pids.max", std::to_string(limits.pids)});
  // Out of memory means killed, not swapped; without swap accounting the file is absent. Memory may
  // never be more than memory and swap together, so that one is written on both sides of it.
  const auto with_swap = tree.memory + "/" + group + "/memory.memsw.limit_in_bytes";
  if (limits.memory_bytes > 0 && !v2)
    (void)write_file(with_swap, std::to_string(limits.memory_bytes));
  for (const auto& setting : settings) {
    if (setting.path.front() != '/') continue;  // this controller is missing; said once at start
    const auto written = write_file(setting.path, setting.value);
    if (!written) return written;
  }
  if (limits.memory_bytes > 0 && !v2)
    (void)write_file(with_swap, std::to_string(limits.memory_bytes));
  if (limits.memory_bytes > 0 && v2)
    (void)write_file(tree.memory + "/" + group + "/memory.swap.max", "0");
  return {};
}

void remove_below(const std::string& path) {
  std::error_code error;
  for (fs::directory_iterator item(path, error), end; !error && item != end;
       item.increment(error)) {
    if (item->is_directory(error)) remove_below(item->path().string());
  }
  rmdir(path.c_str());
}

}  // namespace

Tree prepare(const std::string& name) {
  Tree tree;
  if (geteuid() != 0) {
    tree.missing = "control groups (not root)";
    return tree;
  }
  const auto mounts = cgroup_mounts();
  tree.cpu = v1_directory(mounts, "cpu", name);
  tree.cpuacct = v1_directory(mounts, "cpuacct", name);
  tree.memory = v1_directory(mounts, "memory", name);
  tree.pids = v1_directory(mounts, "pids", name);
  if (!tree.cpu.empty() || !tree.memory.empty()) {
    tree.version = Version::kV1;
    if (!tree.cpu.empty()) {
      mkdir((tree.cpu + kBestEffort).c_str(), 0755);
      chmod((tree.cpu + kBestEffort).c_str(), 0755);  // whatever the umask: containers look at it
      (void)write_file(tree.cpu + kBestEffort + "/cpu.shares", "2");
    }
    for (const auto& [directory, label] : {std::pair(&tree.cpu, "cpu"),
                                           {&tree.cpuacct, "cpuacct"},
                                           {&tree.memory, "memory"},
                                           {&tree.pids, "pids"}}) {
      if (directory->empty())
        tree.missing +=
            fmt::format("{}cgroup controller {}", tree.missing.empty() ? "" : ", ", label);
    }
    return tree;
  }
  for (const auto& mount : mounts) {
    if (mount.type != "cgroup2") continue;
    const auto path = v2_directory(mount, name);
    if (path.empty()) continue;
    tree.version = Version::kV2;
    tree.cpu = tree.cpuacct = tree.memory = tree.pids = path;
    return tree;
  }
  tree.missing = "control groups (no writable cpu and memory controller)";
  return tree;
}

void remove_tree(const Tree& tree) {
  for (const auto& directory : directories(tree, "")) remove_below(directory);
}

std::string group_name(const std::string& sandbox, const std::string& container) {
  return sandbox + "_" + container;
}

Result<void> create(const Tree& tree, const std::string& group, const Limits& limits) {
  if (tree.version == Version::kNone) return {};
  for (const auto& directory : homes(tree, group, limits)) {
    if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST)
      return fail(system_error(fmt::format("make cgroup \"{}\"", directory), errno));
  }
  return apply_limits(tree, group, limits);
}

Result<std::vector<Fd>> open_doors(const Tree& tree,
                                   const std::string& group,
                                   const Limits& limits) {
  // Version 1's "tasks" moves one thread, and the caller has no other. Moving a whole process, as
  // cgroup.procs does, waits for every processor of the machine to pass through its scheduler.
  const auto* file = tree.version == Version::kV1 ? "/tasks" : "/cgroup.procs";
  std::vector<Fd> doors;
  for (const auto& directory : homes(tree, group, limits)) {
    doors.emplace_back(open((directory + file).c_str(), O_WRONLY | O_CLOEXEC));
    if (!doors.back())
      return fail(system_error(fmt::format("open \"{}{}\"", directory, file), errno));
  }
  return doors;
}

Result<void> enter(const std::vector<Fd>& doors) {
  for (const auto& door : doors) {
    if (write(door.get(), "0", 1) != 1) return fail(system_error("enter the control group", errno));
  }
  return {};
}

std::vector<std::pair<std::string, std::string>> places(const Tree& tree,
                                                        const std::string& group,
                                                        const Limits& limits) {
  if (tree.version == Version::kV2) return {{"", tree.cpu + "/" + group}};
  std::vector<std::pair<std::string, std::string>> out;
  if (tree.version != Version::kV1) return out;
  const auto homes_of = homes(tree, group, limits);
  for (const auto& [name, parent] : {std::pair("cpu", &tree.cpu),
                                     {"cpuacct", &tree.cpuacct},
                                     {"memory", &tree.memory},
                                     {"pids", &tree.pids}}) {
    for (const auto& home : homes_of) {
      if (!parent->empty() && home.starts_with(*parent + "/")) out.emplace_back(name, home);
    }
  }
  return out;
}

int open_for_clone(const Tree& tree, const std::string& group) {
  if (tree.version != Version::kV2) return -1;
  return open((tree.cpu + "/" + group).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
}

Result<void> change_limits(const Tree& tree, const std::string& group, const Limits& limits) {
  if (tree.version == Version::kNone) return {};
  const auto inside = members(tree, group);
  const auto made = create(tree, group, limits);
  if (!made) return made;
  if (tree.version != Version::kV1) return {};
  for (const auto& directory : homes(tree, group, limits)) {
    for (const auto pid : inside)
      (void)write_file(directory + "/cgroup.procs", std::to_string(pid));
  }
  return {};
}

void remove(const Tree& tree, const std::string& group) {
  if (tree.version == Version::kNone) return;
  for (const auto& directory : directories(tree, group)) rmdir(directory.c_str());
}

bool oom_killed(const Tree& tree, const std::string& group) {
  if (tree.version == Version::kNone || tree.memory.empty()) return false;
  const auto base = tree.memory + "/" + group;
  return field_in(base + (tree.version == Version::kV2 ? "/memory.events" : "/memory.oom_control"),
                  "oom_kill") > 0;
}

Usage usage(const Tree& tree, const std::string& group) {
  Usage out;
  if (tree.version == Version::kV2) {
    const auto base = tree.cpu + "/" + group;
    out.cpu_usage_ns = field_in(base + "/cpu.stat", "usage_usec") * 1000;
    out.memory_bytes = std::max<std::int64_t>(
        0, number_in(base + "/memory.current") - field_in(base + "/memory.stat", "inactive_file"));
  } else if (tree.version == Version::kV1) {
    if (!tree.cpuacct.empty())
      out.cpu_usage_ns = number_in(tree.cpuacct + "/" + group + "/cpuacct.usage");
    if (!tree.memory.empty()) {
      const auto base = tree.memory + "/" + group;
      out.memory_bytes =
          std::max<std::int64_t>(0,
                                 number_in(base + "/memory.usage_in_bytes") -
                                     field_in(base + "/memory.stat", "total_inactive_file"));
    }
  }
  return out;
}

std::vector<int> members(const Tree& tree, const std::string& group) {
  std::vector<int> out;
  const auto& parent = tree.memory.empty() ? tree.cpuacct : tree.memory;
  if (tree.version == Version::kNone || parent.empty()) return out;
  for (const auto& line : split_nonempty(read_file(parent + "/" + group + "/cgroup.procs"), '\n'))
    out.push_back(static_cast<int>(parse_int(line).value_or(0)));
  return out;
}

std::vector<std::string> groups_of(const Tree& tree, const std::string& sandbox) {
  std::vector<std::string> out;
  const auto& parent = tree.memory.empty() ? tree.cpuacct : tree.memory;
  if (tree.version == Version::kNone || parent.empty()) return out;
  std::error_code error;
  for (fs::directory_iterator item(parent, error), end; !error && item != end;
       item.increment(error)) {
    auto name = item->path().filename().string();
    if (name.starts_with(sandbox + "_")) out.push_back(std::move(name));
  }
  return out;
}

}  // namespace muster::agent::process::cgroup
