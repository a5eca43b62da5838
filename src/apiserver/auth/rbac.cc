#include "apiserver/auth/rbac.h"

#include <fmt/core.h>

#include <algorithm>

#include "apiserver/auth/own_framework.h"
#include "base/strings.h"
#include "kube/resources.h"
#include "kube/selector/selector.h"

namespace muster::apiserver {
namespace {

bool lists(const json::Value& list, std::string_view wanted) {
  const json::Array& all = json::as_array(list);
  return std::any_of(all.begin(), all.end(), [&](const json::Value& each) {
    return json::as_string(each) == "*" || json::as_string(each) == wanted;
  });
}

bool matches_resource(const json::Value& rule, const Attributes& attributes, bool& by_name) {
  if (!lists(json::at(rule, "apiGroups"), attributes.group)) return false;
  const std::string combined = attributes.subresource.empty()
                                   ? attributes.resource
                                   : attributes.resource + "/" + attributes.subresource;
  bool found = false;
  for (const json::Value& each : json::array_at(rule, "resources")) {
    const std::string_view resource = json::as_string(each);
    if (resource == "*" || resource == combined ||
        (!attributes.subresource.empty() && resource == "*/" + attributes.subresource))
      found = true;
  }
  if (!found) return false;
  const json::Array& names = json::array_at(rule, "resourceNames");
  if (names.empty()) return true;
  by_name = true;
  return std::any_of(names.begin(), names.end(), [&](const json::Value& each) {
    return json::as_string(each) == attributes.name;
  });
}

bool matches_path(const json::Value& rule, std::string_view path) {
  for (const json::Value& each : json::array_at(rule, "nonResourceURLs")) {
    const std::string_view pattern = json::as_string(each);
    if (pattern == "*" || pattern == path) return true;
    if (pattern.ends_with('*') && path.starts_with(pattern.substr(0, pattern.size() - 1)))
      return true;
  }
  return false;
}

/// Whether the user is "system:serviceaccount:NS:NAME"; asked of every subject of every binding.
bool is_account(std::string_view user, std::string_view ns, std::string_view name) {
  constexpr std::string_view kPrefix = "system:serviceaccount:";
  return user.size() == kPrefix.size() + ns.size() + 1 + name.size() && user.ends_with(name) &&
         user.starts_with(kPrefix) && user.substr(kPrefix.size(), ns.size()) == ns &&
         user[kPrefix.size() + ns.size()] == ':';
}

/// The subject by which the binding applies to the user; null if it does not.
const json::Value* applies(const json::Value& binding,
                           const User& user,
                           std::string_view binding_ns) {
  for (const json::Value& subject : json::array_at(binding, "subjects")) {
    const std::string_view kind = json::string_at(subject, "kind");
    const std::string_view name = json::string_at(subject, "name");
    if (kind == "User" && (name == user.name || name == "*")) return &subject;
    if (kind == "Group" && user.in_group(name)) return &subject;
    if (kind == "ServiceAccount") {
      std::string_view ns = json::string_at(subject, "namespace");
      if (ns.empty()) ns = binding_ns;
      if (is_account(user.name, ns, name)) return &subject;
    }
  }
  return nullptr;
}

std::string description(const json::Value& binding, const json::Value& subject) {
  const std::string ns = json::text_at(binding, "metadata", "namespace");
  std::string who = json::text_at(subject, "name");
  if (json::string_at(subject, "kind") == "ServiceAccount") {
    const std::string its = json::text_at(subject, "namespace");
    who += "/" + (its.empty() ? ns : its);
  }
  const std::string name = json::text_at(binding, "metadata", "name");
  return fmt::format("RBAC: allowed by {} {} of {} {} to {} {}",
                     ns.empty() ? "ClusterRoleBinding" : "RoleBinding",
                     quoted(ns.empty() ? name : name + "/" + ns),
                     json::string_at(binding, "roleRef", "kind"),
                     quoted(json::string_at(binding, "roleRef", "name")),
                     json::string_at(subject, "kind"),
                     quoted(who));
}

}  // namespace

bool Authorizer::each_rule_of(const json::Value& role_ref,
                              std::string_view ns,
                              const std::function<bool(const json::Value& rule)>& visit) const {
  const std::string_view name = json::string_at(role_ref, "name");
  StoredPtr role;
  if (json::string_at(role_ref, "kind") == "Role") {
    role = core_.image.collection(kube::collections::kRoles)
               .find(std::string(ns) + "/" + std::string(name));
  } else {
    role = core_.image.collection(kube::collections::kClusterRoles).find(name);
  }
  if (!role) return true;
  for (const json::Value& rule : json::array_at(role->object, "rules")) {
    if (!visit(rule)) return false;
  }
  // An aggregated role has the rules of every role its selectors find.
  for (const json::Value& each :
       json::array_at(role->object, "aggregationRule", "clusterRoleSelectors")) {
    const auto selector = kube::LabelSelector::from_object(each);
    if (!selector) continue;
    for (const auto& [key, other] :
         core_.image.collection(kube::collections::kClusterRoles).objects()) {
      if (other == role || !selector->matches_object(other->object)) continue;
      for (const json::Value& rule : json::array_at(other->object, "rules")) {
        if (!visit(rule)) return false;
      }
    }
  }
  return true;
}

void Authorizer::each_binding(const User& user,
                              std::string_view ns,
                              const VisitBinding& visit) const {
  for (const auto& [key, binding] :
       core_.image.collection(kube::collections::kClusterRoleBindings).objects()) {
    const json::Value* subject = applies(binding->object, user, "");
    if (subject != nullptr && !visit(binding, *subject)) return;
  }
  if (ns.empty()) return;
  bool go_on = true;
  core_.image.collection(kube::collections::kRoleBindings)
      .each_in(ns, [&](const StoredPtr& binding) {
        if (!go_on) return;
        const json::Value* subject = applies(binding->object, user, ns);
        if (subject != nullptr) go_on = visit(binding, *subject);
      });
}

void Authorizer::each_rule(const User& user,
                           std::string_view ns,
                           const std::function<bool(const json::Value& rule)>& visit) const {
  each_binding(user, ns, [&](const StoredPtr& binding, const json::Value&) {
    const std::string_view its_ns = json::string_at(binding->object, "metadata", "namespace");
    return each_rule_of(json::at(binding->object, "roleRef"), its_ns, visit);
  });
}

Authorizer::Decision Authorizer::decide(const User& user, const Attributes& attributes) const {
  Decision made;
  each_binding(user, attributes.ns, [&](const StoredPtr& binding, const json::Value& subject) {
    const std::string_view its_ns = json::string_at(binding->object, "metadata", "namespace");
    each_rule_of(json::at(binding->object, "roleRef"), its_ns, [&](const json::Value& rule) {
      if (!lists(json::at(rule, "verbs"), attributes.verb)) return true;
      made.allowed = attributes.path.empty() ? matches_resource(rule, attributes, made.by_name)
                                             : matches_path(rule, attributes.path);
      return !made.allowed;
    });
    if (made.allowed)
      made.reason = std::make_shared<const std::string>(description(binding->object, subject));
    return !made.allowed;
  });
  return made;
}

const Authorizer::Decision& Authorizer::decision(const User& user,
                                                 const Attributes& attributes) const {
  // Past this, questions are strange ones: paths that are not there, or users nobody knows.
  constexpr std::size_t kMost = 4096, kLongest = 1024;
  constexpr char kAnyName = 'a', kOneName = 'o';
  if (collections_.empty()) {
    for (const std::string_view each : {kube::collections::kRoles,
                                        kube::collections::kClusterRoles,
                                        kube::collections::kRoleBindings,
                                        kube::collections::kClusterRoleBindings})
      collections_.push_back(&core_.image.collection(each));
  }
  std::uint64_t changes = 0;
  for (const Collection* each : collections_) changes += each->next_sequence();
  if (changes != decided_at_ || decided_.size() >= kMost) decided_.clear();
  decided_at_ = changes;
  question_ = kAnyName;
  const auto add = [this](std::string_view part) {
    // With its length before it, so that no two questions have one text.
    const auto size = static_cast<std::uint32_t>(part.size());
    question_.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
  };
  for (const std::string_view part : {std::string_view(user.name),
                                      std::string_view(attributes.verb),
                                      std::string_view(attributes.group),
                                      std::string_view(attributes.resource),
                                      std::string_view(attributes.subresource),
                                      std::string_view(attributes.ns),
                                      std::string_view(attributes.path)})
    add(part);
  for (const std::string& group : user.groups) add(group);
  const auto known = decided_.find(question_);
  if (known != decided_.end() && !known->second.by_name) return known->second;
  const auto ask_by_name = [&] {
    question_.front() = kOneName;
    add(attributes.name);
  };
  if (known != decided_.end()) {
    ask_by_name();
    if (const auto named = decided_.find(question_); named != decided_.end()) return named->second;
  }
  latest_ = decide(user, attributes);
  if (question_.size() > kLongest) return latest_;
  if (latest_.by_name && known == decided_.end()) {
    decided_.emplace(question_, latest_);  // says only that the name matters
    ask_by_name();
  }
  return decided_.emplace(question_, latest_).first->second;
}

bool Authorizer::allowed(const User& user, const Attributes& attributes, Reason* reason) const {
  if (user.in_group("system:masters")) return true;
  const Decision& made = decision(user, attributes);
  if (made.allowed) {
    if (reason != nullptr) *reason = made.reason;
    return true;
  }
  if (!reads_own_framework(core_, user, attributes)) return false;
  if (reason != nullptr)
    *reason = std::make_shared<const std::string>("a task reads the Framework that it belongs to");
  return true;
}

Result<void> Authorizer::check(const User& user,
                               const Attributes& attributes,
                               Reason* reason) const {
  if (allowed(user, attributes, reason)) return {};
  Error error;
  error.code = Code::kForbidden;
  if (!attributes.path.empty()) {
    error.message = fmt::format("forbidden: User {} cannot {} path {}",
                                quoted(user.name),
                                attributes.verb,
                                quoted(attributes.path));
    return fail(std::move(error));
  }
  const std::string what =
      attributes.group.empty() ? attributes.resource : attributes.resource + "." + attributes.group;
  const std::string subject =
      attributes.name.empty() ? what : fmt::format("{} {}", what, quoted(attributes.name));
  const std::string resource = attributes.subresource.empty()
                                   ? attributes.resource
                                   : attributes.resource + "/" + attributes.subresource;
  const std::string where = attributes.ns.empty()
                                ? "at the cluster scope"
                                : fmt::format("in the namespace {}", quoted(attributes.ns));
  error.message = fmt::format("{} is forbidden: User {} cannot {} resource {} in API group {} {}",
                              subject,
                              quoted(user.name),
                              attributes.verb,
                              quoted(resource),
                              quoted(attributes.group),
                              where);
  error.subject.name = attributes.name;
  error.subject.group = attributes.group;
  error.subject.kind = attributes.resource;
  return fail(std::move(error));
}

}  // namespace muster::apiserver
