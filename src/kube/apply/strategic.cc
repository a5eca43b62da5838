#include "kube/apply/strategic.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "json/erase.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr std::string_view kDirective = "$patch";
constexpr std::string_view kRetainKeys = "$retainKeys";
constexpr std::string_view kOrder = "$setElementOrder/";
constexpr std::string_view kDeletePrimitive = "$deleteFromPrimitiveList/";
constexpr int kDepthMax = 100;

/// A value as Go's %v prints it: map[a:1 b:[x y]].
std::string go_text(const Value& value) {
  if (value.is_object()) {
    std::map<std::string, std::string> sorted;
    for (const auto& member : value.get_object())
      sorted[std::string(member.key())] = go_text(member.value());
    std::vector<std::string> parts;
    for (const auto& [key, text] : sorted) parts.push_back(key + ":" + text);
    return "map[" + join(parts, " ") + "]";
  }
  if (value.is_array()) {
    std::vector<std::string> parts;
    for (const Value& item : value.get_array()) parts.push_back(go_text(item));
    return "[" + join(parts, " ") + "]";
  }
  if (value.is_null()) return "<nil>";
  return value.is_string() ? json::text(value) : json::dump(value);
}

void drop_directives(Value& value, int depth = 0) {
  if (depth > kDepthMax) return;
  if (value.is_object()) {
    Object& object = value.get_object();
    json::erase_members(object, [&](std::string_view key, Value& member) {
      const bool directive =
          key.starts_with('$') && (key == kDirective || key == kRetainKeys ||
                                   key.starts_with(kOrder) || key.starts_with(kDeletePrimitive));
      if (directive || member.is_null()) return true;
      drop_directives(member, depth + 1);
      return false;
    });
  } else if (value.is_array()) {
    Array& array = value.get_array();
    for (auto at = array.begin(); at != array.end();) {
      // A directive that stands for a whole item has nothing to leave behind.
      if (at->is_object() && at->get_object().contains(kDirective)) {
        at = array.erase(at);
      } else {
        drop_directives(*at, depth + 1);
        ++at;
      }
    }
  }
}

Result<void> bad(Code code, std::string message) { return fail(code, std::move(message)); }

/// What is made here lies in the memory of the tree that it becomes a part of: what lies elsewhere
/// would be copied into it.
class Merger {
 public:
  Result<void> object(const FieldType* type, Object& target, const Object& patch, int depth);

 private:
  Result<void> list(const Field& field, Value& target, const Array& patch, int depth);
  Result<void> merge_items(const Field& field, Array& target, const Array& patch, int depth);
  Result<void> ordered(const Object& patch, Object& target, const FieldType* type, int depth);
  Result<void> member(
      const FieldType* type, std::string_view key, const Value& patch, Object& target, int depth);
  Result<void> retain(Object& target, const Object& patch, const Value& keys);
  /// Every item of one list is looked for among those of another. Refuses a patch that needs more
  /// looks than a list of a thousand does.
  Result<void> afford(std::size_t items, std::size_t among) {
    constexpr std::size_t kLooksMax = 1'000'000;
    looks_ += items * among;
    if (looks_ <= kLooksMax) return {};
    return fail(Code::kTooLarge,
                "the lists of the patch are too long to be merged: send the whole object, or a "
                "JSON merge patch");
  }
  std::size_t looks_ = 0;
};

const Field* field_of(const FieldType* type, std::string_view key) {
  return type != nullptr && type->shape == FieldType::Shape::kMessage ? type->type->find(key)
                                                                      : nullptr;
}

/// The type of a member: a message's field, or a map's element.
const FieldType* type_of(const FieldType* type, std::string_view key) {
  if (type == nullptr) return nullptr;
  if (type->shape == FieldType::Shape::kMap) return type->element.get();
  const Field* field = field_of(type, key);
  return field == nullptr ? nullptr : &field->type;
}

bool merges(const Field* field) {
  return field != nullptr && field->patch_strategy.find("merge") != std::string::npos;
}
bool replaces(const Field* field) {
  return field != nullptr && field->patch_strategy.find("replace") != std::string::npos;
}

bool same_item(const Value& a, const Value& b, const std::string& key) {
  return key.empty() ? json::equal(a, b) : json::equal(json::at(a, key), json::at(b, key));
}

int index_in(const Array& list, const Value& item, const std::string& key) {
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (same_item(list[i], item, key)) return static_cast<int>(i);
  }
  return -1;
}

/// What an item is known by: the value of its list's merge key; itself where there is none.
const Value& key_of(const Value& item, const std::string& key) {
  return key.empty() ? item : json::at(item, key);
}

Array keys_of(const Array& list, const std::string& key) {
  Array keys(list.storage());
  keys.reserve(list.size());
  for (const Value& item : list) keys.push_back(key_of(item, key));
  return keys;
}

/// Puts the items with the keys of `order` in its order, the others where they stood, as
/// Kubernetes' normalizeElementOrder does. `original` are the keys of the list before the patch.
Array put_in_order(Array merged,
                   const Array& order,
                   const Array& original,
                   const std::string& key) {
  const auto place_in = [&](const Array& keys, const Value& item) {
    return index_in(keys, key_of(item, key), "");
  };
  Array patched(merged.storage()), server(merged.storage());
  for (Value& item : merged)
    (place_in(order, item) >= 0 ? patched : server).push_back(std::move(item));
  const auto sort_by = [&](Array& list, const Array& by) {
    std::vector<std::pair<std::size_t, std::size_t>> places;  // in `by`, then here
    for (const Value& item : list) {
      const int at = place_in(by, item);
      places.emplace_back(at < 0 ? by.size() : static_cast<std::size_t>(at), places.size());
    }
    if (std::is_sorted(places.begin(), places.end())) return;
    std::sort(places.begin(), places.end());
    Array sorted(list.storage());
    sorted.reserve(list.size());
    for (const auto& place : places) sorted.push_back(std::move(list[place.second]));
    list = std::move(sorted);
  };
  sort_by(patched, order);
  sort_by(server, original);
  Array out(merged.storage());
  out.reserve(server.size() + patched.size());
  std::size_t i = 0, j = 0;
  while (i < server.size() || j < patched.size()) {
    bool server_first = false;
    if (j >= patched.size()) {
      server_first = true;
    } else if (i < server.size()) {
      const int left = place_in(original, server[i]);
      const int right = place_in(original, patched[j]);
      server_first = left >= 0 && right >= 0 && left < right;
    }
    out.push_back(std::move(server_first ? server[i++] : patched[j++]));
  }
  return out;
}

Result<void> Merger::retain(Object& target, const Object& patch, const Value& keys) {
  if (!keys.is_array()) return bad(Code::kBadRequest, "$retainKeys must be a list of field names");
  const auto listed = [&](std::string_view key) {
    const Array& list = keys.get_array();
    return std::any_of(
        list.begin(), list.end(), [&](const Value& name) { return json::as_string(name) == key; });
  };
  const std::size_t names = keys.get_array().size();
  if (auto fits = afford(patch.size() + target.size(), names); !fits) return fits;
  for (const auto& member : patch) {
    if (!std::string_view(member.key()).starts_with('$') && !member.value().is_null() &&
        !listed(member.key())) {
      return bad(Code::kBadRequest,
                 fmt::format("{} and {}: $retainKeys must list every field that the patch sets",
                             go_text(keys),
                             std::string_view(member.key())));
    }
  }
  json::erase_members(target, [&](std::string_view key, Value&) { return !listed(key); });
  return {};
}

Result<void> Merger::object(const FieldType* type, Object& target, const Object& patch, int depth) {
  if (depth > kDepthMax) return bad(Code::kBadRequest, "the patch is nested too deeply");
  if (const Value* directive = patch.if_contains(kDirective)) {
    const std::string_view what = json::as_string(*directive);
    if (what == "delete") {
      target.clear();
      return {};
    }
    if (what == "replace") {
      Value copy(patch, target.storage());
      drop_directives(copy);
      target = std::move(copy.get_object());
      return {};
    }
    if (what != "merge")
      return bad(Code::kBadRequest, fmt::format("unknown patch type found: {}", what));
  }
  if (const Value* keys = patch.if_contains(kRetainKeys)) {
    if (auto done = retain(target, patch, *keys); !done) return done;
  }
  const bool any_order = std::any_of(patch.begin(), patch.end(), [](const auto& entry) {
    return std::string_view(entry.key()).starts_with(kOrder);
  });
  if (any_order) {
    if (auto done = ordered(patch, target, type, depth); !done) return done;
  }
  bool nulls = false;
  for (const auto& entry : patch) {
    const std::string_view key = entry.key();
    if (key == kDirective || key == kRetainKeys || key.starts_with(kOrder)) continue;
    if (key.starts_with(kDeletePrimitive)) {
      Value* list = target.if_contains(key.substr(kDeletePrimitive.size()));
      if (list == nullptr || !list->is_array()) continue;
      const std::size_t doomed = json::as_array(entry.value()).size();
      if (auto fits = afford(list->get_array().size(), doomed); !fits) return fits;
      Array kept(list->storage());
      for (Value& item : list->get_array()) {
        if (index_in(json::as_array(entry.value()), item, "") < 0) kept.push_back(std::move(item));
      }
      *list = std::move(kept);
      continue;
    }
    // A list with an order was merged above.
    if (any_order && patch.contains(std::string(kOrder) + std::string(key)) &&
        entry.value().is_array())
      continue;
    if (auto done = member(type, key, entry.value(), target, depth); !done) return done;
    nulls = nulls || entry.value().is_null();
  }
  if (!nulls) return {};
  json::erase_members(target, [&](std::string_view key, Value&) {
    const Value* wanted = patch.if_contains(key);
    return wanted != nullptr && wanted->is_null();
  });
  return {};
}

Result<void> Merger::member(
    const FieldType* type, std::string_view key, const Value& patch, Object& target, int depth) {
  // Those that are null are taken out together when the others are done.
  if (patch.is_null()) return {};
  const Field* field = field_of(type, key);
  Value* have = target.if_contains(key);
  if (have == nullptr || have->is_null()) {
    Value fresh(patch, target.storage());
    // An object that starts with a "delete" leaves nothing; other directives only lose their marks.
    if (merges(field) && patch.is_array()) {
      for (const Value& item : patch.get_array()) {
        if (item.is_object() && !field->merge_key.empty() &&
            !item.get_object().contains(kDirective) && json::at(item, field->merge_key).is_null()) {
          return bad(Code::kInternal,
                     fmt::format("map: {} does not contain declared merge key: {}",
                                 go_text(item),
                                 field->merge_key));
        }
      }
    }
    drop_directives(fresh);
    target[key] = std::move(fresh);
    return {};
  }
  if (patch.is_object() && have->is_object() && !replaces(field)) {
    return object(type_of(type, key), have->get_object(), patch.get_object(), depth + 1);
  }
  if (patch.is_array() && have->is_array() && merges(field))
    return list(*field, *have, patch.get_array(), depth);
  Value fresh(patch, target.storage());
  drop_directives(fresh);
  *have = std::move(fresh);
  return {};
}

Result<void> Merger::list(const Field& field, Value& target, const Array& patch, int depth) {
  const Array original = keys_of(target.get_array(), field.merge_key);
  Array merged = std::move(target.get_array());
  if (auto fits = afford(merged.size() + patch.size(), merged.size() + 2 * patch.size()); !fits)
    return fits;
  if (auto done = merge_items(field, merged, patch, depth); !done) return done;
  Array order(merged.storage());
  for (const Value& item : patch) {
    if (!item.is_object() || !item.get_object().contains(kDirective))
      order.push_back(key_of(item, field.merge_key));
  }
  target = put_in_order(std::move(merged), order, original, field.merge_key);
  return {};
}

Result<void> Merger::merge_items(const Field& field, Array& target, const Array& patch, int depth) {
  const std::string& key = field.merge_key;
  const auto directive = [](const Value& item) { return json::string_at(item, kDirective); };
  const bool replace = std::any_of(
      patch.begin(), patch.end(), [&](const Value& item) { return directive(item) == "replace"; });
  if (replace) target.clear();
  for (const Value& item : patch) {
    if (!item.is_object()) {
      if (index_in(target, item, "") < 0) target.push_back(item);
      continue;
    }
    if (directive(item) == "replace") continue;
    if (key.empty())
      return bad(Code::kBadRequest,
                 fmt::format("cannot merge lists without merge key for {}", field.name));
    if (json::at(item, key).is_null()) {
      if (directive(item) == "merge") continue;
      return bad(
          Code::kInternal,
          fmt::format("map: {} does not contain declared merge key: {}", go_text(item), key));
    }
    if (directive(item) == "delete") {
      Array kept(target.storage());
      for (Value& have : target) {
        if (!same_item(have, item, key)) kept.push_back(std::move(have));
      }
      target = std::move(kept);
      continue;
    }
    const int at = index_in(target, item, key);
    if (at >= 0 && target[static_cast<std::size_t>(at)].is_object()) {
      Object& have = target[static_cast<std::size_t>(at)].get_object();
      if (auto done = object(field.type.element.get(), have, item.get_object(), depth + 1); !done)
        return done;
    } else {
      Value fresh(item, target.storage());
      drop_directives(fresh);
      target.push_back(std::move(fresh));
    }
  }
  return {};
}

/// $setElementOrder/x: merges the list x of the patch (which may be absent), then puts the result
/// in that order.
Result<void> Merger::ordered(const Object& patch,
                             Object& target,
                             const FieldType* type,
                             int depth) {
  for (const auto& entry : patch) {
    const std::string_view directive = entry.key();
    if (!directive.starts_with(kOrder)) continue;
    const std::string_view key = directive.substr(kOrder.size());
    const Field* field = field_of(type, key);
    if (!entry.value().is_array())
      return bad(Code::kBadRequest, fmt::format("{} must be a list", directive));
    const Value* update = patch.if_contains(key);
    if (!merges(field)) {
      if (update != nullptr) {
        if (auto done = member(type, key, *update, target, depth); !done) return done;
      }
      continue;
    }
    Value* have = target.if_contains(key);
    Array merged = have == nullptr || !have->is_array() ? Array(target.storage())
                                                        : std::move(have->get_array());
    const Array original = keys_of(merged, field->merge_key);
    if (original.empty() && update == nullptr) continue;
    const std::size_t sent = update == nullptr ? 0 : json::as_array(*update).size();
    const std::size_t placed = entry.value().get_array().size();
    if (auto fits = afford(merged.size() + sent, merged.size() + sent + 2 * placed); !fits)
      return fits;
    if (update != nullptr) {
      if (auto done = merge_items(*field, merged, json::as_array(*update), depth); !done)
        return done;
    }
    if (const Value* doomed = patch.if_contains(std::string(kDeletePrimitive) + std::string(key))) {
      if (auto fits = afford(merged.size(), json::as_array(*doomed).size()); !fits) return fits;
      Array kept(merged.storage());
      for (Value& item : merged) {
        if (index_in(json::as_array(*doomed), item, "") < 0) kept.push_back(std::move(item));
      }
      merged = std::move(kept);
    }
    target[key] = put_in_order(std::move(merged),
                               keys_of(entry.value().get_array(), field->merge_key),
                               original,
                               field->merge_key);
  }
  return {};
}

}  // namespace

Result<json::Value> strategic_merged(const Type& type,
                                     const json::Value& before,
                                     const json::Value& patch,
                                     json::Storage storage) {
  if (!patch.is_object())
    return fail(Code::kBadRequest, "a strategic merge patch must be an object");
  Value result(before, std::move(storage));
  if (!result.is_object()) result.emplace_object();
  FieldType root;
  root.shape = FieldType::Shape::kMessage;
  root.type = &type;
  if (auto done = Merger().object(&root, result.get_object(), patch.get_object(), 0); !done)
    return fail(done.error());
  return result;
}

Result<void> strategic_merge(const Type& type, json::Value& target, const json::Value& patch) {
  auto merged = strategic_merged(type, target, patch);
  if (!merged) return fail(merged.error());
  target = std::move(*merged);
  return {};
}

}  // namespace muster::kube
