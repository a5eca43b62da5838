#include "agent/node/gpu_files.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "agent/node/cdi.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryPlace = "/usr/local/nvidia/lib64";
constexpr const char* kProgramPlace = "/usr/local/nvidia/bin";
/// What libcuda needs to compile for a GPU, and what reads its state.
constexpr const char* kLibraries[] = {"libcuda.so.1",
                                      "libnvidia-ml.so.1",
                                      "libnvidia-ptxjitcompiler.so.1",
                                      "libnvidia-nvvm.so.4",
                                      "libcudadebugger.so.1"};

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

/// Files of the driver, and those of the given GPUs: /dev/nvidiactl, nvidia-uvm, nvidia-caps, nvidia3.
std::vector<Device> driver_devices(const std::vector<Gpu>& gpus) {
  std::vector<Device> out;
  std::error_code error;
  for (fs::directory_iterator item("/dev", error), end; !error && item != end;
       item.increment(error)) {
    const auto name = item->path().filename().string();
    if (!name.starts_with("nvidia")) continue;
    const auto number = parse_int(name.substr(6));
    const bool given = !number || std::any_of(gpus.begin(), gpus.end(), [&number](const Gpu& gpu) {
      return gpu.minor == *number;
    });
    if (given) out.push_back({"/dev/" + name, "/dev/" + name, ""});
  }
  return out;
}

Mount shown(const std::string& source, const std::string& target, bool read_only = true) {
  Mount out;
  out.source = source;
  out.target = target;
  out.read_only = read_only;
  out.as_it_is = true;
  return out;
}

/// Values of "--name value" and "--name=value".
std::vector<std::string> values_of(const std::vector<std::string>& args, const std::string& name) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i] == name && i + 1 < args.size())
      out.push_back(args[++i]);
    else if (args[i].starts_with(name + "="))
      out.push_back(args[i].substr(name.size() + 1));
  }
  return out;
}

/// Other names that a library has beside it on this machine: programs ask for libcuda.so.1, and what
/// is described is libcuda.so.580.65.06. In the container they are bound as well.
void add_library_names(std::map<std::string, Mount>& mounts) {
  std::vector<Mount> more;
  for (const auto& [target, mount] : mounts) {
    const fs::path source(mount.source);
    const auto name = source.filename().string();
    const auto stem = name.substr(0, name.find(".so"));
    if (stem == name) continue;
    std::error_code error;
    const auto real = fs::canonical(source, error);
    for (fs::directory_iterator item(source.parent_path(), error), end; !error && item != end;
         item.increment(error)) {
      const auto other = item->path().filename().string();
      std::error_code broken;
      if (other.starts_with(stem + ".so") && item->is_symlink(broken) &&
          fs::canonical(item->path(), broken) == real)
        more.push_back(shown(mount.source, fs::path(target).parent_path() / other));
    }
  }
  for (auto& mount : more) mounts.emplace(mount.target, mount);
}

/// "libcuda.so.1::/usr/lib64/libcuda.so": the second is to lead to the first.
void add_link(const std::string& wish, std::map<std::string, Mount>& mounts) {
  const auto middle = wish.find("::");
  if (middle == std::string::npos) return;
  const fs::path link(wish.substr(middle + 2));
  const auto target = (link.parent_path() / wish.substr(0, middle)).lexically_normal().string();
  const auto found = mounts.find(target);
  if (found == mounts.end() || !link.is_absolute()) return;
  const auto path = link.lexically_normal().string();
  mounts.emplace(path, shown(found->second.source, path));
}

/// What the vendor's programs would do, as far as it can be done without them.
void answer_hooks(const cdi::Edits& edits, std::map<std::string, Mount>& mounts, GpuFiles& out) {
  const auto has = [](const cdi::Hook& hook, const char* word) {
    return std::find(hook.args.begin(), hook.args.end(), word) != hook.args.end();
  };
  std::set<std::string> folders;
  for (const auto& hook : edits.hooks) {
    if (!has(hook, "update-ldcache")) continue;
    for (const auto& folder : values_of(hook.args, "--folder")) {
      if (folder.starts_with('/') && folders.insert(folder).second)
        out.library_folders.push_back(folder);
    }
    add_library_names(mounts);
  }
  for (const auto& hook : edits.hooks) {
    if (has(hook, "create-symlinks")) {
      for (const auto& link : values_of(hook.args, "--link")) add_link(link, mounts);
    } else if (!has(hook, "update-ldcache")) {
      out.notes.push_back(
          fmt::format("the hook \"{}\" that a description of {} names is not run",
                      hook.args.empty() ? hook.path : fmt::format("{}", fmt::join(hook.args, " ")),
                      kGpuKind));
    }
  }
}

tl::unexpected<Error> not_there(const std::string& path) {
  return fail(
      Code::kUnavailable,
      fmt::format(
          "the description of {} names \"{}\", which does not exist; generate the description again (nvidia-ctk cdi generate), or remove it",
          kGpuKind,
          path));
}

Result<GpuFiles> described_files(const cdi::Edits& edits) {
  GpuFiles out;
  std::map<std::string, Mount> mounts;  // by target: devices may name the same file
  std::set<std::string> nodes;
  for (const auto& node : edits.nodes) {
    if (!exists(node.host_path)) return not_there(node.host_path);
    if (nodes.insert(node.path).second)
      out.devices.push_back({node.host_path, node.path, node.permissions});
  }
  for (const auto& mount : edits.mounts) {
    if (!exists(mount.host_path)) return not_there(mount.host_path);
    mounts.emplace(mount.container_path,
                   shown(mount.host_path, mount.container_path, mount.read_only));
  }
  for (const auto& item : edits.env) {
    const auto equals = item.find('=');
    auto name = item.substr(0, equals);
    // Which GPUs are visible is said by the node; "void" there tells other runtimes to keep out.
    if (name != "NVIDIA_VISIBLE_DEVICES")
      out.env.emplace_back(std::move(name), item.substr(equals + 1));
  }
  answer_hooks(edits, mounts, out);
  if (edits.more)
    out.notes.push_back(fmt::format(
        "a description of {} asks for groups, network devices or cache shares, which are not supported",
        kGpuKind));
  for (auto& [target, mount] : mounts) out.mounts.push_back(std::move(mount));
  return out;
}

void put_in_front(std::vector<std::pair<std::string, std::string>>& env,
                  const std::string& name,
                  const std::vector<std::string>& folders) {
  if (folders.empty()) return;
  const auto wanted = fmt::format("{}", fmt::join(folders, ":"));
  const auto found = std::find_if(
      env.begin(), env.end(), [&name](const auto& item) { return item.first == name; });
  if (found == env.end()) {
    env.emplace_back(name, wanted);
  } else {
    found->second = found->second.empty() ? wanted : wanted + ":" + found->second;
  }
}

}  // namespace

DriverPlaces driver_places() {
  DriverPlaces out;
  const auto add = [](const char* name, std::vector<std::string>& to) {
    const auto* value = std::getenv(name);
    for (const auto& folder : split_nonempty(value == nullptr ? "" : value, ':')) {
      if (folder.starts_with('/')) to.push_back(folder);
    }
  };
  add("LD_LIBRARY_PATH", out.libraries);
  add("PATH", out.programs);
  for (const auto* folder : {"/usr/lib/x86_64-linux-gnu",
                             "/usr/lib/aarch64-linux-gnu",
                             "/usr/lib64",
                             "/usr/lib",
                             "/usr/local/nvidia/lib64",
                             "/usr/local/nvidia/lib",
                             "/usr/lib/wsl/lib"})
    out.libraries.emplace_back(folder);
  for (const auto* folder : {"/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/opt/bin"})
    out.programs.emplace_back(folder);
  return out;
}

std::vector<Mount> driver_mounts(const DriverPlaces& places) {
  std::vector<Mount> out;
  const auto find =
      [&out](const std::vector<std::string>& folders, const std::string& name, const char* target) {
        for (const auto& folder : folders) {
          const auto path = folder + "/" + name;
          if (!exists(path)) continue;
          out.push_back(shown(path, fmt::format("{}/{}", target, name)));
          return;
        }
      };
  for (const auto* name : kLibraries) find(places.libraries, name, kLibraryPlace);
  find(places.programs, "nvidia-smi", kProgramPlace);
  return out;
}

Result<GpuFiles> gpu_files(const GpuFilesWish& wish) {
  if (wish.gpus.empty()) return GpuFiles();
  const auto registry = cdi::Registry::load(wish.cdi_folders);
  const auto known = registry.names(kGpuKind);
  std::vector<std::string> names;
  for (const auto& gpu : wish.gpus) {
    for (const auto& name : {gpu.uuid, std::to_string(gpu.index)}) {
      if (!std::binary_search(known.begin(), known.end(), name)) continue;
      names.push_back(name);
      break;
    }
  }
  Result<GpuFiles> out;
  if (names.size() == wish.gpus.size()) {
    const auto edits = registry.edits_of(kGpuKind, names);
    if (!edits) return fail(edits.error());
    out = described_files(*edits);
    if (!out) return out;
  } else {
    out->devices = driver_devices(wish.gpus);
    if (wish.of_image) {
      out->mounts = driver_mounts(driver_places());
      out->library_folders = {kLibraryPlace};
      out->program_folders = {kProgramPlace};
    }
    if (!known.empty())
      out->notes.push_back(
          fmt::format("descriptions of {} do not name every GPU of this machine; "
                      "those that they leave out are given without them",
                      kGpuKind));
  }
  for (const auto& problem : registry.problems()) out->notes.push_back(problem);
  return out;
}

void add_gpu_env(const GpuFiles& files, std::vector<std::pair<std::string, std::string>>& env) {
  for (const auto& [name, value] : files.env) {
    const auto found = std::find_if(env.begin(), env.end(), [&wanted = name](const auto& item) {
      return item.first == wanted;
    });
    if (found == env.end()) {
      env.emplace_back(name, value);
    } else {
      found->second = value;
    }
  }
  put_in_front(env, "LD_LIBRARY_PATH", files.library_folders);
  put_in_front(env, "PATH", files.program_folders);
}

}  // namespace muster::agent
