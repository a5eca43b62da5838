/// Paths in volumes: what a volume brings is put below its own folder, never beside it.
#include <fmt/core.h>

#include "base/strings.h"
#include "kube/kinds/rules.h"

namespace muster::kube {
namespace {

void no_backsteps(std::string_view path, const std::string& field, Causes& causes) {
  for (const std::string& part : split(path, '/')) {
    if (part != "..") continue;
    causes.invalid(field, quoted(path), "must not contain '..'");
    return;
  }
}

/// Below the volume, and not a name that the agent keeps for itself.
void stays_below(const json::Value& given, const std::string& field, Causes& causes) {
  const std::string_view path = json::as_string(given);
  if (path.starts_with('/')) causes.invalid(field, quoted(path), "must be a relative path");
  no_backsteps(path, field, causes);
  if (path.starts_with("..") && !path.starts_with("../") && path != "..")
    causes.invalid(field, quoted(path), "must not start with '..'");
}

void items_of(const json::Value& source, const std::string& field, Causes& causes) {
  const json::Array& items = json::array_at(source, "items");
  for (std::size_t i = 0; i < items.size(); ++i)
    stays_below(json::at(items[i], "path"), fmt::format("{}.items[{}].path", field, i), causes);
}

void downward_files(const json::Value& source, const std::string& field, Causes& causes) {
  for (const json::Value& file : json::array_at(source, "items"))
    stays_below(json::at(file, "path"), field + ".path", causes);
}

}  // namespace

void validate_volume_paths(const json::Value& volume, const std::string& field, Causes& causes) {
  for (const std::string_view kind : {"secret", "configMap"})
    items_of(json::at(volume, kind), fmt::format("{}.{}", field, kind), causes);
  downward_files(json::at(volume, "downwardAPI"), field + ".downwardAPI", causes);
  if (const json::Value& path = json::at(volume, "hostPath", "path"); path.is_string())
    no_backsteps(json::as_string(path), field + ".hostPath.path", causes);
  const json::Array& sources = json::array_at(volume, "projected", "sources");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::string here = fmt::format("{}.projected.sources[{}]", field, i);
    for (const std::string_view kind : {"secret", "configMap"})
      items_of(json::at(sources[i], kind), fmt::format("{}.{}", here, kind), causes);
    downward_files(json::at(sources[i], "downwardAPI"), here + ".downwardAPI", causes);
    // Kubernetes names the field so.
    if (const json::Value& path = json::at(sources[i], "serviceAccountToken", "path");
        path.is_string())
      stays_below(path, field + ".projected.path", causes);
  }
}

}  // namespace muster::kube
