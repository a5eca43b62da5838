#include "kube/apply/apply.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"
#include "json/text.h"
#include "kube/apply/fieldset.h"
#include "kube/apply/managed.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr int kDepthMax = 200;

const Shape* member_of(const Shape* shape, std::string_view key) {
  return shape == nullptr ? nullptr : shape->member(key);
}
bool atomic_map(const Shape* shape) { return shape != nullptr && shape->atomic_map(); }
Shape::ListKind list_kind(const Shape* shape) {
  return shape == nullptr ? Shape::ListKind::kAtomic : shape->list_kind();
}

/// "k:{…}" or "v:…" of a list's item, empty when the item has none of the keys.
std::string item_element(const Shape& shape, const Value& item) {
  if (shape.list_kind() == Shape::ListKind::kSet) return "v:" + json::dump(item);
  static const Value kProtocol = "TCP";
  std::string out = "k:";
  char before = '{';
  const auto add = [&](const std::string& name) {
    const Value& given = json::at(item, name);
    const Value& value =
        given.is_null() && name == "protocol" ? kProtocol : given;  // the one key with a default
    if (value.is_null()) return;
    out += std::exchange(before, ',');
    json::append_key(out, "", name);
    json::append(out, value);
  };
  if (shape.list_keys().size() == 1) {
    add(shape.list_keys().front());
  } else {
    std::vector<std::string> names = shape.list_keys();
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) add(name);
  }
  return before == '{' ? std::string() : out + '}';
}

/// Large lists are looked up by element, not searched again for each item.
std::map<std::string, const Value*> by_element(const Shape& shape, const Array& list) {
  std::map<std::string, const Value*> out;
  for (const Value& item : list) out.emplace(item_element(shape, item), &item);
  return out;
}

bool granular_list(const Shape* shape, const Value& value) {
  return value.is_array() && list_kind(shape) != Shape::ListKind::kAtomic;
}

bool granular_map(const Shape* shape, const Value& value) {
  return value.is_object() && !atomic_map(shape);
}

/// What `value` sets: its leaves, and the items and keys on the way.
void collect(const Shape* shape, const Value& value, FieldSet& set, int depth) {
  if (depth > kDepthMax) return;
  if (granular_map(shape, value)) {
    for (const auto& member : value.get_object()) {
      const std::string_view key = member.key();
      const Shape* inner = member_of(shape, key);
      const Value& is = member.value();
      if (granular_list(inner, is) && is.get_array().empty())
        continue;  // its items are owned, and there are none
      FieldSet& child = set.children["f:" + std::string(key)];
      const bool empty_container = is.is_object() && is.get_object().empty();
      if (granular_map(inner, is) || granular_list(inner, is))
        collect(inner, is, child, depth + 1);
      else
        child.member = true;
      if (empty_container || shape == nullptr || !shape->declares(key)) child.member = true;
    }
  } else if (granular_list(shape, value)) {
    for (const Value& item : value.get_array()) {
      const std::string element = item_element(*shape, item);
      if (element.empty()) continue;
      FieldSet& child = set.children[element];
      child.member = true;
      if (item.is_object()) collect(shape->item(), item, child, depth + 1);
    }
  }
}

struct Difference {
  FieldSet added, modified, removed;

  [[nodiscard]] bool empty() const { return added.empty() && modified.empty() && removed.empty(); }
};

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
  if (depth > kDepthMax) return;
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
  if (depth > kDepthMax) return;
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

bool server_metadata(std::string_view key) {
  static constexpr std::string_view kKeys[] = {"name",
                                               "namespace",
                                               "creationTimestamp",
                                               "selfLink",
                                               "uid",
                                               "clusterName",
                                               "generation",
                                               "managedFields",
                                               "resourceVersion",
                                               "deletionTimestamp",
                                               "deletionGracePeriodSeconds"};
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

/// What an applied configuration may own: without what only the server writes, and without the
/// other subresource.
Value owned_part(const Value& object, const std::string& subresource) {
  Value out = Object();
  if (subresource == "status") {
    if (!json::at(object, "status").is_null())
      out.get_object()["status"] = json::at(object, "status");
    return out;
  }
  for (const auto& member : json::as_object(object)) {
    const std::string_view key = member.key();
    if (key == "apiVersion" || key == "kind" || key == "status") continue;
    out.get_object().emplace(key, member.value());
  }
  if (Value* metadata = out.get_object().if_contains("metadata");
      metadata != nullptr && metadata->is_object()) {
    Object& members = metadata->get_object();
    for (auto at = members.begin(); at != members.end();) {
      if (server_metadata(at->key()))
        at = members.stable_erase(at);
      else
        ++at;
    }
    if (members.empty()) json::remove(out, {"metadata"});
  }
  return out;
}

/// The metadata that somebody may own; the rest is the server's.
Value owned_metadata(const Value& object) {
  Value out = Object();
  for (const auto& member : json::object_at(object, "metadata")) {
    if (!server_metadata(member.key())) out.get_object().emplace(member.key(), member.value());
  }
  return out;
}

bool same_owned_metadata(const Value& a, const Value& b) {
  const Object& left = json::object_at(a, "metadata");
  const Object& right = json::object_at(b, "metadata");
  std::size_t owned = 0;
  for (const auto& member : left) {
    if (server_metadata(member.key())) continue;
    ++owned;
    const Value* other = right.if_contains(member.key());
    if (other == nullptr || !json::equal(member.value(), *other)) return false;
  }
  for (const auto& member : right) owned -= server_metadata(member.key()) ? 0U : 1U;
  return owned == 0;
}

/// Whether a request to this subresource may own the top-level member. Metadata is looked at by
/// itself.
bool owned_member(std::string_view key, std::string_view subresource) {
  if (key == "apiVersion" || key == "kind" || key == "metadata") return false;
  return (key == "status") == (subresource == "status");
}

/// What changed between two whole objects, as far as a request to this subresource may own it.
/// Absent: empty.
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

/// Writes what whoever creates a value owns, as the text of a set: the same as difference() from
/// nothing, without a set between.
class Creation {
 public:
  explicit Creation(std::string& out) : out_(out) { out_.reserve(1024); }

  /// The whole object; "{}" when nothing of it can be owned.
  void object(const Shape* shape, const Value& object, const std::string& subresource) {
    Members members;
    for (const auto& member : json::as_object(object)) {
      if (owned_member(member.key(), subresource) && !member.value().is_null())
        members.push_back({member.key(), &member.value()});
    }
    const Value metadata = subresource.empty() ? owned_metadata(object) : Value(Object());
    if (!json::as_object(metadata).empty()) members.push_back({"metadata", &metadata});
    begin();
    fields(shape, members, /*top=*/true);
    end();
  }

 private:
  struct Member {
    std::string_view key;
    const Value* value;
  };
  using Members = std::vector<Member>;

  void begin() {
    out_ += '{';
    fresh_ = true;
  }
  void end() {
    out_ += '}';
    fresh_ = false;
  }
  void key(std::string_view prefix, std::string_view text) {
    if (!fresh_) out_ += ',';
    fresh_ = false;
    json::append_key(out_, prefix, text);
  }

  void fields(const Shape* shape, Members& members, bool top) {
    std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
      return a.key < b.key;
    });
    for (const Member& member : members) {
      const Shape* inner = member_of(shape, member.key);
      const bool there = (top && member.key == "metadata") ||
                         (shape != nullptr && shape->always_there(member.key));
      if (!there) {
        key("f:", member.key);
        appeared(inner, *member.value);
        continue;
      }
      // Was there, empty: it is no member itself, and left out when nothing in it is.
      const std::size_t mark = out_.size();
      const bool was_fresh = fresh_;
      key("f:", member.key);
      if (!filled(inner, *member.value)) {
        out_.resize(mark);
        fresh_ = was_fresh;
      }
    }
  }

  static Members members_of(const Value& value) {
    Members members;
    for (const auto& member : value.get_object()) {
      if (!member.value().is_null()) members.push_back({member.key(), &member.value()});
    }
    return members;
  }

  void items(const Shape& shape, const Value& value) {
    for (const auto& [element, item] : by_element(shape, value.get_array())) {
      key("", element);
      appeared(shape.item(), *item);
    }
  }

  /// A value that was not there: it and all in it.
  void appeared(const Shape* shape, const Value& value) {
    begin();
    if (granular_map(shape, value)) {
      Members members = members_of(value);
      if (!members.empty()) key("", ".");
      if (!members.empty()) out_ += "{}";
      std::sort(members.begin(), members.end(), [](const Member& a, const Member& b) {
        return a.key < b.key;
      });
      for (const Member& member : members) {
        key("f:", member.key);
        appeared(member_of(shape, member.key), *member.value);
      }
    } else if (granular_list(shape, value) && !value.get_array().empty()) {
      key("", ".");
      out_ += "{}";
      items(*shape, value);
    }
    end();
  }

  /// A value in the place of an empty one. False: nothing to own.
  bool filled(const Shape* shape, const Value& value) {
    begin();
    const bool granular =
        !json::is_empty(value) && (granular_map(shape, value) || granular_list(shape, value));
    if (granular && value.is_object()) {
      Members members = members_of(value);
      fields(shape, members, /*top=*/false);
    } else if (granular) {
      items(*shape, value);
    }
    const bool any = !granular || !fresh_;
    end();
    return any;
  }

  std::string& out_;
  bool fresh_ = true;  // nothing stands in the innermost open object
};

struct Manager {
  std::string name, operation, api_version, subresource, time;
  /// Shared with all objects whose manager has the same; change() gives one of its own.
  std::shared_ptr<const FieldSet> set = std::make_shared<const FieldSet>();
  /// The set packed (managed.h); empty once it was changed, and where `entry` holds it.
  std::string text = {};
  /// As it stands in the object, to be put back as it is; null once something of it was changed.
  Value entry = {};

  [[nodiscard]] bool is(const ApplyRequest& request, std::string_view kind) const {
    return name == request.manager && operation == kind && api_version == request.api_version &&
           subresource == request.subresource;
  }
  [[nodiscard]] std::string title() const {
    std::string out = quoted(name);
    if (!subresource.empty()) out += " with subresource " + quoted(subresource);
    if (operation == "Update") out += " using " + api_version;
    return out;
  }
  void replace(FieldSet other) {
    set = std::make_shared<const FieldSet>(std::move(other));
    text.clear();
    entry = nullptr;
  }
  void touch(Time now) {
    time = format_time(now);
    if (entry.is_null()) return;
    text = json::text_at(entry, "fieldsV1");
    entry = nullptr;
  }
  void subtract(const FieldSet& other) {
    if (set->intersect(other).empty()) return;
    FieldSet left = *set;
    left.subtract(other);
    replace(std::move(left));
  }
};

/// Without its packed set.
Manager read_manager(const Value& entry) {
  return {.name = json::text_at(entry, "manager"),
          .operation = json::text_at(entry, "operation"),
          .api_version = json::text_at(entry, "apiVersion"),
          .subresource = json::text_at(entry, "subresource"),
          .time = json::text_at(entry, "time"),
          .set = fields_of(json::at(entry, "fieldsV1"))};
}

std::vector<Manager> read_managers(const Value& object) {
  std::vector<Manager> out;
  for (const Value& entry : json::array_at(object, "metadata", "managedFields")) {
    Manager manager = read_manager(entry);
    if (manager.operation.empty()) continue;  // the empty entry by which clients reset the list
    manager.text = json::text_at(entry, "fieldsV1");
    out.push_back(std::move(manager));
  }
  return out;
}

/// Member by member as write_managers() writes an entry.
bool is_as_written(const Value& entry) {
  struct Member {
    std::string_view key;
    bool required;
  };
  static constexpr Member kMembers[] = {{"manager", true},
                                        {"operation", true},
                                        {"apiVersion", true},
                                        {"time", false},
                                        {"fieldsType", true},
                                        {"fieldsV1", true},
                                        {"subresource", false}};
  const Object& members = json::as_object(entry);
  auto here = members.begin();
  for (const Member& member : kMembers) {
    const bool there = here != members.end() && here->key() == member.key;
    if (!there && member.required) return false;
    if (there && json::as_string((here++)->value()).empty()) return false;
  }
  return here == members.end() && json::string_at(entry, "fieldsType") == "FieldsV1";
}

/// As read_managers(), for one who writes them back: entries that will not change are taken out
/// whole.
std::vector<Manager> take_managers(Value& object) {
  Value& list = json::make(object, {"metadata", "managedFields"});
  std::vector<Manager> out;
  for (Value& entry : list.get_array()) {
    Manager manager = read_manager(entry);
    if (manager.operation.empty()) continue;
    if (is_as_written(entry))
      manager.entry = std::move(entry);
    else
      manager.text = json::text_at(entry, "fieldsV1");
    out.push_back(std::move(manager));
  }
  return out;
}

void write_managers(Value& object, std::vector<Manager> managers) {
  std::erase_if(managers, [](const Manager& manager) {
    return manager.text.empty() ? manager.set->empty() : manager.text == "{}";
  });
  if (managers.empty()) {
    json::remove(object, {"metadata", "managedFields"});
    return;
  }
  std::sort(managers.begin(), managers.end(), [](const Manager& a, const Manager& b) {
    return std::tie(a.operation, a.time, a.name, a.api_version, a.subresource) <
           std::tie(b.operation, b.time, b.name, b.api_version, b.subresource);
  });
  Value& list = json::make(object, {"metadata", "managedFields"});
  Array& entries = list.emplace_array();
  entries.reserve(managers.size());
  for (Manager& manager : managers) {
    if (!manager.entry.is_null()) {
      entries.push_back(std::move(manager.entry));
      continue;
    }
    Object& entry = entries.emplace_back(Object(list.storage())).get_object();
    entry.reserve(7);
    entry.emplace("manager", manager.name);
    entry.emplace("operation", manager.operation);
    entry.emplace("apiVersion", manager.api_version);
    if (!manager.time.empty()) entry.emplace("time", manager.time);
    entry.emplace("fieldsType", "FieldsV1");
    entry.emplace("fieldsV1", manager.text.empty() ? manager.set->text() : manager.text);
    if (!manager.subresource.empty()) entry.emplace("subresource", manager.subresource);
  }
}

Manager& manager_for(std::vector<Manager>& managers,
                     const ApplyRequest& request,
                     std::string_view operation) {
  for (Manager& manager : managers) {
    if (manager.is(request, operation)) return manager;
  }
  managers.push_back({.name = request.manager,
                      .operation = std::string(operation),
                      .api_version = request.api_version,
                      .subresource = request.subresource,
                      .time = ""});
  return managers.back();
}

/// The applied value over the live one.
void merge(const Shape* shape, Value& live, const Value& applied, int depth) {
  if (depth > kDepthMax) return;
  if (granular_map(shape, applied) && live.is_object()) {
    Object& object = live.get_object();
    for (const auto& member : applied.get_object()) {
      Value* have = object.if_contains(member.key());
      if (have == nullptr)
        object.emplace(member.key(), member.value());
      else
        merge(member_of(shape, member.key()), *have, member.value(), depth + 1);
    }
    return;
  }
  if (granular_list(shape, applied) && live.is_array()) {
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < live.get_array().size(); ++i)
      places.emplace(item_element(*shape, live.get_array()[i]), i);
    for (const Value& item : applied.get_array()) {
      const auto found = places.find(item_element(*shape, item));
      if (found == places.end())
        live.get_array().push_back(item);
      else
        merge(shape->item(), live.get_array()[found->second], item, depth + 1);
    }
    return;
  }
  live = applied;
}

/// Removes what the manager applied last time (`last`) and nobody owns now.
void prune(
    const Shape* shape, Value& value, const FieldSet& last, const FieldSet& owned, int depth) {
  if (depth > kDepthMax) return;
  if (granular_map(shape, value)) {
    Object& object = value.get_object();
    for (const auto& [element, child] : last.children) {
      if (!element.starts_with("f:")) continue;
      const auto found = object.find(std::string_view(element).substr(2));
      if (found == object.end()) continue;
      const FieldSet* still = owned.find(element);
      if (still == nullptr || still->empty())
        object.stable_erase(found);
      else
        prune(member_of(shape, std::string_view(element).substr(2)),
              found->value(),
              child,
              *still,
              depth + 1);
    }
  } else if (granular_list(shape, value)) {
    Array kept;
    for (Value& item : value.get_array()) {
      const std::string element = item_element(*shape, item);
      const FieldSet* was = last.find(element);
      const FieldSet* still = owned.find(element);
      if (was != nullptr && (still == nullptr || still->empty())) continue;
      if (was != nullptr) prune(shape->item(), item, *was, *still, depth + 1);
      kept.push_back(std::move(item));
    }
    value = std::move(kept);
  }
}

struct Conflict {
  std::string manager, path;
};

Error conflict_error(const std::vector<Conflict>& conflicts) {
  Error error;
  error.code = Code::kConflict;
  for (const Conflict& conflict : conflicts)
    error.causes.push_back(
        {"FieldManagerConflict", "conflict with " + conflict.manager, conflict.path});
  if (conflicts.size() == 1) {
    error.message = fmt::format("Apply failed with 1 conflict: conflict with {}: {}",
                                conflicts[0].manager,
                                conflicts[0].path);
    return error;
  }
  std::vector<std::string> lines;
  std::string last;
  for (const Conflict& conflict : conflicts) {
    if (conflict.manager != last)
      lines.push_back(fmt::format("conflicts with {}:", conflict.manager));
    last = conflict.manager;
    lines.push_back("- " + conflict.path);
  }
  error.message =
      fmt::format("Apply failed with {} conflicts: {}", conflicts.size(), join(lines, "\n"));
  return error;
}

/// Takes changed and removed fields away from the other managers; without force, changed ones are
/// conflicts.
std::vector<Conflict> settle(std::vector<Manager>& managers,
                             const ApplyRequest& request,
                             std::string_view operation,
                             const Difference& change) {
  const bool force = operation == "Update" || request.force;
  std::vector<Conflict> conflicts;
  for (Manager& manager : managers) {
    if (manager.is(request, operation)) continue;
    for (const FieldSet* changed : {&change.modified, &change.added}) {
      const FieldSet both = manager.set->intersect(*changed);
      if (!force) {
        for (const std::string& path : both.paths()) conflicts.push_back({manager.title(), path});
      }
      manager.subtract(both);
    }
    manager.subtract(change.removed);
  }
  std::sort(conflicts.begin(), conflicts.end(), [](const Conflict& a, const Conflict& b) {
    return std::tie(a.manager, a.path) < std::tie(b.manager, b.path);
  });
  return conflicts;
}

}  // namespace

Result<json::Value> apply(const Shape* shape,
                          const std::optional<json::Value>& live,
                          const json::Value& applied,
                          const ApplyRequest& request) {
  if (!applied.is_object())
    return fail(Code::kBadRequest, "an applied configuration must be an object");
  if (!json::array_at(applied, "metadata", "managedFields").empty())
    return fail(Code::kBadRequest, "metadata.managedFields must be nil");

  const Value wanted = owned_part(applied, request.subresource);
  FieldSet wanted_set;
  collect(shape, wanted, wanted_set, 0);
  std::vector<Manager> managers = live ? read_managers(*live) : std::vector<Manager>();
  if (live && managers.empty()) {
    // Nobody kept book so far: what is there belongs to somebody, so that it is not taken without a
    // word.
    ApplyRequest before = request;
    before.manager = "before-first-apply";
    before.subresource = "";
    Manager& unknown = manager_for(managers, before, "Update");
    unknown.time = format_time(request.now);
    unknown.replace(difference(shape, json::null_value(), *live, "").added);
  }

  Value result = live ? *live : applied;
  if (live) {
    merge(shape, result, wanted, 0);
  } else if (request.subresource.empty()) {
    json::remove(result, {"metadata", "managedFields"});
  }
  Manager& own = manager_for(managers, request, "Apply");
  const FieldSet last = *own.set;
  own.replace(wanted_set);
  if (!last.empty()) {
    FieldSet owned;
    for (const Manager& manager : managers) owned.add(*manager.set);
    prune(shape, result, last, owned, 0);
  }
  const Difference change =
      difference(shape, live ? *live : json::null_value(), result, request.subresource);
  const auto conflicts = settle(managers, request, "Apply", change);
  if (!conflicts.empty()) return fail(conflict_error(conflicts));
  Manager& mine = manager_for(managers, request, "Apply");
  // A manager who only joins the owners of what is there already has no time, as with Kubernetes.
  if (!change.empty()) mine.time = format_time(request.now);
  write_managers(result, std::move(managers));
  return result;
}

void track_update(const Shape* shape,
                  const json::Value* live,
                  json::Value& updated,
                  const ApplyRequest& request) {
  if (request.manager.empty() || !updated.is_object()) return;
  // An explicit empty list in the update resets the book; otherwise what the client sent of it does
  // not count unless it really changed something (kubectl's migration to server-side apply writes
  // it).
  const Value& sent = json::at(updated, "metadata", "managedFields");
  const bool reset =
      sent.is_array() &&
      (sent.get_array().empty() || (sent.get_array().size() == 1 &&
                                    json::is_empty(json::at(sent.get_array()[0], "operation"))));
  std::vector<Manager> managers;
  if (sent.is_array() && !reset)
    managers = take_managers(updated);
  else if (live && !reset)
    managers = read_managers(*live);

  if (live == nullptr && managers.empty()) {
    Manager& own = manager_for(managers, request, "Update");
    Creation(own.text).object(shape, updated, request.subresource);
    own.time = format_time(request.now);
    write_managers(updated, std::move(managers));
    return;
  }
  Difference change =
      difference(shape, live ? *live : json::null_value(), updated, request.subresource);
  if (!change.empty()) {
    settle(managers, request, "Update", change);
    Manager& own = manager_for(managers, request, "Update");
    FieldSet now = *own.set;
    now.subtract(change.removed);
    now.add(std::move(change.modified));
    now.add(std::move(change.added));
    const bool same = now == *own.set;
    if (!same) own.replace(std::move(now));
    if (!same || own.time.empty()) own.touch(request.now);
  }
  write_managers(updated, std::move(managers));
}

}  // namespace muster::kube
