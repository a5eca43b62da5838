#include "kube/table/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/strings.h"
#include "kube/kinds/kind.h"
#include "kube/selector/selector.h"
#include "kube/table/table_cells.h"

namespace muster::kube {

std::string age_of(Time since, Time now) {
  return since ? human_duration(now - since) : std::string("<unknown>");
}

std::string age_of(const json::Value& timestamp, Time now) {
  const auto time = parse_time(json::as_string(timestamp));
  return age_of(time ? *time : Time{}, now);
}

std::string or_none(std::string text) { return text.empty() ? "<none>" : text; }

std::string labels_text(const json::Value& labels) {
  std::map<std::string, std::string> sorted;
  for (const auto& member : json::as_object(labels))
    sorted[std::string(member.key())] = json::text(member.value());
  std::vector<std::string> parts;
  for (const auto& [key, value] : sorted) parts.push_back(key + "=" + value);
  return parts.empty() ? "<none>" : join(parts, ",");
}

std::string selector_text(const json::Value& selector) {
  const auto parsed = LabelSelector::from_object(selector);
  return parsed ? or_none(parsed->text()) : "<error>";
}

std::string int_or_string(const json::Value& value) {
  return value.is_string() ? json::text(value) : json::dump(value);
}

std::int64_t number(const json::Value& object, std::string_view a, std::string_view b) {
  return json::int_at(object, a, b);
}

std::pair<std::string, std::string> containers_of(const json::Value& pod_spec) {
  std::vector<std::string> names, images;
  for (const json::Value& container : json::array_at(pod_spec, "containers")) {
    names.push_back(json::text_at(container, "name"));
    images.push_back(json::text_at(container, "image"));
  }
  return {join(names, ","), join(images, ",")};
}

namespace {

using json::Array;
using json::Value;

/// One cell of a custom resource, in the type the column declares.
Value column_cell(const Column& column, const Value& object, Time now) {
  const auto found = json_path(object, column.json_path);
  if (found.empty() || found[0].is_null()) return nullptr;
  if (found.size() > 1) {
    std::vector<std::string> texts;
    for (const Value& value : found) texts.push_back(int_or_string(value));
    return Value(join(texts, ","));
  }
  const Value& value = found[0];
  if (column.type == "date") {
    const auto time = parse_time(json::as_string(value));
    return time ? Value(age_of(*time, now)) : Value("<invalid>");
  }
  if (column.type == "integer") {
    if (value.is_int64()) return value;
    const auto number = parse_int(json::as_string(value));
    return number ? Value(*number) : Value(nullptr);
  }
  if (column.type == "boolean") return value.is_bool() ? value : Value(nullptr);
  if (column.type == "number") return value.is_number() ? value : Value(nullptr);
  return Value(int_or_string(value));
}

Array plain_cells(const ResourceInfo& resource, const Value& object, Time now) {
  Array cells;
  for (const Column& column : resource.columns) {
    if (!column.json_path.empty())
      cells.push_back(column_cell(column, object, now));
    else if (column.format == "name" || column.name == "Name")
      cells.emplace_back(name_of(object));
    else if (column.name == "Age")
      cells.emplace_back(age_of(creation_time(object), now));
    else if (column.name == "Created At")
      cells.push_back(json::at(object, "metadata", "creationTimestamp"));
    else
      cells.emplace_back("");
  }
  return cells;
}

}  // namespace

json::Value table_row(const ResourceInfo& resource, const json::Value& object, Time now) {
  json::Object row;
  const bool custom = std::any_of(resource.columns.begin(),
                                  resource.columns.end(),
                                  [](const Column& column) { return !column.json_path.empty(); });
  const KindRules* rules = custom ? nullptr : find_rules(resource.group, resource.kind);
  const bool printed = rules != nullptr && rules->cells != nullptr;
  Array cells = printed ? rules->cells(object, now) : plain_cells(resource, object, now);
  row["cells"] = std::move(cells);
  if (rules != nullptr && rules->row_conditions != nullptr) {
    Value conditions = rules->row_conditions(object);
    if (!conditions.is_null()) row["conditions"] = std::move(conditions);
  }
  return row;
}

json::Value column_definitions(const ResourceInfo& resource) {
  Array out;
  for (const Column& column : resource.columns) {
    out.push_back(json::Object{{"name", column.name},
                               {"type", column.type},
                               {"format", column.format},
                               {"description", column.description},
                               {"priority", column.priority}});
  }
  return out;
}

}  // namespace muster::kube
