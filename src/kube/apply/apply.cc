#include "kube/apply/apply.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "base/strings.h"
#include "kube/apply/creation.h"
#include "kube/apply/difference.h"
#include "kube/apply/granular.h"
#include "kube/apply/managed.h"
#include "kube/apply/managers.h"
#include "kube/apply/owned.h"

namespace muster::kube {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// What `value` sets: its leaves, and the items and keys on the way.
void collect(const Shape* shape, const Value& value, FieldSet& set, int depth) {
  if (depth > kApplyDepthMax) return;
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

/// The applied value over the live one.
void merge(const Shape* shape, Value& live, const Value& applied, int depth) {
  if (depth > kApplyDepthMax) return;
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
  if (depth > kApplyDepthMax) return;
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

/// The usual update, of one who has written nothing of the object before and takes nothing away
/// from others: then no sets are needed. False: it is another one, and nothing was done.
bool track_first_update(const Shape* shape,
                        const json::Value& live,
                        const json::Value& updated,
                        const ApplyRequest& request,
                        std::vector<Manager>& managers) {
  const auto is_own = [&](const Manager& manager) { return manager.is(request, "Update"); };
  if (std::any_of(managers.begin(), managers.end(), is_own)) return false;
  bool gone = false;
  std::string text = change_text(shape, live, updated, request.subresource, &gone);
  // A status has sets of its own (addresses are keys in it), the others share theirs.
  const bool status = request.subresource == "status";
  if (text == "{}" || (gone && !status)) return false;
  const auto own = status ? nullptr : fields_of(json::Value(text));
  const auto apart = [&](const Manager& manager) {
    return status ? manager.set->find("f:status") == nullptr : manager.set->intersect(*own).empty();
  };
  if (!std::all_of(managers.begin(), managers.end(), apart)) return false;
  Manager& mine = manager_for(managers, request, "Update");
  mine.text = std::move(text);
  mine.time = format_time(request.now);
  return true;
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
    own.text = creation_text(shape, updated, request.subresource);
    own.time = format_time(request.now);
    write_managers(updated, std::move(managers));
    return;
  }
  if (live != nullptr && track_first_update(shape, *live, updated, request, managers)) {
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
