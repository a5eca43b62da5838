#include "agent/pod/images.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "json/json.h"

namespace muster::agent {
namespace {

std::vector<std::string> words(const json::Value& value) {
  std::vector<std::string> out;
  for (const auto& item : json::as_array(value)) out.push_back(json::text(item));
  return out;
}

/// The image of this program is this program. The image whose only work is to hand a kubectl to an MPI
/// launcher: this program answers `kubectl exec` itself when it is called by that name, so a link to
/// it does.
Image built_in(const std::string& name) {
  Image image;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return image;
  if (name == "muster" || name.starts_with("muster:")) image.entrypoint = {program.string()};
  if (name.find("kubectl-delivery") != std::string::npos)
    image.entrypoint = {"sh", "-c", "ln -sf \"$0\" \"$TARGET_DIR/kubectl\"", program.string()};
  return image;
}

}  // namespace

Result<Images> Images::load(const std::string& path) {
  Images out;
  if (path.empty()) return out;
  std::ifstream file(path);
  if (!file) return fail(Code::kNotFound, fmt::format("image map \"{}\" cannot be read", path));
  std::stringstream content;
  content << file.rdbuf();
  const auto parsed = json::parse_yaml_one(content.str());
  if (!parsed)
    return fail(Code::kInvalid, fmt::format("image map \"{}\": {}", path, parsed.error().message));
  for (const auto& item : json::array_at(*parsed, "images")) {
    const auto name = json::text_at(item, "name");
    Image image;
    image.root = json::text_at(item, "root");
    if (name.empty())
      return fail(Code::kInvalid, fmt::format("image map \"{}\": an entry has no name", path));
    if (!image.root.empty() && !std::filesystem::is_directory(image.root)) {
      return fail(Code::kInvalid,
                  fmt::format("image map \"{}\": root \"{}\" of \"{}\" is not a directory",
                              path,
                              image.root,
                              name));
    }
    image.entrypoint = words(json::at(item, "entrypoint"));
    image.command = words(json::at(item, "command"));
    image.working_dir = json::text_at(item, "workingDir");
    for (const auto& [key, value] : json::object_at(item, "env"))
      image.env.emplace_back(key, json::text(value));
    out.by_name_.emplace_back(name, std::move(image));
  }
  return out;
}

Image Images::find(const std::string& name) const {
  for (const auto& [pattern, image] : by_name_) {
    const bool prefix = pattern.ends_with('*');
    if (prefix ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : name == pattern)
      return image;
  }
  return built_in(name);
}

}  // namespace muster::agent
