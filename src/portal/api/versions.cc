#include "portal/api/versions.h"

#include "base/strings.h"
#include "hived/config_map.h"
#include "kube/portal_names.h"

namespace muster::portal {
namespace {

constexpr std::size_t kKept = 20;

/// "line 7: …" -> 7.
std::int64_t line_of(std::string_view message) {
  if (!message.starts_with("line ")) return 0;
  return parse_int(message.substr(5, message.find(':') - 5)).value_or(0);
}

}  // namespace

Task<json::Array> former_versions(World& world, const char* name) {
  const auto map = co_await world.kube.own().get(
      client::resources::kConfigMaps, hived::kConfigMapNamespace, name);
  if (!map) co_return json::Array{};
  const auto list = json::parse(json::string_at(*map, "data", "versions"));
  co_return list ? json::as_array(*list) : json::Array{};
}

Task<void> keep_version(World& world, const char* name, User user, EditedText edited) {
  json::Array list = co_await former_versions(world, name);
  list.insert(list.begin(),
              json::Value{{"version", edited.version},
                          {"at", world.now()},
                          {"user", user.name},
                          {"text", std::move(edited.text)}});
  while (list.size() > kKept) list.pop_back();
  json::Value patch = json::Object{};
  json::make(patch, {"apiVersion"}) = "v1";
  json::make(patch, {"kind"}) = "ConfigMap";
  json::make(patch, {"metadata", "name"}) = name;
  json::make(patch, {"metadata", "namespace"}) = hived::kConfigMapNamespace;
  json::make_object(patch, {"metadata", "labels"})[kube::names::portal::kPart] = "versions";
  json::make(patch, {"data", "versions"}) = json::dump(list);
  auto done = co_await world.kube.own().patch(client::resources::kConfigMaps,
                                              hived::kConfigMapNamespace,
                                              name,
                                              "",
                                              client::PatchType::kMerge,
                                              patch);
  if (!done && done.error().code == Code::kNotFound)
    done = co_await world.kube.own().create(
        client::resources::kConfigMaps, hived::kConfigMapNamespace, std::move(patch));
}

json::Value refused_text(const std::string& message) {
  return {{"ok", false}, {"line", line_of(message)}, {"message", message}};
}

}  // namespace muster::portal
