#include "portal/api/versions.h"

#include <fmt/core.h>

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

Task<std::optional<std::string>> text_to_write(
    ApiCall& call,
    const EditedText& present,
    const char* what,
    const std::function<json::Value(const std::string&)>& check) {
  const auto body = json::parse(call.request.body);
  if (!body || !json::at(*body, "text").is_string()) {
    co_await answer(call.writer, error_answer(400, "BadRequest", "wanted {text, resourceVersion}"));
    co_return std::nullopt;
  }
  if (json::text_at(*body, "resourceVersion") != present.version) {
    co_await answer_json(
        call.writer,
        {{"code", "Conflict"},
         {"message", fmt::format("somebody else has changed the {} in the meantime", what)},
         {"text", present.text},
         {"resourceVersion", present.version}},
        409);
    co_return std::nullopt;
  }
  std::string text = json::text_at(*body, "text");
  const json::Value checked = check(text);
  if (!json::bool_at(checked, "ok")) {
    co_await answer(call.writer, error_answer(422, "Invalid", json::string_at(checked, "message")));
    co_return std::nullopt;
  }
  co_return text;
}

json::Value refused_text(const std::string& message) {
  return {{"ok", false}, {"line", line_of(message)}, {"message", message}};
}

}  // namespace muster::portal
