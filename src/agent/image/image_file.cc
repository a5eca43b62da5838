#include "agent/image/image_file.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/files.h"
#include "json/json.h"

namespace muster::agent {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words(const json::Value& value) {
  std::vector<std::string> out;
  for (const auto& item : json::as_array(value)) out.push_back(json::text(item));
  return out;
}

std::vector<std::pair<std::string, std::string>> pairs(const json::Value& value) {
  std::vector<std::pair<std::string, std::string>> out;
  if (!value.is_object()) return out;
  for (const auto& [key, item] : value.get_object()) out.emplace_back(key, json::text(item));
  return out;
}

/// Images that are this program. One of its own name; and, where pods run on this machine's files,
/// the one whose only work is to hand a kubectl to an MPI launcher: this program answers `kubectl
/// exec` itself when it is called by that name, so a link to it does. A launcher in an image of its
/// own could not follow that link.
std::optional<Image> built_in(const std::string& name, bool pulls) {
  const bool itself = name == "muster" || name.starts_with("muster:");
  const bool delivery = !pulls && name.find("kubectl-delivery") != std::string::npos;
  if (!itself && !delivery) return std::nullopt;
  Image image;
  std::error_code failure;
  const auto program = fs::read_symlink("/proc/self/exe", failure).string();
  if (failure) return image;
  if (itself)
    image.entrypoint = {program};
  else
    image.entrypoint = {"sh", "-c", "ln -sf \"$0\" \"$TARGET_DIR/kubectl\"", program};
  return image;
}

Result<Image> read_image(const json::Value& item, const std::string& name) {
  Image image;
  const auto root = json::text_at(item, "root");
  if (!root.empty() && json::bool_at(item, "host"))
    return fail(Code::kInvalid,
                fmt::format("\"{}\" has both a root and \"host: true\"; wanted one", name));
  if (!root.empty() && !fs::is_directory(root))
    return fail(Code::kInvalid,
                fmt::format("root \"{}\" of \"{}\" is not a directory", root, name));
  if (!root.empty() && root != "/") image.layers = {root};
  image.entrypoint = words(json::at(item, "entrypoint"));
  image.command = words(json::at(item, "command"));
  image.working_dir = json::text_at(item, "workingDir");
  image.env = pairs(json::at(item, "env"));
  return image;
}

Result<std::vector<std::string>> read_paths(const json::Value& list, const char* field) {
  auto out = words(list);
  for (const auto& path : out) {
    if (!path.starts_with('/') || path.find("/../") != std::string::npos || path.ends_with("/.."))
      return fail(
          Code::kInvalid,
          fmt::format("host.{}: \"{}\" must be an absolute path without \"..\"", field, path));
  }
  return out;
}

Result<HostFiles> read_host(const json::Value& value) {
  HostFiles out;
  auto show = read_paths(json::at(value, "show"), "show");
  if (!show) return fail(show.error());
  auto hide = read_paths(json::at(value, "hide"), "hide");
  if (!hide) return fail(hide.error());
  out.show = std::move(*show);
  out.hide = std::move(*hide);
  out.env = pairs(json::at(value, "env"));
  // What an image would set: Open MPI refuses to run as root unless told twice.
  if (json::at(value, "env").is_null())
    out.env = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  return out;
}

Result<Collection> read_collection(const json::Value& value) {
  Collection out;
  out.above_percent = static_cast<int>(json::as_int(json::at(value, "above"), out.above_percent));
  out.until_percent = static_cast<int>(json::as_int(json::at(value, "until"), out.until_percent));
  if (out.until_percent < 0 || out.until_percent > out.above_percent || out.above_percent > 100)
    return fail(
        Code::kInvalid,
        fmt::format("collection: wanted 0 <= until <= above <= 100, found until {} and above {}",
                    out.until_percent,
                    out.above_percent));
  if (const auto age = json::text_at(value, "age"); !age.empty()) {
    const auto parsed = parse_duration(age);
    if (!parsed) return fail(Code::kInvalid, "collection.age: " + parsed.error().message);
    out.age = *parsed;
  }
  return out;
}

}  // namespace

Result<ImageFile> ImageFile::load(const std::string& path) {
  if (path.empty()) return parse("{}");
  const auto text = muster::read_file(path);
  if (!text) return fail(Code::kNotFound, fmt::format("image file \"{}\" cannot be read", path));
  auto parsed = parse(*text);
  if (!parsed)
    return fail(Code::kInvalid, fmt::format("image file \"{}\": {}", path, parsed.error().message));
  return parsed;
}

Result<ImageFile> ImageFile::parse(const std::string& text) {
  const auto parsed = json::parse_yaml_one(text);
  if (!parsed) return fail(parsed.error());
  ImageFile out;
  out.source = json::text_at(*parsed, "source");
  for (const auto& item : json::array_at(*parsed, "images")) {
    const auto name = json::text_at(item, "name");
    if (name.empty()) return fail(Code::kInvalid, "an entry of images has no name");
    auto image = read_image(item, name);
    if (!image) return fail(image.error());
    out.by_name_.emplace_back(name, std::move(*image));
  }
  auto host = read_host(json::at(*parsed, "host"));
  if (!host) return fail(host.error());
  out.host = std::move(*host);
  for (const auto& item : json::array_at(*parsed, "registries")) {
    Registry one;
    one.name = json::text_at(item, "name");
    one.endpoint = json::text_at(item, "endpoint");
    one.username = json::text_at(item, "username");
    one.password = json::text_at(item, "password");
    // It becomes the name of a folder.
    if (one.name.empty() || one.name.find('/') != std::string::npos || one.name.starts_with('.'))
      return fail(
          Code::kInvalid,
          fmt::format("registries: \"{}\" is not a registry's host, such as registry.example:5000",
                      one.name));
    out.registries.push_back(std::move(one));
  }
  const auto collection = read_collection(json::at(*parsed, "collection"));
  if (!collection) return fail(collection.error());
  out.collection = *collection;
  return out;
}

std::optional<Image> ImageFile::find(const std::string& name, bool pulls) const {
  for (const auto& [pattern, image] : by_name_) {
    const bool prefix = pattern.ends_with('*');
    if (prefix ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern)
      return image;
  }
  return built_in(name, pulls);
}

}  // namespace muster::agent
