#include "kube/apply/difference.h"

#include "kube/apply/granular.h"
#include "kube/apply/owned.h"

namespace muster::kube {

using json::Object;
using json::Value;

namespace {

/// A place in the three sets of a Difference; nothing is made there until something differs.
struct Place {
  Difference& out;
  const Place* parent = nullptr;
  std::string element = {};

  [[nodiscard]] FieldSet& in(FieldSet& root) const {
    return parent == nullptr ? root : parent->in(root).children[element];
  }
  [[nodiscard]] Place child(std::string name) const { return {out, this, std::move(name)}; }
};

/// All of a value that appeared or vanished; its containers are members themselves ("." in the
/// set).
void take_all(const Shape* shape, const Value& value, FieldSet& set, int depth) {
  set.member = true;
  if (depth > kApplyDepthMax) return;
  if (granular_map(shape, value)) {
    for (const auto& member : value.get_object()) {
      if (!member.value().is_null())
        take_all(member_of(shape, member.key()),
                 member.value(),
                 set.children["f:" + std::string(member.key())],
                 depth + 1);
    }
  } else if (granular_list(shape, value)) {
    for (const auto& [element, item] : by_element(*shape, value.get_array()))
      take_all(shape->item(), *item, set.children[element], depth + 1);
  }
}

void compare_members(
    const Shape* shape, const Value& before, const Value& now, const Place& out, int depth);
void compare_items(
    const Shape& shape, const Value& before, const Value& now, const Place& out, int depth);

void compare(
    const Shape* shape, const Value& before, const Value& now, const Place& out, int depth) {
  if (depth > kApplyDepthMax) return;
  const Value& sample = now.is_null() ? before : now;
  const bool same_kind = before.is_null() || now.is_null() || before.kind() == now.kind();
  const bool nothing = json::is_empty(before) && json::is_empty(now);
  if (same_kind && !nothing && granular_map(shape, sample))
    compare_members(shape, before, now, out, depth);
  else if (same_kind && !nothing && granular_list(shape, sample))
    compare_items(*shape, before, now, out, depth);
  else if (!json::equal(before, now))
    out.in(out.out.modified).member = true;
}

/// Null pointers mean absent.
void compare_step(const Shape* inner,
                  std::string element,
                  const Value* before,
                  const Value* now,
                  const Place& out,
                  int depth) {
  const Place here = out.child(std::move(element));
  if (before == nullptr)
    take_all(inner, *now, here.in(out.out.added), depth + 1);
  else if (now == nullptr)
    take_all(inner, *before, here.in(out.out.removed), depth + 1);
  else
    compare(inner, *before, *now, here, depth + 1);
}

std::string field_element(std::string_view key) {
  std::string element;
  element.reserve(key.size() + 2);
  element.append("f:").append(key);
  return element;
}

void compare_members(
    const Shape* shape, const Value& before, const Value& now, const Place& out, int depth) {
  const Object& left = json::as_object(before);
  const Object& right = json::as_object(now);
  // Two states of one object have their members in the same order nearly always.
  auto beside = left.begin();
  std::size_t kept = 0;
  for (const auto& member : right) {
    const Value* old = nullptr;
    if (beside != left.end() && beside->key() == member.key())
      old = &(beside++)->value();
    else
      old = left.if_contains(member.key());
    if (old != nullptr) ++kept;
    if (old != nullptr && json::equal(*old, member.value())) continue;
    // A plain struct of Go stands in an empty object already; so does a required list, as null.
    if (old == nullptr && shape != nullptr && shape->always_there(member.key()))
      old = &json::null_value();
    if (member.value().is_null() && (old == nullptr || old->is_null())) continue;
    compare_step(member_of(shape, member.key()),
                 field_element(member.key()),
                 old,
                 &member.value(),
                 out,
                 depth);
  }
  if (kept == left.size()) return;
  for (const auto& member : left) {
    if (right.contains(member.key())) continue;
    compare_step(member_of(shape, member.key()),
                 field_element(member.key()),
                 &member.value(),
                 nullptr,
                 out,
                 depth);
  }
}

void compare_items(
    const Shape& shape, const Value& before, const Value& now, const Place& out, int depth) {
  const auto old_items = by_element(shape, json::as_array(before));
  const auto new_items = by_element(shape, json::as_array(now));
  for (const auto& [element, item] : new_items) {
    const auto old = old_items.find(element);
    if (old != old_items.end() && json::equal(*old->second, *item)) continue;
    compare_step(
        shape.item(), element, old == old_items.end() ? nullptr : old->second, item, out, depth);
  }
  for (const auto& [element, item] : old_items) {
    if (!new_items.contains(element))
      compare_step(shape.item(), element, item, nullptr, out, depth);
  }
}

}  // namespace

Difference difference(const Shape* shape,
                      const Value& before,
                      const Value& now,
                      const std::string& subresource) {
  Difference out;
  const Place root{out};
  const auto old = [&](std::string_view key) -> const Value* {
    const Value* found = json::as_object(before).if_contains(key);
    return found == nullptr && shape != nullptr && shape->always_there(key) ? &json::null_value()
                                                                            : found;
  };
  for (const auto& member : json::as_object(now)) {
    if (!owned_member(member.key(), subresource) || member.value().is_null()) continue;
    const Value* was = old(member.key());
    if (was != nullptr && json::equal(*was, member.value())) continue;
    compare_step(
        member_of(shape, member.key()), field_element(member.key()), was, &member.value(), root, 0);
  }
  for (const auto& member : json::as_object(before)) {
    if (!owned_member(member.key(), subresource) || json::as_object(now).contains(member.key()))
      continue;
    compare_step(member_of(shape, member.key()),
                 field_element(member.key()),
                 &member.value(),
                 nullptr,
                 root,
                 0);
  }
  if (subresource.empty() && !same_owned_metadata(before, now)) {
    compare(member_of(shape, "metadata"),
            owned_metadata(before),
            owned_metadata(now),
            root.child("f:metadata"),
            1);
  }
  for (FieldSet* set : {&out.added, &out.modified, &out.removed}) set->tidy();
  return out;
}

}  // namespace muster::kube
