#include "kubeflow_match.h"

#include <fmt/format.h>

#include <map>

#include "base/quantity.h"
#include "base/strings.h"

namespace muster::vectors {

using json::Value;

namespace {

std::string g_last_got;

std::string differ(const std::string& path, const Value& wanted, const Value& found) {
  g_last_got = json::dump(found);
  return fmt::format("{} {}", path, json::dump(wanted));
}

bool is_exact(std::string_view key) {
  return key == "labels" || key == "annotations" || key == "ownerReferences" || key == "data" ||
         key == "rules";
}
bool holds_quantities(std::string_view key) {
  return key == "limits" || key == "requests" || key == "minResources";
}

/// An env entry without a value has the empty one.
Value plain_env(const Value& list) {
  json::Array result;
  for (const auto& item : json::as_array(list)) {
    Value copy = item;
    if (json::string_at(copy, "value").empty()) json::remove(copy, {"value"});
    json::remove(copy, {"valueFrom", "fieldRef", "apiVersion"});
    result.push_back(std::move(copy));
  }
  return result;
}

bool same_quantities(const Value& a, const Value& b) {
  if (json::as_object(a).size() != json::as_object(b).size()) return false;
  for (const auto& [name, amount] : json::as_object(a)) {
    const auto& other = json::at(b, std::string_view(name));
    const auto read = [](const Value& value) {
      return parse_quantity(value.is_string() ? std::string(json::as_string(value))
                                              : json::dump(value));
    };
    const auto x = read(amount), y = read(other);
    if (!x || !y || *x != *y) return false;
  }
  return true;
}

std::string compare(const Value& found,
                    const Value& wanted,
                    const std::string& path,
                    const std::string& job_uid);

std::string compare_member(const Value& found,
                           std::string_view key,
                           const Value& wanted,
                           const std::string& path,
                           const std::string& job_uid) {
  const auto& ours = json::at(found, key);
  const auto where = path.empty() ? std::string(key) : path + "." + std::string(key);
  if (key == "schedulerName" && json::as_string(wanted) == "default-scheduler" &&
      json::as_string(ours).empty())
    return {};
  if (key == "dataKeys") {
    json::Array keys;
    std::map<std::string, int> sorted;
    for (const auto& [name, value] : json::object_at(found, "data"))
      sorted[std::string(std::string_view(name))];
    for (const auto& [name, n] : sorted) keys.push_back(Value(name));
    return json::equal(keys, wanted) ? "" : differ(where, wanted, keys);
  }
  if (is_exact(key)) {
    const auto expected = json::parse(replace_all(json::dump(wanted), "$JOB_UID", job_uid));
    return json::equal(ours, *expected) ? "" : differ(where, *expected, ours);
  }
  if (key == "env")
    return json::equal(plain_env(ours), plain_env(wanted)) ? "" : differ(where, wanted, ours);
  if (holds_quantities(key))
    return same_quantities(ours, wanted) ? "" : differ(where, wanted, ours);
  return compare(ours, wanted, where, job_uid);
}

std::string compare(const Value& found,
                    const Value& wanted,
                    const std::string& path,
                    const std::string& job_uid) {
  if (wanted.is_object()) {
    if (!found.is_object() && !wanted.get_object().empty()) return differ(path, wanted, found);
    for (const auto& [key, value] : wanted.get_object()) {
      if (const auto difference =
              compare_member(found, std::string_view(key), value, path, job_uid);
          !difference.empty())
        return difference;
    }
    // Metadata that is shown at all is shown with all its labels and annotations.
    if (path.ends_with("metadata") &&
        wanted.get_object().contains("labels") + wanted.get_object().contains("name") > 0) {
      for (const std::string_view key : {"labels", "annotations"}) {
        if (!wanted.get_object().contains(key) && !json::object_at(found, key).empty())
          return differ(path + "." + std::string(key), Value(), json::at(found, key));
      }
    }
    return {};
  }
  if (wanted.is_array()) {
    if (!found.is_array() || found.get_array().size() != wanted.get_array().size())
      return differ(path, wanted, found);
    for (std::size_t i = 0; i < wanted.get_array().size(); ++i) {
      if (const auto difference = compare(
              found.get_array()[i], wanted.get_array()[i], fmt::format("{}[{}]", path, i), job_uid);
          !difference.empty())
        return difference;
    }
    return {};
  }
  return json::equal(found, wanted) ? "" : differ(path, wanted, found);
}

}  // namespace

const std::string& last_got() { return g_last_got; }

std::string match(const Value& found, const Value& wanted, const std::string& job_uid) {
  return compare(found, wanted, "", job_uid);
}

std::vector<std::string> condition_lines(const Value& conditions,
                                         bool merge_restarting,
                                         bool skip_created) {
  std::vector<std::string> lines;
  for (const auto& condition : json::as_array(conditions)) {
    const auto type = json::string_at(condition, "type");
    if (skip_created && type == "Created") continue;
    if (merge_restarting && (type == "Restarting" || type == "Running") &&
        json::string_at(condition, "status") == "True") {
      lines.push_back("Running or Restarting");
      continue;
    }
    lines.push_back(fmt::format("{}={} {}: {}",
                                type,
                                json::string_at(condition, "status"),
                                json::string_at(condition, "reason"),
                                json::string_at(condition, "message")));
  }
  return lines;
}

std::string counters(const Value& statuses) {
  std::map<std::string, std::string> by_type;
  for (const auto& [type, entry] : json::as_object(statuses)) {
    auto& text = by_type[std::string(std::string_view(type))];
    for (const std::string_view name : {"active", "succeeded", "failed"}) {
      if (const auto n = json::int_at(entry, name); n != 0) text += fmt::format(" {}={}", name, n);
    }
  }
  std::string all;
  for (const auto& [type, text] : by_type) all += fmt::format("{}:{};", type, text);
  return all;
}

}  // namespace muster::vectors
