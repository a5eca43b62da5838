// The digest of cells: what is bound, used, free and promised, and in which order lists give it out.
#include "engine/model/digest.h"

#include "engine/cells/allocator.h"
#include "engine/cells/policy.h"

namespace muster::engine {

// Of this file alone, but not in a namespace of their own: Digest finds them by where it is itself.
static void digest(Digest& d, const cells::PhysicalCell& c) {
  d.add(c.priority, c.virt, c.used_total, c.used_opportunistic, c.using_group, c.state, c.healthy);
  d.add(c.split, c.bad_children, c.reserving_group, c.allocated_virtual, c.opportunistic_vc);
}
static void digest(Digest& d, const cells::VirtualCell& c) {
  d.add(c.priority, c.used_total, c.physical, c.state, c.healthy);
}
static void digest(Digest& d, const cells::Chain& c) {
  d.add(c.name, c.free, c.bad_free, c.total_left, c.all_vc_free, c.all_vc_doomed);
}
static void digest(Digest& d, const cells::RootList& r) { d.add(r.cells, r.unbound); }
static void digest(Digest& d, const cells::Holding& h) {
  d.add(h.chain, h.roots, h.free, h.doomed);
}
static void digest(Digest& d, const cells::VirtualCluster& vc) {
  d.add(vc.name, vc.configured, vc.holdings, vc.opportunistic);
}
static void digest(Digest& d, const cells::Node& n) { d.add(n.name, n.healthy, n.leaves); }
static void digest(Digest& d, const cells::View& v) { d.add(v.order()); }
static void digest(Digest& d, const cells::PodRef& p) { d.add(p.uid, p.name); }
static void digest(Digest& d, const cells::AllocatedPod& p) { d.add(p.pod, p.bind); }
static void digest(Digest& d, const cells::Group::Member& m) {
  d.add(m.leaves, m.slots, m.physical, m.virt);
}
static void digest(Digest& d, const cells::Group& g) {
  d.add(g.name, g.vc, g.priority, g.lazy_preemption, g.ignore_suggested, g.has_virtual, g.state);
  d.add(g.members, g.preempting_pods, g.lazy_preemptor, g.lazy_time, g.allocated_pods);
}

namespace cells {

void CellAllocator::digest(Digest& d) const {
  d.add(cells_.physical, cells_.virtuals, cells_.chains, cells_.vcs, cells_.nodes, cells_.views);
  groups_.digest(d);
}

void Groups::digest(Digest& d) const { d.add(groups_, free_); }

void CellPolicy::digest(Digest& d) const {
  allocator_.digest(d);
  for (const auto& [key, m] : members_) {
    d.add(key, m.ref, m.spec, m.spec_error, m.derived, m.tenant, m.gang, m.created, m.ends);
    d.add(m.expected_duration, m.bound, m.counted, m.refusal.words, m.evict_failures);
    d.add(m.spared_until);
  }
  for (const auto& [vc, hold] : holds_) d.add(vc, hold.gang, hold.until);
  d.add(waiting_, seen_, told_, awaited_nodes_, due_, dirty_);
  rest_->digest(d);
}

}  // namespace cells

}  // namespace muster::engine
