#include "apiserver/auth/escalation.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "apiserver/auth/rbac.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::apiserver {
namespace {

constexpr std::string_view kGroup = kube::groups::kRbac;
/// A rule is a product of lists. One that nobody holds as a whole is taken apart, and this many
/// parts of a role are compared with what its writer holds.
constexpr std::size_t kPartsMax = 5'000;

/// One verb on one thing; a rule taken apart.
struct Part {
  std::string group, resource, name, path, verb;
};

bool has(const json::Value& list, std::string_view wanted) {
  const json::Array& all = json::as_array(list);
  return std::any_of(all.begin(), all.end(), [&](const json::Value& each) {
    return json::as_string(each) == wanted;
  });
}

bool covers_resource(const json::Value& rule, std::string_view resource) {
  const json::Value& held = json::at(rule, "resources");
  if (has(held, "*") || has(held, resource)) return true;
  const auto slash = resource.find('/');
  return slash != std::string_view::npos && has(held, "*" + std::string(resource.substr(slash)));
}

bool covers_path(const json::Value& rule, std::string_view path) {
  const json::Array& held = json::array_at(rule, "nonResourceURLs");
  return std::any_of(held.begin(), held.end(), [&](const json::Value& each) {
    std::string_view owner = json::as_string(each);
    if (owner == path) return true;
    if (!owner.ends_with('*')) return false;
    while (owner.ends_with('*')) owner.remove_suffix(1);
    return path.starts_with(owner);
  });
}

bool covers(const json::Value& rule, const Part& part) {
  const json::Value& verbs = json::at(rule, "verbs");
  if (!has(verbs, "*") && !has(verbs, part.verb)) return false;
  if (!part.path.empty()) return covers_path(rule, part.path);
  const json::Value& groups = json::at(rule, "apiGroups");
  if (!has(groups, "*") && !has(groups, part.group)) return false;
  if (!covers_resource(rule, part.resource)) return false;
  const json::Value& names = json::at(rule, "resourceNames");
  return json::as_array(names).empty() || (!part.name.empty() && has(names, part.name));
}

std::size_t parts_of(const json::Value& rule) {
  const auto size = [&](std::string_view key) { return json::array_at(rule, key).size(); };
  return size("verbs") *
         (size("apiGroups") * size("resources") * std::max<std::size_t>(1, size("resourceNames")) +
          size("nonResourceURLs"));
}

void each_part(const json::Value& rule, const std::function<void(Part)>& visit) {
  static const json::Array kUnnamed = {json::Value("")};
  const json::Array& given = json::array_at(rule, "resourceNames");
  const json::Array& names = given.empty() ? kUnnamed : given;
  for (const json::Value& verb : json::array_at(rule, "verbs")) {
    for (const json::Value& group : json::array_at(rule, "apiGroups")) {
      for (const json::Value& resource : json::array_at(rule, "resources")) {
        for (const json::Value& name : names)
          visit({json::text(group), json::text(resource), json::text(name), "", json::text(verb)});
      }
    }
    for (const json::Value& path : json::array_at(rule, "nonResourceURLs"))
      visit({"", "", "", json::text(path), json::text(verb)});
  }
}

/// Go's %q of a list.
std::string quoted_list(const std::vector<std::string>& items) {
  std::vector<std::string> out;
  for (const std::string& item : items) out.push_back(quoted(item));
  return "[" + join(out, " ") + "]";
}

/// What is missing, as Kubernetes prints it: the verbs of one thing together, in order.
std::string describe(const std::vector<Part>& missing) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<std::string>> verbs;
  std::set<std::string> lines;
  for (const Part& part : missing) {
    if (part.path.empty())
      verbs[{part.group, part.resource, part.name}].push_back(part.verb);
    else
      lines.insert(fmt::format(
          "{{NonResourceURLs:{}, Verbs:{}}}", quoted_list({part.path}), quoted_list({part.verb})));
  }
  for (const auto& [what, which] : verbs) {
    const auto& [group, resource, name] = what;
    lines.insert(fmt::format("{{APIGroups:{}, Resources:{}, {}Verbs:{}}}",
                             quoted_list({group}),
                             quoted_list({resource}),
                             name.empty() ? "" : "ResourceNames:" + quoted_list({name}) + ", ",
                             quoted_list(which)));
  }
  return join(std::vector<std::string>(lines.begin(), lines.end()), "\n");
}

using Rules = std::vector<json::Value>;

class Check {
 public:
  Check(Core& core, const Resource& resource, const std::string& ns, const User& user)
      : core_(core), resource_(resource), ns_(ns), user_(user) {}

  Result<void> role(const json::Value& next, const json::Value* live) {
    const std::string name(kube::name_of(next));
    if (may("escalate", resource_.info.plural, name, ns_)) return {};
    Rules rules;
    for (const json::Value& rule : json::array_at(next, "rules")) rules.push_back(rule);
    const auto held = holds(rules, name);
    if (!held) return held;
    const auto aggregates = [](const json::Value& role) {
      return !json::array_at(role, "aggregationRule", "clusterRoleSelectors").empty();
    };
    if (!aggregates(next) && (live == nullptr || !aggregates(*live))) return {};
    const json::Value all = json::Array{json::Value("*")};
    const Rules everything = {json::Value{{"apiGroups", all}, {"resources", all}, {"verbs", all}},
                              json::Value{{"nonResourceURLs", all}, {"verbs", all}}};
    if (holds(everything, name)) return {};
    return fail(forbidden(
        resource_, name, "must have cluster-admin privileges to use the aggregationRule"));
  }

  Result<void> binding(const json::Value& next) {
    const json::Value& reference = json::at(next, "roleRef");
    const std::string name = json::text_at(reference, "name");
    const bool local = json::string_at(reference, "kind") == "Role";
    const std::string plural = local ? "roles" : "clusterroles";
    if (may("bind", plural, name, ns_)) return {};
    const ResourcePtr roles = core_.resources.find(kGroup, "v1", plural);
    // Of a cluster role that is not there Kubernetes speaks by the kind of the binding.
    if (!core_.find(*roles, local ? ns_ : "", name))
      return fail(not_found(local ? *roles : resource_, name));
    Rules rules;
    core_.authorizer->each_rule_of(reference, ns_, [&](const json::Value& rule) {
      rules.push_back(rule);
      return true;
    });
    return holds(rules, std::string(kube::name_of(next)));
  }

 private:
  bool may(std::string verb, std::string plural, std::string name, std::string ns) const {
    Attributes attributes;
    attributes.verb = std::move(verb);
    attributes.group = kGroup;
    attributes.resource = std::move(plural);
    attributes.name = std::move(name);
    attributes.ns = std::move(ns);
    return core_.authorizer->allowed(user_, attributes);
  }

  Result<void> holds(const Rules& wanted, const std::string& name) const {
    Rules held;
    core_.authorizer->each_rule(user_, ns_, [&](const json::Value& rule) {
      held.push_back(rule);
      return true;
    });
    std::vector<Part> missing;
    std::size_t parts = 0;
    for (const json::Value& rule : wanted) {
      parts += parts_of(rule);
      if (parts > kPartsMax) {
        return fail(forbidden(
            resource_,
            name,
            fmt::format("its rules are more than {} single permissions, too many to compare with "
                        "those of user {}; use several roles",
                        kPartsMax,
                        quoted(user_.name))));
      }
      each_part(rule, [&](Part part) {
        const bool covered = std::any_of(
            held.begin(), held.end(), [&](const json::Value& own) { return covers(own, part); });
        if (!covered) missing.push_back(std::move(part));
      });
    }
    if (missing.empty()) return {};
    return fail(
        forbidden(resource_,
                  name,
                  fmt::format("user {} (groups={}) is attempting to grant RBAC permissions not "
                              "currently held:\n{}",
                              quoted(user_.name),
                              quoted_list(user_.groups),
                              describe(missing))));
  }

  Core& core_;
  const Resource& resource_;
  const std::string& ns_;
  const User& user_;
};

/// Owners and finalizers are for whoever deletes the object, and grant nothing.
bool only_for_deletion(const json::Value& next, const json::Value& live) {
  for (const std::string_view key : {"rules", "aggregationRule", "roleRef", "subjects"}) {
    if (!json::equal(json::at(next, key), json::at(live, key))) return false;
  }
  for (const std::string_view key : {"labels", "annotations"}) {
    if (!json::equal(json::at(next, "metadata", key), json::at(live, "metadata", key)))
      return false;
  }
  return true;
}

}  // namespace

bool grants_rights(const Resource& resource) {
  return resource.info.group == kGroup && !resource.custom();
}

Result<void> check_escalation(Core& core,
                              const Resource& resource,
                              const std::string& ns,
                              const json::Value& next,
                              const json::Value* live,
                              const User& user) {
  if (user.in_group("system:masters")) return {};
  if (live != nullptr && only_for_deletion(next, *live)) return {};
  Check check(core, resource, ns, user);
  const bool role = resource.info.plural == "roles" || resource.info.plural == "clusterroles";
  return role ? check.role(next, live) : check.binding(next);
}

}  // namespace muster::apiserver
