// The digest of Muster's own policy: who waits for what, what is reserved, held and told.
#include "engine/model/digest.h"

#include "engine/muster/planner.h"

namespace muster::engine {

// Of this file alone, but not in a namespace of their own: Digest finds them by where it is itself.
static void digest(Digest& d, const Rank& r) {
  d.add(r.low_priority, r.surplus, r.drf, r.created_us, r.seq);
}
/// Gains are counts of an index; only what follows from them lasts.
static void digest(Digest& d, const Shape& s) {
  d.add(s.parts, s.alone, s.blocked, s.waiting, s.tenants, s.refusal_at, s.has_refusal);
}
static void digest(Digest& d, const Bucket& b) {
  d.add(b.by_rank);
  b.by_duration.digest(d);
  d.add(b.over_limit, b.limit_seen, b.filling, b.held);
}
static void digest(Digest& d, const WaitRecord& r) {
  d.add(r.listed,
        r.tenant,
        r.shape,
        r.rank,
        r.length.us,
        r.length.kind,
        r.at_most_us,
        r.sure,
        describe(r.refusal),
        r.told);
  d.add(r.told_group, r.told_pod, r.since, r.promised, r.nominated, r.preempt_epoch, r.seq);
}
static void digest(Digest& d, const Reservations::Hold& h) {
  d.add(h.gang,
        h.rank,
        h.since,
        h.start,
        h.promised,
        h.found,
        h.estimated,
        h.member,
        h.nodes,
        h.live);
}

void FillOrder::digest(Digest& d) const {
  d.add(order_, size_);
  for (const auto& [kind, alike] : alike_) d.add(kind, alike.gangs, alike.lengths);
}

void Waiting::digest(Digest& d) const {
  for (const Line& line : lines_) d.add(line.buckets, line.active, line.limited);
  d.add(shapes_, blocked_, active_, limited_, records_, count_, nominated_);
}

void Reservations::digest(Digest& d) const {
  d.add(holds_, version_, live_);
  for (const auto& at_node : slots_) {
    d.add(at_node.size());
    for (const Slot& slot : at_node) d.add(slot.reservation, slot.amount, slot.cls, slot.members);
  }
}

void Nominations::digest(Digest& d) const { d.add(bereft_, dropped_); }

void Intake::digest(Digest& d) const { d.add(parked_, unadmitted_, tenants_seen_); }

void Planner::digest(Digest& d) const {
  waiting_.digest(d);
  reservations_.digest(d);
  nominations_.digest(d);
  intake_.digest(d);
}

}  // namespace muster::engine
