#include "apiserver/registry/strategy.h"

#include "kube/kinds/validate.h"

namespace muster::apiserver {
namespace {

bool differs_outside(const json::Value& a, const json::Value& b, bool status_counts) {
  const auto spec_members = [&](const json::Value& object) {
    std::size_t count = 0;
    for (const auto& member : json::as_object(object)) {
      const std::string_view key = member.key();
      if (key == "metadata" || key == "apiVersion" || key == "kind" ||
          (key == "status" && !status_counts))
        continue;
      ++count;
    }
    return count;
  };
  if (spec_members(a) != spec_members(b)) return true;
  for (const auto& member : json::as_object(a)) {
    const std::string_view key = member.key();
    if (key == "metadata" || key == "apiVersion" || key == "kind" ||
        (key == "status" && !status_counts))
      continue;
    if (!json::equal(member.value(), json::at(b, key))) return true;
  }
  return false;
}

void keep_member(json::Value& target, const json::Value& source, std::string_view key) {
  const json::Value& value = json::at(source, key);
  if (value.is_null()) {
    json::remove(target, {key});
  } else {
    target.get_object()[key] = value;
  }
}

}  // namespace

void apply_defaults(const Resource& resource, json::Value& object) {
  if (!resource.custom()) {
    kube::set_defaults(*resource.kind, object);
  } else if (resource.version->schema) {
    resource.version->schema->set_defaults(object);
  }
}

void prepare_create(const Resource& resource, json::Value& object, Time now) {
  if (!resource.custom()) {
    kube::prepare_create(*resource.kind, object, now);
    // Kubernetes' structs always print these two.
    for (const std::string_view part : {"spec", "status"}) {
      const kube::Field* field = resource.type != nullptr ? resource.type->find(part) : nullptr;
      if (field != nullptr && field->type.type != nullptr && json::at(object, part).is_null())
        object.get_object()[part] = json::Object();
    }
    return;
  }
  if (resource.version->status_subresource) json::remove(object, {"status"});
  json::make(object, {"metadata", "generation"}) = 1;
}

void prepare_update(const Resource& resource, json::Value& updated, const json::Value& live) {
  if (!resource.custom()) {
    kube::prepare_update(*resource.kind, updated, live);
    return;
  }
  const bool separate = resource.version->status_subresource;
  if (separate) keep_member(updated, live, "status");
  std::int64_t generation = json::int_at(live, "metadata", "generation");
  if (differs_outside(updated, live, !separate)) ++generation;
  json::make(updated, {"metadata", "generation"}) = generation;
}

void prepare_status_update(const Resource& resource,
                           json::Value& updated,
                           const json::Value& live) {
  if (!resource.custom()) {
    kube::prepare_status_update(*resource.kind, updated, live);
    return;
  }
  // A status may be most of the object, megabytes of it: it is moved, and the former one not copied.
  json::Value status, managers;
  if (json::Value* given = updated.get_object().if_contains("status")) status = std::move(*given);
  if (!json::at(updated, "metadata", "managedFields").is_null())
    managers = std::move(json::make(updated, {"metadata", "managedFields"}));
  json::Value next = json::Object(updated.storage());
  for (const auto& member : live.get_object()) {
    if (member.key() != "status")
      next.get_object()[member.key()] = member.value();
    else if (!status.is_null())
      next.get_object()["status"];  // keeps its place
  }
  if (!status.is_null()) next.get_object()["status"] = std::move(status);
  if (!managers.is_null()) json::make(next, {"metadata", "managedFields"}) = std::move(managers);
  updated = std::move(next);
}

std::vector<Cause> check_create(const Resource& resource, const json::Value& object) {
  if (!resource.custom())
    return kube::validate_create(*resource.kind, resource.info.namespaced, object);
  std::vector<Cause> causes =
      kube::validate_metadata(resource.info.namespaced, object, "subdomain");
  if (resource.version->schema) {
    for (Cause& cause : resource.version->schema->validate(object))
      causes.push_back(std::move(cause));
  }
  return causes;
}

std::vector<Cause> check_update(const Resource& resource,
                                const json::Value& updated,
                                const json::Value& live) {
  if (!resource.custom())
    return kube::validate_update(*resource.kind, resource.info.namespaced, updated, live);
  std::vector<Cause> causes =
      kube::validate_update(*resource.kind, resource.info.namespaced, updated, live);
  if (resource.version->schema) {
    for (Cause& cause : resource.version->schema->validate(updated))
      causes.push_back(std::move(cause));
  }
  return causes;
}

bool same_content(const json::Value& a, const json::Value& b) {
  const json::Object& left = json::as_object(a);
  const json::Object& right = json::as_object(b);
  if (left.size() != right.size()) return false;
  for (const auto& member : left) {
    const std::string_view key = member.key();
    if (key != "metadata") {
      const json::Value* other = right.if_contains(key);
      if (other == nullptr || !json::equal(member.value(), *other)) return false;
      continue;
    }
    const json::Object& mine = json::as_object(member.value());
    const json::Object& theirs = json::object_at(b, "metadata");
    const auto counted = [](const json::Object& metadata) {
      return metadata.size() - metadata.count("managedFields") - metadata.count("resourceVersion");
    };
    if (counted(mine) != counted(theirs)) return false;
    for (const auto& field : mine) {
      const std::string_view name = field.key();
      if (name == "managedFields" || name == "resourceVersion") continue;
      const json::Value* other = theirs.if_contains(name);
      if (other == nullptr || !json::equal(field.value(), *other)) return false;
    }
  }
  return true;
}

bool same_managers(const json::Value& a, const json::Value& b) {
  const json::Array& left = json::array_at(a, "metadata", "managedFields");
  const json::Array& right = json::array_at(b, "metadata", "managedFields");
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    for (const std::string_view key :
         {"manager", "operation", "apiVersion", "subresource", "fieldsV1"}) {
      if (!json::equal(json::at(left[i], key), json::at(right[i], key))) return false;
    }
  }
  return true;
}

}  // namespace muster::apiserver
