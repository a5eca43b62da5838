#include "agent/pod/volumes.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "agent/files.h"
#include "base/quantity.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::as_array;
using json::at;
using json::text;

/// securityContext.fsGroup: the pod's group may use what is in its volumes.
void give_to_group(const std::string& path, std::int64_t group, mode_t mode) {
  if (group < 0) return;
  if (chown(path.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group)) != 0) return;
  chmod(path.c_str(), mode);
}

bool leaves(std::string_view path) {
  if (path.starts_with("/")) return true;
  for (const auto& part : split(path, '/')) {
    if (part == "..") return true;
  }
  return false;
}

/// The files of one ConfigMap or Secret, narrowed by `items`.
Result<void> add_object_files(const json::Value& source,
                              const std::string& kind,
                              const std::string& name,
                              int default_mode,
                              const VolumeInputs& inputs,
                              std::vector<VolumeFile>& out) {
  const bool secret = kind == "secrets";
  const auto found = inputs.objects.find({kind, name});
  const bool optional = json::bool_at(source, "optional");
  if (found == inputs.objects.end() || found->second.is_null()) {
    if (optional) return {};
    return fail(Code::kNotFound,
                fmt::format("{} \"{}\" not found", secret ? "secret" : "configmap", name));
  }
  std::map<std::string, std::string> data;
  for (const auto& [key, value] : json::object_at(found->second, "data")) {
    data[std::string(key)] =
        secret ? base64_decode(json::as_string(value)).value_or("") : text(value);
  }
  for (const auto& [key, value] : json::object_at(found->second, "binaryData"))
    data[std::string(key)] = base64_decode(json::as_string(value)).value_or("");
  const auto& items = at(source, "items");
  if (items.is_null()) {
    for (const auto& [key, content] : data) out.push_back({key, content, default_mode});
    return {};
  }
  for (const auto& item : as_array(items)) {
    const auto key = text(at(item, "key"));
    const auto path = text(at(item, "path"));
    if (leaves(path))
      return fail(Code::kInvalid, fmt::format("volume path \"{}\" leaves the volume", path));
    if (!data.contains(key)) {
      if (optional) continue;
      return fail(
          Code::kNotFound,
          fmt::format("references non-existent {} key: {}", secret ? "secret" : "config", key));
    }
    out.push_back(
        {path, data[key], static_cast<int>(json::as_int(at(item, "mode"), default_mode))});
  }
  return {};
}

Result<void> add_downward_files(const json::Value& source,
                                int default_mode,
                                const VolumeInputs& inputs,
                                std::vector<VolumeFile>& out) {
  for (const auto& item : json::array_at(source, "items")) {
    const auto path = text(at(item, "path"));
    if (leaves(path))
      return fail(Code::kInvalid, fmt::format("volume path \"{}\" leaves the volume", path));
    const auto& field = at(item, "fieldRef");
    const auto value =
        field.is_null()
            ? resource_value(
                  *inputs.pod, inputs.facts, json::null_value(), at(item, "resourceFieldRef"))
            : field_value(*inputs.pod, inputs.facts, json::string_at(field, "fieldPath"));
    if (!value) return fail(value.error());
    out.push_back({path, *value, static_cast<int>(json::as_int(at(item, "mode"), default_mode))});
  }
  return {};
}

Result<void> add_projected_files(const json::Value& volume,
                                 const VolumeInputs& inputs,
                                 std::vector<VolumeFile>& out) {
  const int mode = static_cast<int>(json::as_int(at(volume, "projected", "defaultMode"), 0644));
  // The account volume that admission adds to every pod must not keep a pod from running where
  // accounts are not served.
  const bool injected = json::string_at(volume, "name").starts_with("kube-api-access-");
  for (const auto& source : json::array_at(volume, "projected", "sources")) {
    Result<void> added;
    if (const auto& map = at(source, "configMap"); !map.is_null())
      added = add_object_files(map, "configmaps", text(at(map, "name")), mode, inputs, out);
    if (const auto& secret = at(source, "secret"); !secret.is_null())
      added = add_object_files(secret, "secrets", text(at(secret, "name")), mode, inputs, out);
    if (const auto& downward = at(source, "downwardAPI"); !downward.is_null())
      added = add_downward_files(downward, mode, inputs, out);
    if (const auto& token = at(source, "serviceAccountToken"); !token.is_null()) {
      const auto found = inputs.tokens.find(text(at(token, "audience")));
      out.push_back(
          {text(at(token, "path")), found == inputs.tokens.end() ? "" : found->second, 0644});
    }
    if (!added && !injected) return added;
  }
  return {};
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

Result<std::string> host_path(const json::Value& source) {
  const auto path = text(at(source, "path"));
  const auto type = text(at(source, "type"));
  std::error_code error;
  if (type == "DirectoryOrCreate") fs::create_directories(path, error);
  if (type == "FileOrCreate" && !fs::exists(path, error)) std::ofstream(path).flush();
  if (!fs::exists(path, error))
    return fail(Code::kNotFound,
                fmt::format("hostPath type check failed: {} is not a {}",
                            path,
                            type.empty() ? "path of this machine" : to_lower(type)));
  if ((type == "Directory" || type == "DirectoryOrCreate") && !fs::is_directory(path, error))
    return fail(Code::kInvalid,
                fmt::format("hostPath type check failed: {} is not a directory", path));
  if ((type == "File" || type == "FileOrCreate") && !fs::is_regular_file(path, error))
    return fail(Code::kInvalid, fmt::format("hostPath type check failed: {} is not a file", path));
  return path;
}

Result<Volume> prepare_one(const json::Value& volume,
                           const VolumeInputs& inputs,
                           std::vector<MemoryVolume>& memory) {
  const auto name = text(at(volume, "name"));
  Volume out;
  out.path = fmt::format("{}/volumes/{}", inputs.pod_directory, name);
  if (const auto& host = at(volume, "hostPath"); !host.is_null()) {
    const auto path = host_path(host);
    if (!path) return fail(path.error());
    out.path = *path;
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
  const auto written = write_files(out.path, **files, inputs.group);
  if (!written) return fail(written.error());
  out.read_only = true;
  return out;
}

}  // namespace

Result<std::optional<std::vector<VolumeFile>>> volume_files(const json::Value& volume,
                                                            const VolumeInputs& inputs) {
  std::vector<VolumeFile> files;
  Result<void> added;
  if (const auto& map = at(volume, "configMap"); !map.is_null()) {
    added = add_object_files(map,
                             "configmaps",
                             text(at(map, "name")),
                             static_cast<int>(json::as_int(at(map, "defaultMode"), 0644)),
                             inputs,
                             files);
  } else if (const auto& secret = at(volume, "secret"); !secret.is_null()) {
    added = add_object_files(secret,
                             "secrets",
                             text(at(secret, "secretName")),
                             static_cast<int>(json::as_int(at(secret, "defaultMode"), 0644)),
                             inputs,
                             files);
  } else if (const auto& downward = at(volume, "downwardAPI"); !downward.is_null()) {
    added = add_downward_files(
        downward, static_cast<int>(json::as_int(at(downward, "defaultMode"), 0644)), inputs, files);
  } else if (!at(volume, "projected").is_null()) {
    added = add_projected_files(volume, inputs, files);
  } else {
    return std::optional<std::vector<VolumeFile>>();
  }
  if (!added) return fail(added.error());
  return std::optional(std::move(files));
}

namespace {

/// The files of `directory` are exactly these already.
bool holds_files(const std::string& directory, const std::vector<VolumeFile>& files) {
  std::set<std::string> wanted;
  for (const auto& file : files) {
    wanted.insert(file.path);
    if (read_file(directory + "/..data/" + file.path) != file.content) return false;
  }
  std::size_t present = 0;
  std::error_code error;
  for (fs::recursive_directory_iterator item(directory + "/..data/", error), end;
       !error && item != end;
       item.increment(error)) {
    if (item->is_regular_file(error)) ++present;
  }
  return present == wanted.size();
}

Result<void> write_one(const std::string& path, const VolumeFile& file, std::int64_t group) {
  if (file.path.find('/') != std::string::npos) {
    const auto made = make_directory(path.substr(0, path.rfind('/')));
    if (!made) return made;
  }
  const auto mode = static_cast<mode_t>(file.mode & 07777);
  auto written = write_file(path, file.content, mode);
  if (written) give_to_group(path, group, mode | 0440);
  return written;
}

/// Removes what `directory` shows beyond `tops`.
void remove_others(const std::string& directory, const std::set<std::string>& tops) {
  std::error_code error;
  for (fs::directory_iterator item(directory, error), end; !error && item != end;
       item.increment(error)) {
    const auto name = item->path().filename().string();
    if (!name.starts_with("..") && !tops.contains(name)) unlink(item->path().c_str());
  }
}

}  // namespace

Result<void> write_files(const std::string& directory,
                         const std::vector<VolumeFile>& files,
                         std::int64_t group) {
  const auto data = directory + "/..data";
  char old_generation[256] = {};
  const bool fresh = readlink(data.c_str(), old_generation, sizeof old_generation - 1) <= 0;
  if (!fresh && holds_files(directory, files)) return {};

  static std::atomic<int> counter = 0;
  const auto generation = fmt::format("..{}_{}", getpid(), ++counter);
  const auto base = directory + "/" + generation;
  mkdir(base.c_str(), 0755);
  std::set<std::string> tops;
  for (const auto& file : files) {
    const auto written = write_one(base + "/" + file.path, file, group);
    if (!written) return written;
    tops.insert(file.path.substr(0, file.path.find('/')));
  }
  const auto next = fresh ? data : directory + "/..data_tmp";
  if (!fresh) unlink(next.c_str());
  if (symlink(generation.c_str(), next.c_str()) != 0 ||
      (!fresh && rename(next.c_str(), data.c_str()) != 0))
    return fail(Code::kInternal, fmt::format("replace \"{}\": {}", data, std::strerror(errno)));
  for (const auto& top : tops) {
    const auto link = directory + "/" + top;
    if (symlink(("..data/" + top).c_str(), link.c_str()) != 0 && errno != EEXIST)
      return fail(Code::kInternal, fmt::format("make \"{}\": {}", link, std::strerror(errno)));
  }
  if (fresh) return {};
  remove_others(directory, tops);
  std::error_code ignored;
  fs::remove_all(directory + "/" + old_generation, ignored);
  return {};
}

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
    if (!sub.empty()) {
      if (leaves(sub))
        return fail(Code::kInvalid,
                    fmt::format("subPath \"{}\" leaves the volume \"{}\"", sub, name));
      mount.source += "/" + sub;
      std::error_code error;
      if (!fs::exists(mount.source, error)) fs::create_directories(mount.source, error);
      mount.source = fs::canonical(mount.source, error).string();
      if (mount.source.empty())
        return fail(Code::kNotFound,
                    fmt::format("subPath \"{}\" of volume \"{}\" cannot be made", sub, name));
    }
    out.push_back(std::move(mount));
  }
  return out;
}

}  // namespace muster::agent
