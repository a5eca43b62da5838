#include "agent/pod/volume_files.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "agent/beneath.h"
#include "agent/files.h"
#include "base/strings.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using json::as_array;
using json::at;
using json::text;

/// Whatever a pod calls a file, it stays in its volume, and beside the names that stand for
/// generations of it ("..data").
Result<void> check_path(const std::string& path) {
  if (!path.empty() && stays_beneath(path) && !path.starts_with("..")) return {};
  return fail(
      Code::kInvalid,
      fmt::format("invalid path \"{}\": it must be relative and may not contain \"..\"", path));
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
  std::map<std::string, std::size_t> last;  // of several sources with the same name the last wins
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto checked = check_path(files[i].path);
    if (!checked) return fail(checked.error());
    last[files[i].path] = i;
  }
  std::vector<VolumeFile> out;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (last[files[i].path] == i) out.push_back(std::move(files[i]));
  }
  return std::optional(std::move(out));
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

/// Below `generation`, which nobody sees yet. fsGroup may read what it is given.
Result<void> write_one(int generation, const VolumeFile& file, std::int64_t group) {
  const auto slash = file.path.rfind('/');
  if (slash != std::string::npos) {
    const auto made = make_directories_beneath(generation, file.path.substr(0, slash), 0755);
    if (!made) return fail(made.error());
  }
  const auto mode = static_cast<mode_t>(file.mode & 07777);
  const auto written = write_beneath(generation, file.path, file.content, mode);
  if (!written || group < 0) return written;
  const auto opened = open_beneath(generation, file.path, O_RDONLY | O_NOFOLLOW);
  if (!opened) return fail(opened.error());
  if (fchown(opened->get(), static_cast<uid_t>(-1), static_cast<gid_t>(group)) == 0)
    fchmod(opened->get(), mode | 0440);
  return {};
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
  const Fd volume(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!volume) return fail(system_error(fmt::format("open \"{}\"", directory), errno));
  const auto base = make_directories_beneath(volume.get(), generation, 0755);
  if (!base) return fail(base.error());
  std::set<std::string> tops;
  for (const auto& file : files) {
    const auto checked = check_path(file.path);
    if (!checked) return checked;
    const auto written = write_one(base->get(), file, group);
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

}  // namespace muster::agent
