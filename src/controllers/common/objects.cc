#include "controllers/common/objects.h"

#include <fmt/core.h>

#include "base/strings.h"

namespace muster::controllers {

std::string name_of(const json::Value& object) { return std::string(kube::name_of(object)); }
std::string namespace_of(const json::Value& object) {
  return std::string(kube::namespace_of(object));
}
std::string uid_of(const json::Value& object) { return std::string(kube::uid_of(object)); }
std::string phase_of(const json::Value& pod) { return json::text_at(pod, "status", "phase"); }

bool is_controlled_by(const json::Value& object, const json::Value& owner) {
  for (const auto& reference : json::array_at(object, "metadata", "ownerReferences")) {
    if (json::bool_at(reference, "controller"))
      return json::string_at(reference, "uid") == kube::uid_of(owner);
  }
  return false;
}

bool is_active(const json::Value& pod) {
  const auto phase = phase_of(pod);
  return phase != "Succeeded" && phase != "Failed" && !is_deleting(pod);
}

bool is_ready(const json::Value& pod) { return kube::condition_true(pod, "Ready"); }

std::string label_of(const json::Value& object, std::string_view key) {
  return std::string(kube::label(object, key));
}
std::string annotation_of(const json::Value& object, std::string_view key) {
  return std::string(kube::annotation(object, key));
}

int index_label(const json::Value& object, std::string_view key) {
  const auto number = parse_int(label_of(object, key));
  return number && *number >= 0 && *number < 1'000'000 ? static_cast<int>(*number) : -1;
}

json::Value owner_reference(const json::Value& owner, std::string_view api_version) {
  const auto& version = json::at(owner, "apiVersion");
  return json::Object{{"apiVersion", api_version.empty() ? json::as_string(version) : api_version},
                      {"kind", json::string_at(owner, "kind")},
                      {"name", name_of(owner)},
                      {"uid", uid_of(owner)},
                      {"controller", true},
                      {"blockOwnerDeletion", true}};
}

json::Value make_child(const json::Value& owner,
                       std::string_view api_version,
                       std::string_view kind,
                       std::string_view name) {
  return json::Object{{"apiVersion", api_version},
                      {"kind", kind},
                      {"metadata",
                       json::Object{{"name", name},
                                    {"namespace", namespace_of(owner)},
                                    {"ownerReferences", json::Array{owner_reference(owner)}}}}};
}

json::Array& array_of(json::Value& object, std::string_view key) {
  auto& member = object.as_object()[key];
  if (!member.is_array()) member = json::Array{};
  return member.as_array();
}

json::Array& array_at(json::Value& value, std::initializer_list<std::string_view> path) {
  auto& member = json::make(value, path);
  if (!member.is_array()) member = json::Array{};
  return member.as_array();
}

json::Value env(std::string_view name, std::string_view value) {
  return json::Object{{"name", name}, {"value", value}};
}

void set_label(json::Value& object, std::string_view key, std::string_view value) {
  json::make_object(object, {"metadata", "labels"})[key] = value;
}
void set_annotation(json::Value& object, std::string_view key, std::string_view value) {
  json::make_object(object, {"metadata", "annotations"})[key] = value;
}

bool has_env(const json::Value& container, std::string_view name) {
  for (const auto& item : json::array_at(container, "env")) {
    if (json::string_at(item, "name") == name) return true;
  }
  return false;
}

int find_container(const json::Value& pod_spec, std::string_view name) {
  const auto& containers = json::array_at(pod_spec, "containers");
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (json::string_at(containers[i], "name") == name) return static_cast<int>(i);
  }
  return -1;
}

bool contains(const json::Value& found, const json::Value& wanted) {
  if (!wanted.is_object()) return json::equal(found, wanted);
  if (!found.is_object()) return false;
  for (const auto& [key, value] : wanted.get_object()) {
    if (!contains(json::at(found, std::string_view(key)), value)) return false;
  }
  return true;
}

json::Value map_patch(const json::Value& from, const json::Value& to) {
  json::Object patch;
  for (const auto& [key, value] : json::as_object(from)) {
    if (!json::as_object(to).contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : json::as_object(to)) patch[key] = value;
  return patch;
}

Action create(std::string_view kind, json::Value object) {
  Action action;
  action.verb = Action::Verb::kCreate;
  action.kind = kind;
  action.name = name_of(object);
  action.body = std::move(object);
  return action;
}

Action patch(std::string_view kind, std::string_view name, json::Value merge_patch) {
  Action action;
  action.verb = Action::Verb::kPatch;
  action.kind = kind;
  action.name = name;
  action.body = std::move(merge_patch);
  return action;
}

Action remove(std::string_view kind, const json::Value& object) {
  Action action;
  action.verb = Action::Verb::kDelete;
  action.kind = kind;
  action.name = name_of(object);
  action.uid = uid_of(object);
  return action;
}

Time time_at(const json::Value& value) {
  const auto text = json::as_string(value);
  if (text.empty()) return Time{};
  const auto time = parse_time(text);
  return time ? *time : Time{};
}

json::Value time_value(Time time) { return json::Value(format_time(time)); }

void refuse_foreign(Plan& plan,
                    std::string_view name,
                    std::string_view kind,
                    std::string_view owner_kind) {
  auto message =
      fmt::format("Resource \"{}\" of Kind \"{}\" already exists and is not managed by {}",
                  name,
                  kind,
                  owner_kind);
  plan.events.push_back({true, "ErrResourceExists", message});
  plan.error = std::move(message);
}

}  // namespace muster::controllers
