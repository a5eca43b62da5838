#include "engine/engine.h"

#include <set>
#include <string>

#include "engine/cells/policy.h"
#include "engine/model/digest.h"
#include "engine/muster/gang.h"
#include "engine/policy.h"
#include "engine/state/fit.h"
#include "engine/state/gang_view.h"
#include "engine/state/state.h"

namespace muster::engine {

struct Engine::Impl {
  explicit Impl(Config config) : state(std::move(config)), policy(make_policy(state)) {}
  Impl(const Impl& other)
      : state(other.state),
        policy(other.policy->clone(state)),
        cells(other.cells == nullptr ? nullptr : static_cast<cells::CellPolicy*>(policy.get())) {}
  State state;
  std::unique_ptr<Policy> policy;
  cells::CellPolicy* cells = nullptr;  ///< `policy` itself, once the cluster has cells.
};

Engine::Engine(Config config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::apply(const Event& event) {
  impl_->state.apply(event);
  impl_->policy->apply(event);
}

Result<void> Engine::configure_cells(const cells::Config& config, Time now) {
  if (impl_->cells != nullptr) return impl_->cells->reconfigure(config, now);
  auto made = cells::CellAllocator::create(config, {});
  if (!made) return fail(made.error());
  auto policy =
      std::make_unique<cells::CellPolicy>(impl_->state, std::move(impl_->policy), std::move(*made));
  impl_->cells = policy.get();
  impl_->policy = std::move(policy);
  return {};
}

Plan Engine::decide(Time now) {
  ++impl_->state.epoch;
  impl_->state.learn(now);
  return impl_->policy->decide(now);
}

std::optional<WaitView> Engine::why(std::string_view key) const {
  return impl_->policy->why(impl_->state.find_gang(key));
}

std::optional<WaitView> Engine::told(std::string_view key) const {
  return impl_->policy->told(impl_->state.find_gang(key));
}

std::vector<std::string> Engine::nodes_refused(std::string_view key, std::string_view cause) const {
  std::vector<std::string> found;
  const State& state = impl_->state;
  const GangId id = state.find_gang(key);
  if (!id.valid() || !state.gang(id).live) return found;
  // The member that a refusal counts nodes for.
  const std::vector<PodId> tasks = tasks_of(state, id);
  if (tasks.empty()) return found;
  const PodId pod = tasks.front();
  for (std::uint32_t n = 0; n < state.node_count(); ++n) {
    if (!state.node(NodeId(n)).live) continue;
    const Misfit misfit = fit(state, pod, NodeId(n));
    if (!misfit.ok() && misfit_text(state, state.pod(pod).cls, NodeId(n), misfit) == cause)
      found.push_back(state.node(NodeId(n)).spec->name);
  }
  return found;
}

std::vector<WaitView> Engine::waiting(std::string_view queue, std::size_t limit) const {
  const TenantId id = impl_->state.find_tenant(queue);
  return id.valid() ? impl_->policy->waiting(id, limit) : std::vector<WaitView>();
}

std::optional<QueueView> Engine::queue(std::string_view name) const {
  const TenantId id = impl_->state.find_tenant(name);
  if (!id.valid()) return std::nullopt;
  return std::move(impl_->policy->queues({&id, 1}).front());
}

std::vector<QueueView> Engine::queues() const {
  std::vector<TenantId> all;
  for (std::uint32_t t = 0; t < impl_->state.tenant_count(); ++t) all.push_back(TenantId(t));
  return impl_->policy->queues(all);
}

std::optional<NodeView> Engine::node(std::string_view name) const {
  const NodeId id = impl_->state.find_node(name);
  if (!id.valid() || !impl_->state.node(id).live) return std::nullopt;
  const NodeState& n = impl_->state.node(id);
  NodeView view;
  view.name = n.spec->name;
  view.allocatable = impl_->state.list_of(n.allocatable);
  view.used = impl_->state.list_of(n.used);
  for (const PodId p : n.pods) view.pods.push_back(impl_->state.pod(p).key);
  for (const auto& d : n.devices) {
    if (d.healthy && d.free_milli == 1000) view.free_devices.push_back(d.index);
  }
  return view;
}

std::vector<NodeView> Engine::nodes() const {
  std::vector<NodeView> out;
  for (std::uint32_t n = 0; n < impl_->state.node_count(); ++n) {
    if (auto view = node(impl_->state.node(NodeId(n)).spec->name)) out.push_back(std::move(*view));
  }
  return out;
}

Stats Engine::stats() const {
  Stats s;
  s.nodes = impl_->state.live_nodes();
  s.pods = impl_->state.live_pods();
  for (std::uint32_t t = 0; t < impl_->state.tenant_count(); ++t) {
    if (!impl_->state.tenant(TenantId(t)).parent.valid()) {
      s.pods_bound += impl_->state.tenant(TenantId(t)).allocated[ResourceNames::kPods];
    }
  }
  s.gangs_waiting = impl_->state.gangs_waiting();
  s.attempts = impl_->state.attempts;
  s.binds = impl_->state.binds;
  s.evictions = impl_->state.evictions;
  impl_->policy->count(s);
  return s;
}

const History& Engine::history() const { return impl_->state.history(); }

std::shared_ptr<const History> Engine::shared_history() const {
  return impl_->state.shared_history();
}

std::vector<GangView> Engine::gangs() const {
  std::vector<GangView> out;
  for (const GangId id : gangs_by_sight(impl_->state)) out.push_back(gang_view(impl_->state, id));
  return out;
}

std::optional<GangView> Engine::gang(std::string_view key) const {
  const GangId id = impl_->state.find_gang(key);
  if (!id.valid() || !is_alive(impl_->state.gang(id))) return std::nullopt;
  return gang_view(impl_->state, id);
}

std::optional<Pod> Engine::pod(std::string_view key) const {
  const PodId id = impl_->state.find_pod(key);
  return id.valid() ? std::optional<Pod>(pod_as_told(impl_->state, id)) : std::nullopt;
}

std::optional<Group> Engine::group(std::string_view key) const {
  const GangId id = impl_->state.find_gang(key);
  if (!id.valid() || !impl_->state.gang(id).has_group) return std::nullopt;
  return impl_->state.gang(id).spec;
}

std::vector<Node> Engine::nodes_as_told() const {
  std::vector<Node> out;
  for (std::uint32_t n = 0; n < impl_->state.node_count(); ++n) {
    if (impl_->state.node(NodeId(n)).live) out.push_back(impl_->state.node(NodeId(n)).spec);
  }
  return out;
}

std::optional<Queue> Engine::queue_as_told(std::string_view name) const {
  const TenantId id = impl_->state.find_tenant(name);
  if (!id.valid() || !impl_->state.tenant(id).live) return std::nullopt;
  return impl_->state.tenant(id).spec;
}

TrialResult Engine::try_gang(const Trial& trial) const {
  Engine copy = clone();
  for (const Event& event : trial.events) copy.apply(event);
  Plan plan = copy.decide(trial.now);
  TrialResult out;
  const auto view = copy.gang(trial.gang);
  if (!view) {
    out.verdict = Verdict::kNever;
    return out;
  }
  const std::set<std::string> members(view->pods.begin(), view->pods.end());
  for (Bind& bind : plan.binds) {
    if (members.contains(bind.pod)) out.binds.push_back(std::move(bind));
  }
  for (Evict& evict : plan.evicts) {
    if (evict.for_whom == trial.gang) out.evicts.push_back(std::move(evict));
  }
  if (view->running) {
    out.verdict = Verdict::kStarts;
  } else if (!out.evicts.empty()) {
    out.verdict = Verdict::kEvicts;
  } else {
    if (auto why = copy.why(trial.gang)) out.refusal = std::move(why->refusal);
    out.verdict = is_never(out.refusal.reason) ? Verdict::kNever : Verdict::kWaits;
  }
  return out;
}

Engine Engine::rehearsal() const {
  Engine copy = clone();
  copy.impl_->state.rehearse();
  return copy;
}

Engine Engine::clone() const {
  Engine copy(impl_->state.config());
  copy.impl_ = std::make_unique<Impl>(*impl_);
  return copy;
}

std::uint64_t Engine::digest() const {
  Digest d;
  impl_->state.digest(d);
  impl_->policy->digest(d);
  return d.value();
}

}  // namespace muster::engine
