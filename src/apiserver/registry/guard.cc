#include "apiserver/registry/guard.h"

#include <fmt/core.h>

#include <unordered_map>

#include "apiserver/auth/escalation.h"
#include "apiserver/registry/guard_pods.h"
#include "apiserver/registry/limit_ranges.h"
#include "apiserver/registry/pod_counts.h"
#include "apiserver/registry/queue_access.h"
#include "apiserver/registry/webhooks.h"
#include "base/log.h"
#include "base/strings.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::apiserver {
namespace {

/// Kinds that are stored and change nothing, with what to use instead.
struct Unserved {
  /// Refused: whoever makes one relies on being protected by it. The others come with a warning.
  bool refused = false;
  std::string_view sentence;
};

/// Null: it is served.
const Unserved* unserved(const Core& core, std::string_view storage) {
  if (storage == kube::collections::kNetworkPolicies && core.node_agent &&
      core.node_agent->filters_traffic)
    return nullptr;
  static constexpr std::string_view kPolicies =
      "muster up does not evaluate admission policies; use RBAC, ResourceQuota, LimitRange and the "
      "pod-security.kubernetes.io labels of namespaces, or run Muster on a Kubernetes cluster";
  static const std::unordered_map<std::string_view, Unserved> kKinds = {
      {kube::collections::kValidatingPolicies, {true, kPolicies}},
      {kube::collections::kValidatingPolicyBindings, {true, kPolicies}},
      {kube::collections::kMutatingPolicies, {true, kPolicies}},
      {kube::collections::kMutatingPolicyBindings, {true, kPolicies}},
      {kube::collections::kNetworkPolicies,
       {true,
        "the traffic of pods cannot be filtered here, and a policy that is only stored would protect nothing: muster up needs root and iptables for it, and pods that are not hollow"}},
      {kube::collections::kIngresses,
       {false, "it is stored, but muster up has no ingress controller"}},
      {kube::collections::kIngressClasses,
       {false, "it is stored, but muster up has no ingress controller"}},
      {"replicationcontrollers",
       {false, "it is stored, but muster up makes no pods of it; use a Deployment"}},
      {kube::collections::kRuntimeClasses,
       {false,
        "muster up knows the handlers host (this machine's files), cri and runc (its container "
        "runtime), and runs pods of other classes as if they named none"}},
      {"horizontalpodautoscalers.autoscaling",
       {false, "it is stored, but muster up does not scale by load"}},
      {kube::collections::kFlowSchemas,
       {false, "it is stored, but muster up does not order requests by it"}},
      {kube::collections::kPriorityLevels,
       {false, "it is stored, but muster up does not order requests by it"}},
      {kube::collections::kApiServices,
       {false, "it is stored, but muster up does not call other API servers"}},
      {kube::collections::kSigningRequests,
       {true,
        "muster up signs no certificates for clients; give people a service account and a token: "
        "kubectl create token NAME"}},
  };
  const auto found = kKinds.find(storage);
  return found == kKinds.end() ? nullptr : &found->second;
}

/// One of a kind that has no effect, which has one all the same.
bool has_effect(std::string_view storage, const json::Value& object) {
  if (storage != kube::collections::kRuntimeClasses) return false;
  const std::string_view handler = json::string_at(object, "handler");
  return handler == "host" || handler == "cri" || handler == "runc";
}

/// Each peer with each port is a line of the machine's table, which is everybody's.
std::size_t lines_of_policy(const json::Value& policy) {
  std::size_t lines = 0;
  for (const auto& [rules, peers] : {std::pair{"ingress", "from"}, std::pair{"egress", "to"}}) {
    for (const json::Value& rule : json::array_at(policy, "spec", rules)) {
      std::size_t places = 0;
      for (const json::Value& peer : json::array_at(rule, peers))
        places += 1 + json::array_at(peer, "ipBlock", "except").size();
      lines += std::max<std::size_t>(places, 1) *
               std::max<std::size_t>(json::array_at(rule, "ports").size(), 1);
    }
  }
  return lines;
}

constexpr std::size_t kPolicyLinesMax = 5000;

}  // namespace

Result<void> guard(Core& core, const GuardedWrite& write) {
  const Resource& resource = write.resource;
  if (grants_rights(resource))
    return check_escalation(core, resource, write.ns, write.next, write.live, write.user);
  if (resource.storage == "namespaces") return guard_namespace(core, write);
  if (write.subresource.empty() && resource.storage == "persistentvolumeclaims")
    return check_limits(core, resource, write.ns, write.next);
  if (resource.storage == "pods" && (write.live == nullptr || write.subresource == "resize")) {
    const auto fits = check_limits(core, resource, write.ns, write.next);
    if (!fits) return fits;
  }
  if (names_tenants(resource)) {
    const auto may = guard_tenants(core, write);
    if (!may) return may;
    const auto ranked = guard_priority(core, write);
    if (!ranked) return ranked;
  }
  if (makes_pods(resource)) {
    const bool spec = write.subresource.empty() || write.subresource == "scale";
    if (spec && pods_wanted(write.next) > kPodsOfOneMax)
      return fail(
          forbidden(resource,
                    kube::name_of(write.next),
                    fmt::format("it asks for more than {} pods, the most that one object may have",
                                kPodsOfOneMax)));
    const auto good = guard_pods(core, write);
    if (!good) return good;
  }
  if (resource.info.group == kube::groups::kAdmissionRegistration) {
    if (const std::string sentence = unserved_webhook(write.next); !sentence.empty())
      return fail(forbidden(resource, kube::name_of(write.next), sentence));
  }
  if (resource.storage == kube::collections::kNetworkPolicies) {
    if (const std::size_t lines = lines_of_policy(write.next); lines > kPolicyLinesMax)
      return fail(forbidden(
          resource,
          kube::name_of(write.next),
          fmt::format("its peers and ports are {} rules of the machine's table, and one policy may "
                      "have {}; name larger networks, or ranges of ports (endPort)",
                      lines,
                      kPolicyLinesMax)));
  }
  if (const Unserved* kind = unserved(core, resource.storage);
      kind != nullptr && write.subresource.empty() && !has_effect(resource.storage, write.next)) {
    if (kind->refused) return fail(forbidden(resource, kube::name_of(write.next), kind->sentence));
    if (write.warnings != nullptr)
      write.warnings->push_back(fmt::format(
          "{} {}: {}", resource.info.kind, quoted(kube::name_of(write.next)), kind->sentence));
  }
  return {};
}

void report_unserved(Core& core) {
  for (const auto& [name, collection] : core.image.collections()) {
    const Unserved* kind = unserved(core, name);
    if (kind == nullptr) continue;
    std::size_t without = 0;
    for (const auto& [key, stored] : collection->objects())
      without += has_effect(name, stored->object) ? 0 : 1;
    if (without > 0)
      log::warn("apiserver", "{} stored {} have no effect: {}", without, name, kind->sentence);
  }
}

}  // namespace muster::apiserver
