#include "apiserver/registry/guard_pods.h"

#include <fmt/core.h>

#include <map>
#include <unordered_set>

#include "apiserver/auth/rbac.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/framework.h"
#include "kube/kinds/validate.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/security/pod_security.h"

namespace muster::apiserver {
namespace {

/// Existing pods that are looked at when the level of a namespace changes, as many as Kubernetes
/// looks at.
constexpr int kPodsMax = 3000;
constexpr int kDepthMax = 32;

/// Written with the binding: which devices the pod has.
constexpr std::string_view kGrants[] = {kube::names::kGpuIndices,
                                        kube::names::hived::kBindInfo,
                                        kube::names::hived::kLeafCellIsolation};

bool is_workload(std::string_view storage) {
  static const std::unordered_set<std::string_view> kKinds = {"podtemplates",
                                                              "replicationcontrollers",
                                                              "deployments.apps",
                                                              "replicasets.apps",
                                                              "statefulsets.apps",
                                                              "daemonsets.apps",
                                                              "jobs.batch",
                                                              "cronjobs.batch"};
  return kKinds.contains(storage);
}

/// Every pod template in the value: an object whose `spec` has containers.
void each_template(const json::Value& value,
                   int depth,
                   const std::function<void(const json::Value& found)>& visit) {
  if (depth > kDepthMax) return;
  if (const json::Array* array = value.if_array()) {
    for (const json::Value& item : *array) each_template(item, depth + 1, visit);
    return;
  }
  const json::Object* object = value.if_object();
  if (object == nullptr) return;
  if (json::at(value, "spec", "containers").is_array()) {
    visit(value);
    return;
  }
  for (const auto& member : *object) each_template(member.value(), depth + 1, visit);
}

std::vector<const json::Value*> templates_of(const json::Value& object) {
  std::vector<const json::Value*> found;
  for (const std::string_view key : {"spec", "template"})
    each_template(
        json::at(object, key), 0, [&](const json::Value& each) { found.push_back(&each); });
  return found;
}

bool same_templates(const std::vector<const json::Value*>& a,
                    const std::vector<const json::Value*>& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(), [](const auto* left, const auto* right) {
        return json::equal(*left, *right);
      });
}

bool may(Core& core, const User& user, const Attributes& attributes) {
  return core.authorizer->allowed(user, attributes);
}

bool is_admin(Core& core, const User& user) {
  if (user.in_group("system:masters")) return true;
  Attributes everything;
  everything.verb = everything.group = everything.resource = "*";
  return may(core, user, everything);
}

bool may_bind(Core& core, const User& user, const std::string& ns) {
  Attributes binding;
  binding.verb = "create";
  binding.resource = "pods";
  binding.subresource = "binding";
  binding.ns = ns;
  return may(core, user, binding);
}

/// The first annotation that grants something and differs from what was there.
std::string_view changed_grant(const json::Value& next, const json::Value& live) {
  for (const std::string_view key : kGrants) {
    if (!json::equal(json::at(next, "metadata", "annotations", key),
                     json::at(live, "metadata", "annotations", key)))
      return key;
  }
  return {};
}

Result<void> check_grants(Core& core,
                          const GuardedWrite& write,
                          const std::vector<const json::Value*>& templates) {
  std::string_view key;
  if (write.resource.storage == "pods") {
    key = changed_grant(write.next, write.live == nullptr ? json::null_value() : *write.live);
  } else {
    for (const json::Value* each : templates) {
      if (key.empty()) key = changed_grant(*each, json::null_value());
    }
    if (!key.empty() && write.live != nullptr &&
        same_templates(templates, templates_of(*write.live)))
      return {};
  }
  if (key.empty() || may_bind(core, write.user, write.ns)) return {};
  return fail(forbidden(
      write.resource,
      kube::name_of(write.next),
      fmt::format("annotation {} is written by the scheduler when it binds the pod; user {} may "
                  "not set, change or remove it: ask for resources instead",
                  quoted(key),
                  quoted(write.user.name))));
}

/// What Kubernetes' own check looks at: another image, more or other containers.
bool significant(const json::Value& next, const json::Value& live) {
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"}) {
    const json::Array& now = json::array_at(next, "spec", list);
    const json::Array& before = json::array_at(live, "spec", list);
    if (now.size() != before.size()) return true;
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (!json::equal(json::at(now[i], "image"), json::at(before[i], "image"))) return true;
    }
  }
  return false;
}

bool looks_at(std::string_view subresource) {
  return subresource.empty() || subresource == "ephemeralcontainers" || subresource == "resize";
}

/// Holds one pod or template to the policy.
class Judge {
 public:
  Judge(const GuardedWrite& write, const kube::SecurityPolicy& policy)
      : write_(write), policy_(policy) {}

  Result<void> check(const json::Value& pod, bool enforce) const {
    const auto violations = [&](const kube::LevelVersion& level) {
      return kube::security_violations(level, json::at(pod, "metadata"), json::at(pod, "spec"));
    };
    if (enforce) {
      const auto found = violations(policy_.enforce);
      if (!found.empty()) {
        return fail(forbidden(write_.resource,
                              kube::name_of(write_.next),
                              fmt::format("violates PodSecurity {}: {}",
                                          quoted(policy_.enforce.text()),
                                          kube::describe(found))));
      }
    }
    if (const auto found = violations(policy_.audit); !found.empty()) {
      const std::string text = fmt::format(
          "would violate PodSecurity {}: {}", quoted(policy_.audit.text()), kube::describe(found));
      if (write_.violations != nullptr) write_.violations->push_back(text);
      log::warn("apiserver",
                "{} {}/{} of user {} {}",
                write_.resource.info.plural,
                write_.ns,
                kube::name_of(write_.next),
                quoted(write_.user.name),
                text);
    }
    if (const auto found = violations(policy_.warn); !found.empty() && write_.warnings != nullptr) {
      write_.warnings->push_back(fmt::format(
          "would violate PodSecurity {}: {}", quoted(policy_.warn.text()), kube::describe(found)));
    }
    return {};
  }

 private:
  const GuardedWrite& write_;
  const kube::SecurityPolicy& policy_;
};

kube::SecurityPolicy policy_for(Core& core, const GuardedWrite& write) {
  const StoredPtr ns = core.image.collection("namespaces").find(write.ns);
  kube::SecurityPolicy defaults;
  kube::SecurityPolicy policy =
      ns ? kube::security_policy(ns->object, defaults, nullptr) : defaults;
  if (policy.labelled || write.ns == "kube-system" || is_admin(core, write.user)) return policy;
  policy.enforce.level = core.options.pod_security;
  return policy;
}

}  // namespace

bool makes_pods(const Resource& resource) {
  if (resource.storage == "pods") return true;
  if (!resource.custom()) return is_workload(resource.storage);
  const std::string& group = resource.info.group;
  return group == kube::groups::kKubeflow || group == kube::groups::kVolcanoBatch ||
         group == kube::groups::kT9kBatch || group == kube::resources::kFrameworks.group;
}

Result<void> guard_pods(Core& core, const GuardedWrite& write) {
  const bool pod = write.resource.storage == "pods";
  const bool own = write.user.in_group("system:masters");
  if (pod ? write.subresource == "binding" : !write.subresource.empty()) return {};
  const auto templates = pod || own ? std::vector<const json::Value*>() : templates_of(write.next);
  if (!own) {
    const auto granted = check_grants(core, write, templates);
    if (!granted) return granted;
  }
  if (!looks_at(write.subresource)) return {};
  const kube::SecurityPolicy policy = policy_for(core, write);
  if (policy.privileged()) return {};
  const Judge judge(write, policy);
  if (pod) {
    if (write.live != nullptr && !significant(write.next, *write.live)) return {};
    return judge.check(write.next, true);
  }
  const auto now = own ? templates_of(write.next) : templates;
  // In a namespace with a level of its own the pods are held to it, and a template only warned of.
  const bool enforce = !policy.labelled &&
                       (write.live == nullptr || !same_templates(now, templates_of(*write.live)));
  for (const json::Value* each : now) {
    const auto good = judge.check(*each, enforce);
    if (!good) return good;
  }
  return {};
}

Result<void> guard_namespace(Core& core, const GuardedWrite& write) {
  if (!write.subresource.empty()) return {};
  const std::string name(kube::name_of(write.next));
  std::vector<Cause> causes, old_causes;
  const auto policy = kube::security_policy(write.next, {}, &causes);
  const auto before = write.live == nullptr ? kube::SecurityPolicy()
                                            : kube::security_policy(*write.live, {}, &old_causes);
  const auto messages = [](const std::vector<Cause>& all) {
    std::string text;
    for (const Cause& each : all) text += each.field + each.message;
    return text;
  };
  if (!causes.empty() && messages(causes) != messages(old_causes))
    return fail(kube::invalid(write.resource.info.gvk(), name, std::move(causes)));
  if (write.live == nullptr || write.warnings == nullptr || policy.enforce == before.enforce ||
      policy.enforce.privileged())
    return {};
  if (policy.enforce.minor == before.enforce.minor && policy.enforce.level <= before.enforce.level)
    return {};
  // Pods with the same violations are told of once, by the first of their names.
  std::map<std::string, std::pair<std::string, int>> by_reasons;
  int seen = 0, all = 0;
  core.image.collection("pods").each_in(name, [&](const StoredPtr& pod) {
    if (++all > kPodsMax) return;
    ++seen;
    const auto found = kube::security_violations(
        policy.enforce, json::at(pod->object, "metadata"), json::at(pod->object, "spec"));
    if (found.empty()) return;
    auto& [first, count] = by_reasons[kube::reasons(found)];
    if (count++ == 0) first = std::string(kube::name_of(pod->object));
  });
  if (seen < all) {
    write.warnings->push_back(
        fmt::format("new PodSecurity enforce level only checked against the first {} of {} "
                    "existing pods",
                    seen,
                    all));
  }
  if (by_reasons.empty()) return {};
  write.warnings->push_back(
      fmt::format("existing pods in namespace {} violate the new PodSecurity enforce level {}",
                  quoted(name),
                  quoted(policy.enforce.text())));
  std::vector<std::string> lines;
  for (const auto& [why, pods] : by_reasons) {
    const auto& [first, count] = pods;
    const std::string others = count == 1   ? ""
                               : count == 2 ? " (and 1 other pod)"
                                            : fmt::format(" (and {} other pods)", count - 1);
    lines.push_back(fmt::format("{}{}: {}", first, others, why));
  }
  std::sort(lines.begin(), lines.end());
  write.warnings->insert(write.warnings->end(), lines.begin(), lines.end());
  return {};
}

}  // namespace muster::apiserver
