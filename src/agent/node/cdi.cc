#include "agent/node/cdi.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "agent/files.h"
#include "base/strings.h"
#include "json/json.h"
#include "json/yaml.h"

namespace muster::agent::cdi {
namespace {

namespace fs = std::filesystem;
using json::at;
using json::text;

constexpr std::size_t kBytesMax = 1024 * 1024;
constexpr std::size_t kValuesMax = 50'000;
constexpr std::size_t kFilesMax = 64;

bool is_path(const std::string& path) {
  if (!path.starts_with('/') || path.find('\0') != std::string::npos) return false;
  for (const auto& part : split(path, '/')) {
    if (part == "..") return false;
  }
  return true;
}

/// "vendor.com/class": letters, digits and some marks, of which none is first or last.
bool is_kind(const std::string& kind) {
  const auto parts = split(kind, '/');
  if (parts.size() != 2) return false;
  return std::all_of(parts.begin(), parts.end(), [](const std::string& part) {
    const auto plain = [](char c) {
      return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    };
    return !part.empty() && plain(part.front()) && plain(part.back()) &&
           std::all_of(part.begin(), part.end(), [&plain](char c) {
             return plain(c) || c == '_' || c == '-' || c == '.';
           });
  });
}

tl::unexpected<Error> wrong(std::string problem) {
  return fail(Code::kInvalid, std::move(problem));
}

Result<DeviceNode> read_node(const json::Value& value) {
  DeviceNode out{
      text(at(value, "path")), text(at(value, "hostPath")), text(at(value, "permissions"))};
  if (out.host_path.empty()) out.host_path = out.path;
  // A device elsewhere would lie in the container's own files, where devices do not work.
  if (!is_path(out.path) || !out.path.starts_with("/dev/"))
    return wrong(
        fmt::format("deviceNodes: path \"{}\": wanted an absolute path below /dev", out.path));
  if (!is_path(out.host_path))
    return wrong(
        fmt::format("deviceNodes: hostPath \"{}\": wanted an absolute path", out.host_path));
  if (out.permissions.find_first_not_of("rwm") != std::string::npos)
    return wrong(
        fmt::format("deviceNodes: permissions \"{}\": wanted letters of rwm", out.permissions));
  return out;
}

Result<FileMount> read_mount(const json::Value& value) {
  FileMount out{text(at(value, "hostPath")), text(at(value, "containerPath"))};
  if (!is_path(out.host_path) || !is_path(out.container_path) || out.container_path == "/")
    return wrong(fmt::format(
        "mounts: \"{}\" at \"{}\": wanted absolute paths", out.host_path, out.container_path));
  bool writable = false, read_only = false;
  for (const auto& option : json::array_at(value, "options")) {
    writable = writable || text(option) == "rw";
    read_only = read_only || text(option) == "ro";
  }
  out.read_only = read_only || !writable;
  return out;
}

Result<Edits> read_edits(const json::Value& value) {
  Edits out;
  for (const auto& item : json::array_at(value, "env")) {
    out.env.push_back(text(item));
    if (out.env.back().find('=') == std::string::npos || out.env.back().front() == '=' ||
        out.env.back().find('\0') != std::string::npos)
      return wrong(fmt::format("env \"{}\": wanted NAME=value", out.env.back()));
  }
  for (const auto& item : json::array_at(value, "deviceNodes")) {
    auto node = read_node(item);
    if (!node) return fail(node.error());
    out.nodes.push_back(std::move(*node));
  }
  for (const auto& item : json::array_at(value, "mounts")) {
    auto mount = read_mount(item);
    if (!mount) return fail(mount.error());
    out.mounts.push_back(std::move(*mount));
  }
  for (const auto& item : json::array_at(value, "hooks")) {
    auto& hook = out.hooks.emplace_back();
    hook.path = text(at(item, "path"));
    for (const auto& word : json::array_at(item, "args")) hook.args.push_back(text(word));
  }
  for (const auto* name : {"intelRdt", "additionalGids", "netDevices"})
    out.more = out.more || !at(value, name).is_null();
  return out;
}

/// Files of a folder that are descriptions, by name.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end;
       item.increment(error)) {
    const auto extension = item->path().extension();
    if ((extension == ".json" || extension == ".yaml") && item->is_regular_file(error))
      out.push_back(item->path().string());
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

void Edits::add(const Edits& other) {
  env.insert(env.end(), other.env.begin(), other.env.end());
  nodes.insert(nodes.end(), other.nodes.begin(), other.nodes.end());
  mounts.insert(mounts.end(), other.mounts.begin(), other.mounts.end());
  hooks.insert(hooks.end(), other.hooks.begin(), other.hooks.end());
  more = more || other.more;
}

Result<Spec> parse(std::string_view text_of_file) {
  const auto first = text_of_file.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text_of_file[first] == '{';
  const auto value =
      is_json ? json::parse(text_of_file) : json::parse_yaml_one(text_of_file, kValuesMax);
  if (!value) return fail(value.error());
  if (!value->is_object()) return wrong("wanted an object with cdiVersion, kind and devices");
  const auto version = text(at(*value, "cdiVersion"));
  if (!version.starts_with("0.") && !version.starts_with("1."))
    return wrong(fmt::format("cdiVersion \"{}\": wanted 0.x or 1.x", version));
  Spec out;
  out.kind = text(at(*value, "kind"));
  if (!is_kind(out.kind))
    return wrong(fmt::format("kind \"{}\": wanted \"vendor.com/class\"", out.kind));
  auto common = read_edits(at(*value, "containerEdits"));
  if (!common) return fail(common.error());
  out.edits = std::move(*common);
  for (const auto& item : json::array_at(*value, "devices")) {
    const auto name = text(at(item, "name"));
    if (name.empty()) return wrong("a device without a name");
    auto edits = read_edits(at(item, "containerEdits"));
    if (!edits) return wrong(fmt::format("device \"{}\": {}", name, edits.error().message));
    if (!out.devices.emplace(name, std::move(*edits)).second)
      return wrong(fmt::format("device \"{}\" is named twice", name));
  }
  return out;
}

Registry Registry::load(const std::vector<std::string>& folders) {
  Registry out;
  for (std::size_t folder = 0; folder < folders.size(); ++folder) {
    for (const auto& path : files_in(folders[folder])) {
      if (out.specs_.size() >= kFilesMax) {
        out.problems_.push_back(
            fmt::format("{} and later files are not read: more than {} files describe devices",
                        path,
                        kFilesMax));
        return out;
      }
      auto spec = parse(read_file(path, kBytesMax));
      if (!spec) {
        out.problems_.push_back(
            fmt::format("{} describes no device: {}", path, spec.error().message));
        continue;
      }
      for (const auto& [name, edits] : spec->devices) {
        auto& place = out.devices_[fmt::format("{}={}", spec->kind, name)];
        const bool new_here = place.spec == 0 || place.folder != folder;
        if (!new_here)
          out.problems_.push_back(fmt::format(
              "{}: another file of the folder names {}={} as well", path, spec->kind, name));
        place = {out.specs_.size() + 1, folder, !new_here};
      }
      out.specs_.push_back(std::move(*spec));
    }
  }
  return out;
}

Result<Edits> Registry::edits_of(const std::string& kind,
                                 const std::vector<std::string>& names) const {
  Edits out;
  std::set<std::size_t> common;
  for (const auto& name : names) {
    const auto found = devices_.find(fmt::format("{}={}", kind, name));
    if (found == devices_.end() || found->second.twice)
      return fail(Code::kNotFound,
                  fmt::format("no file describes the device \"{}={}\"", kind, name));
    const auto& spec = specs_[found->second.spec - 1];
    out.add(spec.devices.at(name));
    if (common.insert(found->second.spec).second) out.add(spec.edits);
  }
  return out;
}

std::vector<std::string> Registry::names(const std::string& kind) const {
  std::vector<std::string> out;
  for (const auto& [key, place] : devices_) {
    if (!place.twice && key.starts_with(kind + "=")) out.push_back(key.substr(kind.size() + 1));
  }
  return out;
}

}  // namespace muster::agent::cdi
