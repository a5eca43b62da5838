#include "faults.h"

#include <algorithm>
#include <map>
#include <string>

#include "promises.h"
#include "world.h"

namespace muster::dst {

using namespace engine;  // the subject of this program

const std::vector<NamedFault>& faults() {
  static const std::vector<NamedFault> kFaults = {
      {Kind::kMuster, Fault::kDevice, "device", {"a device given twice"}},
      {Kind::kMuster, Fault::kGang, "gang", {"started with"}},
      {Kind::kMuster, Fault::kNode, "node", {"bind to an unusable node"}},
      {Kind::kMuster, Fault::kLimit, "limit", {"queue beyond its capability"}},
      {Kind::kMuster, Fault::kEvict, "evict", {"without need"}},
      {Kind::kMuster, Fault::kEvictGang, "evict2", {"without need"}},
      {Kind::kMuster, Fault::kReserve, "reserve", {"was delayed by"}},
      {Kind::kMuster, Fault::kHeld, "held", {"given to others"}},
      {Kind::kMuster, Fault::kForget, "forget", {"lost the room held for it"}},
      {Kind::kMuster, Fault::kLost, "lost", {"waits although it fits", "the engine counts"}},
      {Kind::kMuster,
       Fault::kTwin,
       "twin",
       {"the same events gave another plan", "the same events gave another digest"}},
      {Kind::kMuster, Fault::kClone, "clone", {"a clone gave another plan"}},
      {Kind::kMuster,
       Fault::kAsk,
       "ask",
       {"the same events gave another plan", "the same events gave another digest"}},
      {Kind::kVolcano, Fault::kDevice, "device", {"a device given twice"}},
      {Kind::kVolcano, Fault::kGang, "gang", {"started with"}},
      {Kind::kVolcano, Fault::kNode, "node", {"bind to an unusable node"}},
      {Kind::kVolcano, Fault::kLost, "lost", {"the engine counts"}},
      {Kind::kVolcano, Fault::kClone, "clone", {"a clone gave another plan"}},
      {Kind::kCells, Fault::kDevice, "device", {"a device given twice"}},
      {Kind::kCells, Fault::kGang, "gang", {"started with"}},
      {Kind::kCells, Fault::kNode, "node", {"bind to an unusable node"}},
      {Kind::kCells, Fault::kLimit, "limit", {"queue beyond its capability"}},
      {Kind::kCells, Fault::kRefuse, "refuse", {"is refused what it is guaranteed"}},
      {Kind::kCells, Fault::kRank, "rank", {"equal or lower rank"}},
      {Kind::kCells,
       Fault::kWrongVictim,
       "victim",
       {"still waits though all who were to make way"}},
      {Kind::kCells, Fault::kLost, "lost", {"is refused", "the engine counts"}},
      {Kind::kCells,
       Fault::kTwin,
       "twin",
       {"the same events gave another plan", "the same events gave another digest"}},
      {Kind::kCells, Fault::kClone, "clone", {"a clone gave another plan"}},
      {Kind::kAllocator, Fault::kDevice, "device", {"is given to"}},
  };
  return kFaults;
}

namespace {

void add_bind(Plan& plan, const SimPod& p, const std::string& node, const Room& room) {
  plan.binds.push_back(
      {p.spec.key, p.spec.uid, node, devices_for(room, p), p.spec.device_share_milli});
}

bool waits_alone(const SimPod& p) {
  return p.life == Life::kPending && !p.spec.gated && p.spec.group.empty();
}

bool listed(const Plan& plan, const std::string& pod) {
  return std::any_of(
      plan.evicts.begin(), plan.evicts.end(), [&](const Evict& e) { return e.pod == pod; });
}

void give_a_device_twice(const Model& model, Plan& plan) {
  for (Bind& b : plan.binds) {
    const auto n = model.nodes.find(b.node);
    if (n == model.nodes.end() || b.devices.empty()) continue;
    for (std::size_t d = 0; d < n->second.room.devices.size(); ++d) {
      if (n->second.room.devices[d] == 0) b.devices[0] = static_cast<std::int32_t>(d);
    }
  }
}

void start_in_part(const Model& model, Plan& plan) {
  std::map<std::string, std::int32_t> more;
  for (const Bind& b : plan.binds) ++more[model.pods.at(b.pod).spec.group];
  std::erase_if(plan.binds, [&](const Bind& b) {
    const auto g = model.groups.find(model.pods.at(b.pod).spec.group);
    if (g == model.groups.end() || more[g->first] <= 1) return false;
    const auto bound = model.bound.find(g->first);
    return (bound == model.bound.end() ? 0 : bound->second) + more[g->first]-- ==
           g->second.min_member;
  });
}

void use_a_bad_node(const Model& model, Plan& plan) {
  for (const auto& [name, n] : model.nodes) {
    if (!n.spec.ready && !plan.binds.empty()) plan.binds[0].node = name;
  }
}

void break_a_limit(const Model& model, Plan& plan) {
  if (!plan.binds.empty() || !plan.nominations.empty() || !model.held.empty()) return;
  for (const auto& [key, p] : model.pods) {
    if (!waits_alone(p) || model.queue_takes(p, 1)) continue;
    for (const auto& [name, n] : model.nodes) {
      if (usable(n, p) && takes(n.room, p)) return add_bind(plan, p, name, n.room);
    }
  }
}

/// One more that runs alone, or one more whole gang, on the node of the first victim.
void evict_more(const Model& model, Plan& plan, bool gang) {
  if (plan.evicts.empty()) return;
  const Evict first = plan.evicts[0];
  for (const auto& [key, p] : model.pods) {
    if (listed(plan, key) || p.life != Life::kBound || p.spec.node != first.node ||
        p.spec.group.empty() == gang)
      continue;
    if (model.priority_of(p.spec) >= model.priority_of(model.pods.at(first.pod).spec) + 1) continue;
    for (const auto& [other, q] : model.pods) {
      const bool goes =
          gang ? q.spec.group == p.spec.group && q.life == Life::kBound : other == key;
      if (!goes || listed(plan, other)) continue;
      Evict more = first;
      more.pod = other;
      more.node = q.spec.node;
      plan.evicts.push_back(more);
    }
    return;
  }
}

void delay_a_reservation(const Model& model, Plan& plan) {
  if (!plan.binds.empty() || !plan.nominations.empty()) return;
  for (const Reservation& r : plan.reservations_changed ? plan.reservations : model.reservations) {
    for (std::size_t k = 0; k < r.nodes.size(); ++k) {
      const auto n = model.nodes.find(r.nodes[k]);
      if (n == model.nodes.end() || !promise_holds(model, r, k)) continue;
      for (const auto& [key, p] : model.pods) {
        if (!waits_alone(p) || p.gpus == 0 || p.spec.expected_duration.count() > 0 ||
            model.held.contains(key))
          continue;
        const Room room = model.open_room(n->second);
        if (usable(n->second, p) && takes(room, p) && model.queue_takes(p, 1))
          return add_bind(plan, p, n->first, room);
      }
    }
  }
}

/// Somebody starts on devices that are free for the moment only.
void give_away_held_room(const Model& model, Plan& plan) {
  if (!plan.nominations.empty()) return;
  for (const auto& [pod, h] : model.held) {
    const auto n = model.nodes.find(h.node);
    if (n == model.nodes.end() ||
        std::any_of(plan.binds.begin(), plan.binds.end(), [&](const Bind& b) {
          return b.node == h.node || b.pod == pod;
        }))
      continue;
    for (const auto& [key, p] : model.pods) {
      if (!waits_alone(p) || p.gpus == 0 || model.held.contains(key) || !usable(n->second, p) ||
          !takes(n->second.room, p))
        continue;
      if (!takes(model.later_room(n->second), p) && model.queue_takes(p, 1))
        return add_bind(plan, p, n->first, n->second.room);
    }
  }
}

void forget_a_nomination(const Model& model, Plan& plan) {
  if (!plan.nominations.empty()) return;
  for (const auto& [pod, h] : model.held) {
    if (!h.due || std::any_of(plan.binds.begin(), plan.binds.end(), [&](const Bind& b) {
          return b.pod == pod;
        }))
      continue;
    return plan.nominations.push_back({pod, "", {}});
  }
}

/// A gang that is guaranteed its cells does not start.
void refuse_a_guarantee(Plan& plan) {
  std::string group;
  for (const Bind& b : plan.binds) {
    if (group.empty() && b.cells && b.cells->spec && b.cells->spec->priority >= 0)
      group = b.cells->spec->group;
  }
  if (group.empty()) return;
  std::erase_if(plan.binds, [&](const Bind& b) {
    return b.cells && b.cells->spec && b.cells->spec->group == group;
  });
}

/// Somebody of a guaranteed gang leaves with the others, whatever its rank.
void evict_an_equal(const Model& model, Plan& plan) {
  if (plan.evicts.empty()) return;
  for (const auto& [key, p] : model.pods) {
    if (p.life != Life::kBound || !p.seat || !p.seat->spec || p.seat->spec->priority < 1000 ||
        listed(plan, key))
      continue;
    Evict more = plan.evicts[0];
    more.pod = key;
    more.node = p.spec.node;
    return plan.evicts.push_back(more);
  }
}

/// Another opportunistic pod than the one that is in the way leaves.
void evict_somebody_else(const Model& model, Plan& plan) {
  if (plan.evicts.size() != 1) return;
  for (const auto& [key, p] : model.pods) {
    if (p.life != Life::kBound || !p.seat || !p.seat->spec || p.seat->spec->priority >= 0 ||
        p.seat->spec->members.size() != 1 || p.seat->spec->members[0].pods != 1 ||
        listed(plan, key))
      continue;
    plan.evicts[0].pod = key;
    return;
  }
}

}  // namespace

void plant(Fault fault, const Model& model, Plan& plan) {
  switch (fault) {
    case Fault::kDevice:
      return give_a_device_twice(model, plan);
    case Fault::kGang:
      return start_in_part(model, plan);
    case Fault::kNode:
      return use_a_bad_node(model, plan);
    case Fault::kLimit:
      return break_a_limit(model, plan);
    case Fault::kEvict:
      return evict_more(model, plan, false);
    case Fault::kEvictGang:
      return evict_more(model, plan, true);
    case Fault::kReserve:
      return delay_a_reservation(model, plan);
    case Fault::kHeld:
      return give_away_held_room(model, plan);
    case Fault::kForget:
      return forget_a_nomination(model, plan);
    case Fault::kRefuse:
      return refuse_a_guarantee(plan);
    case Fault::kRank:
      return evict_an_equal(model, plan);
    case Fault::kWrongVictim:
      return evict_somebody_else(model, plan);
    case Fault::kNone:
    case Fault::kLost:
    case Fault::kTwin:
    case Fault::kClone:
    case Fault::kAsk:
      return;
  }
}

}  // namespace muster::dst
