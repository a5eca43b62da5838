#include "apiserver/audit/policy.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/strings.h"
#include "json/json.h"
#include "kube/names.h"

namespace muster::apiserver::audit {
namespace {

constexpr std::string_view kLevels[] = {"None", "Metadata", "Request", "RequestResponse"};
constexpr std::string_view kStages[] = {
    "RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"};

bool has(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

bool matches_path(const std::string& pattern, std::string_view path) {
  if (pattern == "*" || pattern == path) return true;
  return pattern.ends_with('*') &&
         path.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

/// "pods", "pods/log", "*", "*/scale" or "pods/*".
bool matches_resource(std::string_view pattern, const Request& request) {
  if (pattern == "*") return true;
  const auto slash = pattern.find('/');
  const std::string_view resource = pattern.substr(0, slash);
  const std::string_view sub = slash == std::string_view::npos ? "" : pattern.substr(slash + 1);
  if (sub == "*") return resource == request.resource;
  return sub == request.subresource && (resource == request.resource || resource == "*");
}

bool matches_resources(const Resources& wanted, const Request& request) {
  if (wanted.group != request.group && wanted.group != "*") return false;
  if (wanted.resources.empty()) return true;
  if (!wanted.names.empty() && !has(wanted.names, request.name)) return false;
  return std::any_of(wanted.resources.begin(), wanted.resources.end(), [&](const auto& each) {
    return matches_resource(each, request);
  });
}

/// Reads one object field by field and remembers the first thing that is wrong.
class Reader {
 public:
  Reader(const json::Value& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) wrong("", "an object", "something else");
  }
  [[nodiscard]] bool good() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }

  void wrong(std::string_view field, std::string_view wanted, std::string_view found) {
    if (error_.empty())
      error_ = fmt::format("{}{}: wanted {}, found {}", where_, field, wanted, found);
  }
  void adopt(const Reader& inner) {
    if (error_.empty()) error_ = inner.error_;
  }
  [[nodiscard]] std::string path(std::string_view field) const {
    return where_ + std::string(field);
  }

  const json::Array& array(std::string_view field) {
    const json::Value& value = json::at(object_, field);
    if (!value.is_null() && !value.is_array()) wrong(field, "a list", json::dump(value));
    return json::as_array(value);
  }
  std::vector<std::string> texts(std::string_view field) {
    std::vector<std::string> out;
    for (const json::Value& each : array(field)) {
      if (!each.is_string()) wrong(field, "a list of texts", json::dump(each));
      out.push_back(json::text(each));
    }
    return out;
  }
  bool truth(std::string_view field) {
    const json::Value& value = json::at(object_, field);
    if (!value.is_null() && !value.is_bool()) wrong(field, "true or false", json::dump(value));
    return json::as_bool(value);
  }
  void only(std::initializer_list<std::string_view> known) {
    for (const auto& member : json::as_object(object_)) {
      if (std::find(known.begin(), known.end(), std::string_view(member.key())) == known.end()) {
        std::vector<std::string> names;
        for (const std::string_view each : known) names.emplace_back(each);
        wrong(member.key(), "one of " + join(names, ", "), "an unknown field");
      }
    }
  }
  std::uint8_t stages(std::string_view field) {
    std::uint8_t out = 0;
    for (const std::string& each : texts(field)) {
      const auto* found = std::find(std::begin(kStages), std::end(kStages), each);
      if (found == std::end(kStages))
        wrong(field, "RequestReceived, ResponseStarted, ResponseComplete or Panic", quoted(each));
      else
        out = static_cast<std::uint8_t>(out | 1U << (found - std::begin(kStages)));
    }
    return out;
  }

 private:
  const json::Value& object_;
  std::string where_;
  std::string error_;
};

Resources read_resources(Reader& rule, const json::Value& value, const std::string& where) {
  Reader reader(value, where);
  reader.only({"group", "resources", "resourceNames"});
  Resources out;
  out.group = json::text_at(value, "group");
  if (out.group.find('/') != std::string::npos)
    reader.wrong("group", "a group without its version, e.g. apps", quoted(out.group));
  out.resources = reader.texts("resources");
  out.names = reader.texts("resourceNames");
  if (!out.names.empty() && out.resources.empty())
    reader.wrong("resourceNames", "resources beside it", "none");
  rule.adopt(reader);
  return out;
}

Rule read_rule(Reader& file, const json::Value& value, const std::string& where) {
  Reader reader(value, where);
  reader.only({"level",
               "users",
               "userGroups",
               "verbs",
               "resources",
               "namespaces",
               "nonResourceURLs",
               "omitStages",
               "omitManagedFields"});
  Rule rule;
  const std::string_view level = json::string_at(value, "level");
  const auto* found = std::find(std::begin(kLevels), std::end(kLevels), level);
  if (found == std::end(kLevels))
    reader.wrong("level", "None, Metadata, Request or RequestResponse", quoted(level));
  else
    rule.level = static_cast<Level>(found - std::begin(kLevels));
  rule.users = reader.texts("users");
  rule.groups = reader.texts("userGroups");
  rule.verbs = reader.texts("verbs");
  rule.namespaces = reader.texts("namespaces");
  rule.paths = reader.texts("nonResourceURLs");
  for (const std::string& path : rule.paths) {
    const auto star = path.find('*');
    if (path != "*" && (!path.starts_with('/') || (star != path.npos && star + 1 != path.size())))
      reader.wrong("nonResourceURLs", "* or a path from /, with * at its end only", quoted(path));
  }
  std::size_t index = 0;
  for (const json::Value& each : reader.array("resources"))
    rule.resources.push_back(
        read_resources(reader, each, fmt::format("{}resources[{}].", where, index++)));
  if (!rule.paths.empty() && (!rule.resources.empty() || !rule.namespaces.empty()))
    reader.wrong("nonResourceURLs", "no resources or namespaces beside it", "both");
  rule.omitted = reader.stages("omitStages");
  rule.omit_managed_fields = reader.truth("omitManagedFields");
  file.adopt(reader);
  return rule;
}

}  // namespace

std::string_view name_of(Level level) { return kLevels[static_cast<int>(level)]; }
std::string_view name_of(Stage stage) { return kStages[static_cast<int>(stage)]; }

bool Rule::matches(const Request& request) const {
  if (!users.empty() && !has(users, request.user)) return false;
  if (!groups.empty() &&
      (request.groups == nullptr ||
       std::none_of(request.groups->begin(), request.groups->end(), [&](const std::string& each) {
         return has(groups, each);
       })))
    return false;
  if (!verbs.empty() && !has(verbs, request.verb)) return false;
  const bool about_resource = !request.resource.empty();
  if (!namespaces.empty() && (!about_resource || !has(namespaces, request.ns))) return false;
  if (!resources.empty() &&
      (!about_resource || std::none_of(resources.begin(), resources.end(), [&](const auto& each) {
        return matches_resources(each, request);
      })))
    return false;
  if (paths.empty()) return true;
  return !about_resource && std::any_of(paths.begin(), paths.end(), [&](const std::string& each) {
    return matches_path(each, request.path);
  });
}

Verdict Policy::judge(const Request& request) const {
  for (const Rule& rule : rules) {
    if (rule.matches(request)) return {rule.level, rule.omitted, rule.omit_managed_fields};
  }
  return {};
}

Result<Policy> parse_policy(std::string_view text) {
  const auto value = json::parse_yaml_one(text);
  if (!value) return fail(value.error());
  Reader reader(*value, "");
  reader.only({"apiVersion", "kind", "metadata", "omitStages", "omitManagedFields", "rules"});
  if (json::string_at(*value, "kind") != "Policy" ||
      json::string_at(*value, "apiVersion") != "audit.k8s.io/v1")
    reader.wrong("kind",
                 "Policy of audit.k8s.io/v1",
                 fmt::format("{} of {}",
                             quoted(json::string_at(*value, "kind")),
                             quoted(json::string_at(*value, "apiVersion"))));
  const std::uint8_t omitted = reader.stages("omitStages");
  const bool omit_managed_fields = reader.truth("omitManagedFields");
  Policy policy;
  for (const json::Value& each : reader.array("rules")) {
    Rule rule = read_rule(reader, each, fmt::format("rules[{}].", policy.rules.size()));
    rule.omitted |= omitted;
    // What a rule says itself counts.
    if (json::at(each, "omitManagedFields").is_null())
      rule.omit_managed_fields = omit_managed_fields;
    policy.rules.push_back(std::move(rule));
  }
  if (policy.rules.empty()) reader.wrong("rules", "at least one rule", "none");
  if (!reader.good()) return fail(Code::kBadRequest, reader.error());
  return policy;
}

Policy default_policy() {
  const std::vector<std::string> own = {"system:muster",
                                        "system:muster-agent",
                                        "system:muster-answers",
                                        "system:muster-controllers",
                                        "system:muster-scheduler"};
  Policy policy;
  Rule health;
  health.paths = {"/healthz*", "/livez*", "/readyz*", "/version*"};
  policy.rules.push_back(health);
  Rule reads;
  reads.users = own;
  reads.verbs = {"get", "list", "watch"};
  policy.rules.push_back(reads);
  Rule reports;
  reports.users = own;
  reports.resources = {{"", {"events", "pods/status", "nodes/status"}, {}},
                       {std::string(kube::groups::kEvents), {"events"}, {}},
                       {std::string(kube::groups::kCoordination), {"leases"}, {}}};
  policy.rules.push_back(reports);
  Rule rest;
  rest.level = Level::kMetadata;
  rest.omitted = 1U << static_cast<int>(Stage::kRequestReceived);
  policy.rules.push_back(rest);
  return policy;
}

}  // namespace muster::apiserver::audit
