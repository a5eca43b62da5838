#include "agent/network/network_policies.h"

#include <algorithm>

#include "base/log.h"
#include "kube/meta.h"
#include "kube/resources.h"

namespace muster::agent {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);

}  // namespace

kube::Resource network_policy_resource() {
  const auto collection = kube::collections::kNetworkPolicies;
  const auto dot = collection.find('.');
  return kube::Resource{std::string(collection.substr(dot + 1)),
                        "v1",
                        std::string(collection.substr(0, dot)),
                        "NetworkPolicy",
                        true};
}

NetworkPolicies::NetworkPolicies(Context& context, std::function<std::vector<AddressedPod>()> pods)
    : context_(context), pods_(std::move(pods)), applied_(context.loop.make_signal()) {}

void NetworkPolicies::follow() {
  client::InformerHandlers policies;
  policies.on_change = [this](const client::ObjectPtr&, const client::ObjectPtr&) { changed(); };
  context_.informers.get(network_policy_resource()).add_handlers(std::move(policies));
  client::InformerHandlers namespaces;
  namespaces.on_change = [this](const client::ObjectPtr& before, const client::ObjectPtr& after) {
    if (!before || !after ||
        json::at(*before, "metadata", "labels") != json::at(*after, "metadata", "labels"))
      changed();
  };
  context_.informers.get(client::resources::kNamespaces).add_handlers(std::move(namespaces));
}

void NetworkPolicies::changed() {
  ++asked_;
  if (!begun_ || std::exchange(applying_, true)) return;
  context_.loop.spawn(apply(alive_));
}

void NetworkPolicies::begin() {
  begun_ = true;
  changed();
}

void NetworkPolicies::stop() {
  *alive_ = false;
  applied_->notify();
}

NetworkPolicies::Written NetworkPolicies::wanted() const {
  Written out;
  std::vector<client::ObjectPtr> policies;
  for (const auto& [key, policy] : context_.informers.get(network_policy_resource()).objects())
    policies.push_back(policy);
  if (policies.empty()) return out;
  std::map<std::string, client::ObjectPtr> namespaces;
  for (const auto& [key, ns] : context_.informers.get(client::resources::kNamespaces).objects())
    namespaces[std::string(kube::name_of(*ns))] = ns;
  const auto pods = pods_();
  for (const auto& pod : pods) out.addresses.push_back(pod.address);
  std::sort(out.addresses.begin(), out.addresses.end());
  out.fences = fences(policies, namespaces, pods);
  return out;
}

Task<void> NetworkPolicies::apply(std::shared_ptr<bool> alive) {
  while (*alive && done_ != asked_) {
    const auto number = asked_;
    auto next = wanted();
    Result<void> told;
    if (next != written_) {
      told = co_await context_.runtime.set_fences(next.fences);
      if (!*alive) co_return;
      if (told) written_ = std::move(next);
      if (!told) log::warn("agent", "network policies: {}", told.error().message);
    }
    last_ = std::move(told);
    done_ = number;
    applied_->notify();
    if (last_) continue;
    co_await context_.loop.sleep(kRetry);
    ++asked_;
  }
  if (*alive) applying_ = false;
}

Task<Result<void>> NetworkPolicies::in_force() {
  changed();
  const auto alive = alive_;
  const auto number = asked_;
  while (*alive && done_ < number) co_await applied_->wait(Duration::zero());
  if (!*alive) co_return fail(Code::kUnavailable, "the agent ends");
  co_return last_;
}

}  // namespace muster::agent
