#include "kube/apply/managers.h"

#include <algorithm>
#include <tuple>

#include "base/strings.h"
#include "json/memory.h"
#include "kube/apply/managed.h"

namespace muster::kube {

using json::Array;
using json::Object;
using json::Value;

namespace {

/// Without its packed set.
Manager read_manager(const Value& entry) {
  return {.name = json::text_at(entry, "manager"),
          .operation = json::text_at(entry, "operation"),
          .api_version = json::text_at(entry, "apiVersion"),
          .subresource = json::text_at(entry, "subresource"),
          .time = json::text_at(entry, "time"),
          .set = fields_of(json::at(entry, "fieldsV1"))};
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

}  // namespace

std::string Manager::title() const {
  std::string out = quoted(name);
  if (!subresource.empty()) out += " with subresource " + quoted(subresource);
  if (operation == "Update") out += " using " + api_version;
  return out;
}

void Manager::replace(FieldSet other) {
  set = std::make_shared<const FieldSet>(std::move(other));
  text.clear();
  entry = nullptr;
}

void Manager::touch(Time now) {
  time = format_time(now);
  if (entry.is_null()) return;
  text = json::text_at(entry, "fieldsV1");
  entry = nullptr;
}

void Manager::subtract(const FieldSet& other) {
  if (set->intersect(other).empty()) return;
  FieldSet left = *set;
  left.subtract(other);
  replace(std::move(left));
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

std::vector<Manager> take_managers(Value& object) {
  Value& list = json::make(object, {"metadata", "managedFields"});
  std::vector<Manager> out;
  for (Value& entry : list.get_array()) {
    Manager manager = read_manager(entry);
    if (manager.operation.empty()) continue;
    if (is_as_written(entry))
      json::replace(manager.entry, std::move(entry));  // with its memory, to which it goes back
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
  std::vector<Manager*> in_order;
  in_order.reserve(managers.size());
  for (Manager& manager : managers) in_order.push_back(&manager);
  std::sort(in_order.begin(), in_order.end(), [](const Manager* a, const Manager* b) {
    return std::tie(a->operation, a->time, a->name, a->api_version, a->subresource) <
           std::tie(b->operation, b->time, b->name, b->api_version, b->subresource);
  });
  Value& list = json::make(object, {"metadata", "managedFields"});
  Array& entries = list.emplace_array();
  entries.reserve(managers.size());
  for (Manager* each : in_order) {
    Manager& manager = *each;
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

}  // namespace muster::kube
