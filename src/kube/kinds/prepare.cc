// What a write resets and keeps before it is validated and stored.
#include <algorithm>

#include "kube/kinds/defaults.h"
#include "kube/kinds/put.h"
#include "kube/kinds/validate.h"

namespace muster::kube {
namespace {

using json::Object;
using json::Value;

bool same_outside_metadata(const Value& a, const Value& b, bool status_too) {
  const Object& left = json::as_object(a);
  const Object& right = json::as_object(b);
  const auto skip = [&](std::string_view key) {
    return key == "metadata" || key == "apiVersion" || key == "kind" ||
           (status_too && key == "status");
  };
  const auto covered = [&](const Object& from, const Object& in) {
    return std::all_of(from.begin(), from.end(), [&](const auto& member) {
      if (skip(member.key())) return true;
      const Value* other = in.if_contains(member.key());
      return other != nullptr && json::equal(member.value(), *other);
    });
  };
  return covered(left, right) && covered(right, left);
}

void keep(Value& updated, const Value& live, std::string_view key) {
  const Value& value = json::at(live, "metadata", key);
  if (value.is_null())
    json::remove(updated, {"metadata", key});
  else
    json::make(updated, {"metadata", key}) = value;
}

/// The usual case, which then needs no copy of the rest.
bool only_status_differs(const Value& updated, const Value& live) {
  const Object& mine = json::as_object(updated);
  const Object& theirs = json::as_object(live);
  if (mine.size() - mine.count("status") != theirs.size() - theirs.count("status")) return false;
  for (const auto& member : mine) {
    if (member.key() == "status") continue;
    const Value* other = theirs.if_contains(member.key());
    if (other == nullptr || !json::equal(member.value(), *other)) return false;
  }
  return true;
}

}  // namespace

void set_defaults(const Kind& kind, json::Value& object) {
  if (!object.is_object()) return;
  if (kind.type != nullptr) canonicalise(*kind.type, object);
  if (kind.rules->defaults != nullptr) kind.rules->defaults(object.get_object());
}

void set_status_defaults(const Kind& kind, json::Value& object) {
  const Field* field = kind.type == nullptr ? nullptr : kind.type->find("status");
  const bool known = field != nullptr && field->type.shape == FieldType::Shape::kMessage;
  if (!known || kind.rules->defaults_status) return set_defaults(kind, object);
  Object* members = object.if_object();
  if (Value* status = members == nullptr ? nullptr : members->if_contains("status"))
    canonicalise(*field->type.type, *status);
}

void prepare_create(const Kind& kind, json::Value& object, Time now) {
  if (!object.is_object()) return;
  Object& metadata = json::make_object(object, {"metadata"});
  for (const std::string_view key : {"selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"})
    json::remove(object, {"metadata", key});
  const KindRules& rules = *kind.rules;
  if (rules.generation)
    metadata["generation"] = 1;
  else
    json::remove(object, {"metadata", "generation"});
  if (rules.prepare_create != nullptr) rules.prepare_create(object);
  if (!kind.status_subresource || rules.registers_with_status) return;
  json::make(object, {"status"}) =
      rules.first_status != nullptr ? rules.first_status(object, now) : Object();
}

void prepare_update(const Kind& kind, json::Value& updated, const json::Value& live) {
  if (!updated.is_object()) return;
  json::make_object(updated, {"metadata"});
  for (const std::string_view key : {"uid", "creationTimestamp", "generation"})
    keep(updated, live, key);
  // Nobody takes these away; who would set them is refused by validate_update().
  for (const std::string_view key : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (json::at(updated, "metadata", key).is_null()) keep(updated, live, key);
  }
  json::remove(updated, {"metadata", "selfLink"});
  const KindRules& rules = *kind.rules;
  if (kind.status_subresource) keep_member(updated, live, "status");
  if (rules.prepare_update != nullptr) rules.prepare_update(updated, live);
  if (!rules.generation) return;
  bool same = same_outside_metadata(updated, live, kind.type != nullptr);
  if (rules.annotations_count) {
    same = same && json::equal(json::at(updated, "metadata", "annotations"),
                               json::at(live, "metadata", "annotations"));
  }
  if (!same)
    json::make(updated, {"metadata", "generation"}) =
        json::int_at(live, "metadata", "generation") + 1;
}

void prepare_status_update(const Kind& kind, json::Value& updated, const json::Value& live) {
  if (!updated.is_object() || only_status_differs(updated, live)) return;
  Value result = live;
  keep_member(result, updated, "status");
  if (kind.rules->metadata_with_status) {
    for (const std::string_view key : {"labels", "annotations", "finalizers"})
      keep(result, updated, key);
  }
  keep(result, updated, "managedFields");
  updated = std::move(result);
}

}  // namespace muster::kube
