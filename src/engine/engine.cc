#include "engine/engine.h"

#include "engine/muster/planner.h"
#include "engine/state/state.h"
#include "engine/volcano/session.h"

namespace muster::engine {

struct Engine::Impl {
  explicit Impl(Config config) : state(std::move(config)), planner(state) {}
  State state;
  // Queries bring indexes up to date; that changes no later plan.
  mutable Planner planner;
  volcano::Memory volcano_memory;
};

Engine::Engine(Config config) : impl_(std::make_unique<Impl>(std::move(config))) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

void Engine::apply(const Event& event) { impl_->state.apply(event); }

Plan Engine::decide(Time now) {
  if (impl_->state.config().policy == Policy::kVolcano) {
    (void)impl_->state.take_dirty_gangs();
    (void)impl_->state.take_completions();
    return volcano::Session(impl_->state, impl_->volcano_memory, now).run();
  }
  return impl_->planner.decide(now);
}

std::optional<WaitView> Engine::why(std::string_view key) const {
  const GangId id = impl_->state.find_gang(key);
  if (impl_->state.config().policy != Policy::kVolcano) return impl_->planner.why(id);
  const auto told = impl_->volcano_memory.told.find(std::string(key));
  if (told == impl_->volcano_memory.told.end() || !id.valid()) return std::nullopt;
  const GangState& gang = impl_->state.gang(id);
  WaitView view;
  view.key = gang.key;
  view.is_group = gang.has_group;
  view.queue = impl_->state.tenant(gang.tenant).name;
  view.priority = gang.spec.priority;
  view.since = gang.created;
  view.refusal = told->second.refusal;
  return view;
}

std::vector<WaitView> Engine::waiting(std::string_view queue, std::size_t limit) const {
  return impl_->planner.waiting(impl_->state.find_tenant(queue), limit);
}

namespace {

QueueView view_of(const State& state, const Tenants& tenants, TenantId id) {
  const TenantState& t = state.tenant(id);
  QueueView view;
  view.name = t.name;
  if (t.parent.valid()) view.parent = state.tenant(t.parent).name;
  view.allocated = state.list_of(t.allocated);
  view.requested = state.list_of(t.allocated + t.pending);
  if (tenants.known(id)) {
    view.deserved = state.list_of(tenants.deserved(id));
    view.real_capability = state.list_of(tenants.real(id));
    view.share_permille = tenants.share(state, id) / 1000;
  }
  return view;
}

}  // namespace

std::optional<QueueView> Engine::queue(std::string_view name) const {
  const TenantId id = impl_->state.find_tenant(name);
  if (!id.valid()) return std::nullopt;
  for (auto& view : queues()) {
    if (view.name == name) return view;
  }
  return std::nullopt;
}

std::vector<QueueView> Engine::queues() const {
  impl_->planner.refresh_tenants();
  std::vector<QueueView> out;
  std::vector<std::size_t> position(impl_->state.tenant_count());
  for (std::uint32_t t = 0; t < impl_->state.tenant_count(); ++t) {
    position[t] = out.size();
    out.push_back(view_of(impl_->state, impl_->planner.tenants(), TenantId(t)));
  }
  for (std::uint32_t g = 0; g < impl_->state.gang_count(); ++g) {
    const GangState& gang = impl_->state.gang(GangId(g));
    if (!gang.live) continue;
    QueueView& view = out[position[gang.tenant.index()]];
    if (gang.bound > 0 && gang.bound + gang.succeeded >= gang.spec.min_member) {
      ++view.gangs_running;
    } else if (gang.pending > 0) {
      ++view.gangs_waiting;
    }
  }
  return out;
}

std::optional<NodeView> Engine::node(std::string_view name) const {
  const NodeId id = impl_->state.find_node(name);
  if (!id.valid() || !impl_->state.node(id).live) return std::nullopt;
  const NodeState& n = impl_->state.node(id);
  NodeView view;
  view.name = n.spec.name;
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
    if (auto view = node(impl_->state.node(NodeId(n)).spec.name)) out.push_back(std::move(*view));
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
  s.gangs_waiting = impl_->planner.waiting_count();
  s.attempts = impl_->planner.attempts;
  s.binds = impl_->state.binds;
  s.evictions = impl_->state.evictions;
  s.node_checks = impl_->planner.node_checks();
  return s;
}

}  // namespace muster::engine
