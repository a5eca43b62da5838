#include "agent/pod/volumes.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "agent/beneath.h"
#include "agent/files.h"
#include "agent/pod/volume_files.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::at;
using json::text;

/// securityContext.fsGroup: the pod's group may use what is in its volumes.
void give_to_group(const std::string& path, std::int64_t group, mode_t mode) {
  if (group < 0) return;
  if (chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group)) != 0) return;
  chmod(path.c_str(), mode);
}

Result<std::string> claim_directory(const std::string& claim, const VolumeInputs& inputs) {
  const auto found = inputs.objects.find({"persistentvolumeclaims", claim});
  if (found == inputs.objects.end() || found->second.is_null())
    return fail(Code::kNotFound, fmt::format("persistentvolumeclaim \"{}\" not found", claim));
  const auto path =
      fmt::format("{}/{}_{}", inputs.claims_directory, kube::namespace_of(*inputs.pod), claim);
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail(Code::kInternal, fmt::format("make \"{}\": {}", path, error.message()));
  fs::permissions(path, fs::perms::all, error);
  give_to_group(path, inputs.group, 02777);
  return path;
}

/// As any program makes them: a hostPath is the machine's, not ours.
void make_host_directories(const std::string& path) {
  std::string so_far;
  for (const auto& part : split_nonempty(path, '/')) {
    so_far += "/" + part;
    if (mkdir(so_far.c_str(), 0755) == 0) chmod(so_far.c_str(), 0755);
  }
}

/// Makes what the type says may be made. What is there is looked at through its descriptor, here
/// for a timely word and once more by whoever mounts it.
Result<void> prepare_host_path(const std::string& path, const std::string& type) {
  if (type == "DirectoryOrCreate") make_host_directories(path);
  if (type == "FileOrCreate") {
    const Fd made(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (made) fchmod(made.get(), 0644);
  }
  const Fd opened(open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!opened)
    return fail(Code::kNotFound,
                fmt::format("hostPath type check failed: {} is not a {}",
                            path,
                            type.empty() ? "path of this machine" : to_lower(type)));
  return check_host_type(opened.get(), type, path);
}

Result<Volume> prepare_one(const json::Value& volume,
                           const VolumeInputs& inputs,
                           std::vector<MemoryVolume>& memory) {
  const auto name = text(at(volume, "name"));
  Volume out;
  out.path = fmt::format("{}/volumes/{}", inputs.pod_directory, name);
  if (const auto& host = at(volume, "hostPath"); !host.is_null()) {
    out.path = text(at(host, "path"));
    out.host_type = text(at(host, "type"));
    out.of_host = true;
    std::error_code error;
    const auto real = fs::weakly_canonical(out.path, error).string() + "/";
    if (!inputs.hidden.empty() && real.starts_with(inputs.hidden + "/"))
      return fail(Code::kForbidden,
                  fmt::format("hostPath \"{}\" is in the data folder of muster, which pods may not "
                              "see",
                              out.path));
    const auto prepared = prepare_host_path(out.path, out.host_type);
    if (!prepared) return fail(prepared.error());
    return out;
  }
  if (const auto& claim = at(volume, "persistentVolumeClaim"); !claim.is_null()) {
    const auto path = claim_directory(text(at(claim, "claimName")), inputs);
    if (!path) return fail(path.error());
    out.path = *path;
    out.read_only = json::bool_at(claim, "readOnly");
    return out;
  }
  const auto& empty = at(volume, "emptyDir");
  if (empty.is_null()) out.path = fmt::format("{}/volumes/{}", inputs.run_directory, name);
  const auto made = make_directory(out.path);
  if (!made) return fail(made.error());
  if (!empty.is_null()) {
    chmod(out.path.c_str(), 0777);
    give_to_group(out.path, inputs.group, 02777);
    if (json::string_at(empty, "medium") == "Memory") {
      const auto size = parse_quantity(json::as_string(at(empty, "sizeLimit"), "0"));
      memory.push_back({out.path, size ? size->units() : 0, inputs.group});
    }
    return out;
  }
  const auto files = volume_files(volume, inputs);
  if (!files) return fail(files.error());
  if (!*files) {
    std::string kind = "unknown";
    for (const auto& [key, value] : json::as_object(volume)) {
      if (key != "name") kind = key;
    }
    return fail(Code::kInvalid, fmt::format("volume kind {} is not supported on this node", kind));
  }
  chmod(out.path.c_str(), 0755);  // whatever the umask: a container's user may not be root
  const auto written = write_files(out.path, **files, inputs.group);
  if (!written) return fail(written.error());
  out.read_only = true;
  return out;
}

}  // namespace

Result<PreparedVolumes> prepare_volumes(const VolumeInputs& inputs) {
  PreparedVolumes out;
  for (const auto& volume : json::array_at(*inputs.pod, "spec", "volumes")) {
    const auto name = text(at(volume, "name"));
    auto one = prepare_one(volume, inputs, out.memory);
    if (!one)
      return fail(
          Code::kInternal,
          fmt::format(
              "MountVolume.SetUp failed for volume \"{}\" : {}", name, one.error().message));
    out.by_name[name] = std::move(*one);
  }
  return out;
}

namespace {

/// A word in time for the user: whoever mounts it looks again, and makes what is missing.
Result<void> check_sub_path(const Mount& mount) {
  if (mount.sub_path.empty()) return {};
  if (!stays_beneath(mount.sub_path))
    return fail(
        Code::kInvalid,
        fmt::format("subPath \"{}\" must be relative and may not contain \"..\"", mount.sub_path));
  const Fd root(open(mount.source.c_str(), O_PATH | O_CLOEXEC));
  if (!root) return fail(system_error(fmt::format("open \"{}\"", mount.source), errno));
  const auto opened = open_beneath(root.get(), mount.sub_path);
  if (!opened && opened.error().code != Code::kNotFound) return fail(opened.error());
  return {};
}

}  // namespace

Result<std::vector<Mount>> container_mounts(const json::Value& container,
                                            const PreparedVolumes& volumes,
                                            const EnvList& env) {
  std::vector<Mount> out;
  for (const auto& item : json::array_at(container, "volumeMounts")) {
    const auto name = text(at(item, "name"));
    const auto found = volumes.by_name.find(name);
    if (found == volumes.by_name.end())
      return fail(Code::kInvalid,
                  fmt::format("volumeMount \"{}\" names no volume of the pod", name));
    Mount mount;
    mount.source = found->second.path;
    mount.target = text(at(item, "mountPath"));
    if (!mount.target.starts_with("/")) mount.target = "/" + mount.target;
    mount.read_only = found->second.read_only || json::bool_at(item, "readOnly");
    auto sub = text(at(item, "subPath"));
    if (const auto& expression = at(item, "subPathExpr"); !expression.is_null()) {
      sub = expand(json::as_string(expression),
                   std::map<std::string, std::string>(env.begin(), env.end()));
    }
    mount.host_type = found->second.host_type;
    mount.of_host = found->second.of_host;
    mount.sub_path = sub;
    const auto checked = check_sub_path(mount);
    if (!checked)
      return fail(checked.error().code,
                  fmt::format("failed to prepare subPath for volumeMount \"{}\" of container "
                              "\"{}\": {}",
                              name,
                              text(at(container, "name")),
                              checked.error().message));
    out.push_back(std::move(mount));
  }
  return out;
}

}  // namespace muster::agent
