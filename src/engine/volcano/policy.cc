#include "engine/volcano/policy.h"

#include <algorithm>
#include <tuple>

#include "engine/model/digest.h"

namespace muster::engine::volcano {

Plan VolcanoPolicy::decide(Time now) {
  // A session looks at everything, so what changed since the last one is of no interest.
  (void)state_.take_dirty_gangs();
  return Session(state_, memory_, now).run();
}

const Refusal* VolcanoPolicy::last_refusal(GangId id) const {
  const GangState& gang = state_.gang(id);
  if (const auto found = memory_.told.find(gang.key); found != memory_.told.end())
    return &found->second.refusal;
  for (const PodId pod : gang.pods) {
    if (const auto found = memory_.told.find(state_.pod(pod).key); found != memory_.told.end())
      return &found->second.refusal;
  }
  return nullptr;
}

std::optional<WaitView> VolcanoPolicy::told(GangId id) const {
  if (!id.valid()) return std::nullopt;
  const Refusal* refusal = last_refusal(id);
  if (refusal == nullptr) return std::nullopt;
  WaitView view = wait_view(state_, id);
  view.refusal = *refusal;
  return view;
}

std::vector<WaitView> VolcanoPolicy::waiting(TenantId tenant, std::size_t limit) {
  std::vector<GangId> gangs;
  for (std::uint32_t g = 0; g < state_.gang_count(); ++g) {
    const GangState& gang = state_.gang(GangId(g));
    if (gang.live && gang.tenant == tenant && gang.wanted > 0) gangs.push_back(GangId(g));
  }
  std::sort(gangs.begin(), gangs.end(), [&](GangId a, GangId b) {
    const GangState &x = state_.gang(a), &y = state_.gang(b);
    return std::tuple(-std::int64_t{x.spec->priority}, x.created, x.seq) <
           std::tuple(-std::int64_t{y.spec->priority}, y.created, y.seq);
  });
  std::vector<WaitView> out;
  for (std::size_t i = 0; i < gangs.size() && i < limit; ++i) {
    out.push_back(wait_view(state_, gangs[i]));
    out.back().rank = static_cast<std::int32_t>(i);
    if (const Refusal* refusal = last_refusal(gangs[i])) out.back().refusal = *refusal;
  }
  return out;
}

std::vector<QueueView> VolcanoPolicy::queues(std::span<const TenantId> tenants) {
  tenants_.refresh(state_);
  return queue_views(state_, tenants_, tenants);
}

std::unique_ptr<Policy> VolcanoPolicy::clone(State& state) const {
  auto copy = std::make_unique<VolcanoPolicy>(state);
  copy->memory_ = memory_;
  return copy;
}

void VolcanoPolicy::digest(Digest& d) const {
  for (const auto& [key, told] : memory_.told) d.add(key, told.is_pod, describe(told.refusal));
}

}  // namespace muster::engine::volcano
