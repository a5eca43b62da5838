#include "cell_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "counts.h"

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

constexpr std::int32_t kMaxPriority = 1000;

/// HiveD's: a class below 0 is opportunistic, everything above 1000 counts as 1000.
std::int32_t cell_priority(std::int32_t priority) {
  return priority < 0 ? -1 : std::min(priority, kMaxPriority);
}

const cells::PodSpec* asked(const SimPod& pod) {
  return pod.spec.cells ? &*pod.spec.cells->spec : nullptr;
}

/// What a bound pod carries: its owner's words, or what was worked out for it.
const cells::PodSpec& carried_spec(const SimPod& pod) {
  return pod.seat->spec ? *pod.seat->spec : *asked(pod);
}

bool says_guaranteed(const cells::BindInfo& bind) {
  const auto& types = bind.group->front().pods.front().preassigned_types;
  return !types.empty() && !types.front().empty();
}

/// Calls `visit(node, leaf, preassigned type)` for every leaf that the gang was given.
template <typename Visit>
void each_leaf(const cells::BindInfo& bind, Visit&& visit) {
  for (const auto& member : *bind.group) {
    for (const auto& pod : member.pods) {
      for (std::size_t i = 0; i < pod.leaves.size(); ++i)
        visit(pod.node,
              pod.leaves[i],
              i < pod.preassigned_types.size() ? pod.preassigned_types[i] : std::string());
    }
  }
}

}  // namespace

// ------------------------------------------------------------------------------------ what happened

void CellChecks::divided(const cells::Config& cells) {
  layout_ = CellLayout(cells);
  take_over();
}

void CellChecks::restarted() {
  take_over();
  spared_.clear();
}

void CellChecks::take_over() {
  for (const auto& [name, unit] : units()) {
    if (!unit.seated.empty()) carried_.insert(name);
  }
  owed_.clear();
}

void CellChecks::limited() {
  for (const auto& [name, unit] : units()) {
    const bool kept = !unit.waiting.empty() && reason_of(unit).first == Reason::kWaitingForVictims;
    if (!unit.seated.empty() || owed_.contains(name) || kept) admitted_.insert(name);
  }
  disturb_all();
}

void CellChecks::disturb(const SimPod& pod) {
  if (pod.gpus == 0) return;
  const auto found = owed_.find(unit_of(pod));
  if (found != owed_.end()) found->second.due = false;
}

void CellChecks::disturb_all() {
  for (auto& [name, owed] : owed_) owed.due = false;
}

void CellChecks::spared(const SimPod& pod) { spared_.insert(unit_of(pod)); }

/// Who is not there any more needs no memory.
void CellChecks::forget() {
  const auto gone = [this](const std::string& name) {
    const auto found = after_.find(name);
    return found == after_.end() || found->second.seated.empty();
  };
  std::erase_if(carried_, gone);
  std::erase_if(spared_, gone);
  std::erase_if(admitted_, [this](const std::string& name) { return !after_.contains(name); });
}

// ------------------------------------------------------------------------------------ who there is

std::string CellChecks::gang_of(const SimPod& pod) const {
  if (const auto* spec = asked(pod)) return spec->group;
  return pod.spec.group.empty() ? pod.spec.key : pod.spec.group;
}

std::string CellChecks::unit_of(const SimPod& pod) const {
  return pod.seat ? carried_spec(pod).group : gang_of(pod);
}

void CellChecks::describe(const SimPod& pod, Unit& unit) const {
  unit.queue = model_.queue_of(pod.spec);
  if (const auto* spec = pod.seat ? &carried_spec(pod) : asked(pod)) {
    unit.vc = spec->vc;
    unit.pinned = spec->pinned_cell;
    unit.leaf_type = spec->leaf_type;
    unit.priority = spec->priority;
    unit.lazy = spec->lazy_preemption;
    return;
  }
  unit.vc = virtual_cluster_of(unit.queue);
  unit.priority = cell_priority(model_.priority_of(pod.spec));
  unit.leaf_type = pod.spec.device_models.empty() ? "" : pod.spec.device_models[0];
}

CellChecks::Units CellChecks::units() const {
  Units out;
  for (const auto& [key, pod] : model_.pods) {
    if (pod.gpus == 0 || !pod.seat) continue;
    Unit& unit = out[unit_of(pod)];
    if (unit.seated.empty()) {
      describe(pod, unit);
      unit.bind = &pod.seat->bind;
    }
    unit.downgraded = unit.downgraded || !says_guaranteed(pod.seat->bind);
    unit.leaving = unit.leaving || pod.life == Life::kLeaving;
    unit.seated.push_back(&pod);
  }
  for (const auto& [key, pod] : model_.pods) {
    if (pod.gpus == 0 || pod.seat) continue;
    auto found = out.find(gang_of(pod));
    // Its gang started without it: it comes on top, alone.
    const bool late = found != out.end() && !found->second.seated.empty() &&
                      asked(pod) == nullptr && free_slots(found->second, pod.gpus).empty();
    Unit& unit = late ? out[key] : out[gang_of(pod)];
    if (unit.seated.empty() && unit.waiting.empty()) describe(pod, unit);
    if (pod.spec.gated)
      unit.gated = true;
    else
      unit.waiting.push_back(&pod);
  }
  return out;
}

/// The nodes of its places of that size that no pod of it sits in.
std::vector<std::string> CellChecks::free_slots(const Unit& unit, std::int64_t size) const {
  std::vector<std::string> out;
  for (const auto& member : *unit.bind->group) {
    for (const auto& place : member.pods) {
      if (static_cast<std::int64_t>(place.leaves.size()) != size) continue;
      const bool taken =
          std::any_of(unit.seated.begin(), unit.seated.end(), [&](const SimPod* pod) {
            return pod->spec.node == place.node && pod->spec.device_indexes == place.leaves;
          });
      if (!taken) out.push_back(place.node);
    }
  }
  return out;
}

const Queue* CellChecks::find_queue(const std::string& name) const {
  const auto found = std::find_if(model_.queues.begin(),
                                  model_.queues.end(),
                                  [&](const Queue& queue) { return queue.name == name; });
  return found == model_.queues.end() ? nullptr : &*found;
}

std::vector<const Queue*> CellChecks::line_of(const std::string& name) const {
  std::vector<const Queue*> out;
  for (const Queue* queue = find_queue(name); queue != nullptr; queue = find_queue(queue->parent))
    out.push_back(queue);
  return out;
}

std::string CellChecks::virtual_cluster_of(const std::string& name) const {
  for (const Queue* queue : line_of(name)) {
    if (!queue->virtual_cluster.empty()) return queue->virtual_cluster;
    if (layout_.has_vc(queue->name)) return queue->name;
  }
  return "";
}

bool CellChecks::is_well(const std::string& name) const {
  const auto node = model_.nodes.find(name);
  return node != model_.nodes.end() && node->second.spec.ready && !node->second.spec.unschedulable;
}

/// Devices of those that run in it or below, and of those that have not left yet.
std::int64_t CellChecks::held_by(const Queue& queue, bool with_leaving) const {
  std::int64_t held = 0;
  for (const auto& [key, pod] : model_.pods) {
    const bool counts = pod.life == Life::kBound || (with_leaving && pod.life == Life::kLeaving);
    if (!counts || pod.gpus == 0) continue;
    const auto line = line_of(model_.queue_of(pod.spec));
    if (std::find(line.begin(), line.end(), &queue) != line.end()) held += pod.gpus;
  }
  return held;
}

/// All of it, pods that are not there yet included.
bool CellChecks::queue_takes(const Unit& unit) const {
  std::int64_t devices = 0;
  if (const auto* spec = asked(*unit.waiting.front())) {
    for (const auto& member : spec->members) devices += std::int64_t{member.pods} * member.leaves;
  } else {
    for (const SimPod* pod : unit.waiting) devices += pod->gpus;
  }
  const auto line = line_of(unit.queue);
  return std::all_of(line.begin(), line.end(), [&](const Queue* queue) {
    return queue->capability.empty() ||
           held_by(*queue, true) + devices <= queue->capability[0].value;
  });
}

// ------------------------------------------------------------------------------------ a plan

std::optional<std::string> CellChecks::plan(const Plan& plan) {
  failure_.reset();
  if (plan.reservations_changed) model_.reservations = plan.reservations;
  before_ = units();
  evict(plan);
  bind(plan);
  if (failure_) return failure_;
  after_ = units();
  whole(plan);
  limits(plan);
  ownership();
  freed();
  if (!failure_) refused();
  if (!failure_ && (++plans_ % 16 == 0 || thorough_)) failure_ = miscounted(model_, engine_);
  forget();
  return failure_;
}

void CellChecks::evict(const Plan& plan) {
  std::set<std::string> victims;
  std::set<std::string> winners;
  for (const Evict& e : plan.evicts) {
    const auto it = model_.pods.find(e.pod);
    if (it == model_.pods.end()) return fail("eviction of unknown pod " + e.pod);
    SimPod& pod = it->second;
    if (pod.life != Life::kBound) return fail("eviction of a pod that does not run: " + e.pod);
    const auto winner = std::find_if(before_.begin(), before_.end(), [&](const auto& unit) {
      return std::any_of(unit.second.waiting.begin(), unit.second.waiting.end(), [&](auto* one) {
        return one->spec.key == e.for_whom_pod;
      });
    });
    if (winner == before_.end() || pod.gpus == 0)
      return fail(
          fmt::format("eviction of {} for {}, which waits for no cells", e.pod, e.for_whom));
    const std::string name = unit_of(pod);
    rank(name, before_.at(name), *winner);
    victims.insert(name);
    model_.set_life(pod, Life::kLeaving);
    winners.insert(winner->first);
    Owed& owed = owed_[winner->first];
    // Who makes room in a queue gives up devices, not the cells that will be taken.
    owed.due = owed.due && queue_takes(winner->second);
    outrank(winner->first, winner->second);
  }
  for (const std::string& name : victims) {
    const auto& pods = before_.at(name).seated;
    if (!spared_.contains(name) && std::any_of(pods.begin(), pods.end(), [](const SimPod* pod) {
          return pod->life == Life::kBound;
        }))
      return fail("gang " + name + " is evicted in part");
  }
  // The cells of a gang are free when its last pod is gone, one whose eviction failed included. Those
  // that were told to go before, or for another, may sit in the cells as well and are not told again.
  for (const auto& [name, unit] : before_) {
    if (!unit.leaving && !spared_.contains(name) && !victims.contains(name)) continue;
    for (const SimPod* pod : unit.seated) {
      for (const std::string& winner : winners) owed_.at(winner).victims.insert(pod->spec.uid);
    }
  }
}

bool CellChecks::makes_way(const Unit& unit) const {
  return unit.leaving || std::any_of(owed_.begin(), owed_.end(), [&](const auto& owed) {
           return std::any_of(unit.seated.begin(), unit.seated.end(), [&](const SimPod* pod) {
             return owed.second.victims.contains(pod->spec.uid);
           });
         });
}

void CellChecks::rank(const std::string& name,
                      const Unit& victim,
                      const std::pair<const std::string, Unit>& winner) {
  if (!winner.second.guaranteed())
    return fail(fmt::format("{} is evicted for {}, which is opportunistic", name, winner.first));
  if (!victim.guaranteed() || victim.downgraded || victim.lazy || carried_.contains(name)) return;
  if (victim.vc != winner.second.vc)
    return fail(fmt::format("{} is guaranteed its cells in {} and makes way for {} of {}",
                            name,
                            victim.vc,
                            winner.first,
                            winner.second.vc));
  if (victim.priority >= winner.second.priority)
    fail(fmt::format("{} of priority {} makes way for an equal or lower rank: {} of priority {}",
                     name,
                     victim.priority,
                     winner.first,
                     winner.second.priority));
}

/// What is reserved for others of its virtual cluster is not safe from a higher rank.
void CellChecks::outrank(const std::string& name, const Unit& unit) {
  for (auto& [other, owed] : owed_) {
    const auto found = before_.find(other);
    if (other != name && found != before_.end() && found->second.vc == unit.vc &&
        found->second.priority < unit.priority)
      owed.due = false;
  }
}

void CellChecks::bind(const Plan& plan) {
  for (const Bind& b : plan.binds) {
    if (auto wrong = model_.carry_out(b)) return fail(std::move(*wrong));
    const SimPod& pod = model_.pods.at(b.pod);
    if ((pod.gpus > 0) != (b.cells != nullptr))
      return fail(b.pod +
                  (b.cells ? " got cells and asked for none" : " got devices, but no cells"));
    if (pod.gpus == 0) continue;
    if (b.cells->bind.node != b.node || b.cells->bind.leaves != b.devices)
      return fail(b.pod + " carries another place than it was given");
    const auto unit = before_.find(unit_of(pod));
    if (unit != before_.end()) outrank(unit->first, unit->second);
  }
}

// ------------------------------------------------------------------------------------ gangs and queues

/// All pods of a gang start, and those that come later get the places that were given to the gang.
void CellChecks::whole(const Plan& plan) {
  std::set<std::string> touched;
  for (const Bind& b : plan.binds) {
    if (b.cells) touched.insert(unit_of(model_.pods.at(b.pod)));
  }
  for (const std::string& name : touched) {
    const Unit& unit = after_.at(name);
    const auto before = before_.find(name);
    const bool starts = before == before_.end() || before->second.seated.empty();
    const SimPod& pod = *unit.seated.front();
    if (!starts || pod.spec.group.empty() || name != pod.spec.group) continue;
    std::size_t given = 0;
    for (const auto& member : *unit.bind->group) given += member.pods.size();
    const std::int32_t least = model_.groups.at(pod.spec.group).min_member;
    // Those that came on top, alone, are of its group, too.
    const auto started = static_cast<std::int32_t>(
        std::count_if(model_.pods.begin(), model_.pods.end(), [&](const auto& one) {
          return one.second.seat && one.second.spec.group == name;
        }));
    if (unit.seated.size() < given || started < least)
      return fail(
          fmt::format("gang {} started with {} of {}, at least {}", name, started, given, least));
  }
  for (const auto& [name, unit] : after_) {
    if (unit.seated.empty() || makes_way(unit) || carried_.contains(name) || !ready(unit)) continue;
    for (const SimPod* pod : unit.waiting) {
      const auto slots = free_slots(unit, pod->gpus);
      if (!slots.empty() &&
          std::all_of(slots.begin(), slots.end(), [&](const auto& node) { return is_well(node); }))
        return fail(fmt::format("gang {} started with {} of {}: {} waits though its place is free",
                                name,
                                unit.seated.size(),
                                unit.seated.size() + unit.waiting.size(),
                                pod->spec.key));
    }
  }
}

void CellChecks::limits(const Plan& plan) {
  for (const Bind& b : plan.binds) {
    const SimPod& pod = model_.pods.at(b.pod);
    // Who has cells keeps them when a limit is lowered, for pods that come again, too.
    if (pod.gpus == 0 || admitted_.contains(unit_of(pod))) continue;
    for (const Queue* queue : line_of(model_.queue_of(pod.spec))) {
      if (!queue->capability.empty() && held_by(*queue, false) > queue->capability[0].value)
        return fail(fmt::format("queue beyond its capability: {} holds {} of {} with {}",
                                queue->name,
                                held_by(*queue, false),
                                queue->capability[0].value,
                                b.pod));
    }
  }
}

// ------------------------------------------------------------------------------------ guarantees

/// Guaranteed gangs sit in cells that their virtual cluster owns, and nobody else's do.
void CellChecks::ownership() {
  std::map<std::string, std::string> owners;
  std::map<std::string, std::set<std::string>> in_use;  // By virtual cluster, chain and level.
  for (const auto& [name, unit] : after_) {
    if (unit.seated.empty() || !unit.guaranteed() || unit.downgraded || unit.lazy ||
        carried_.contains(name))
      continue;
    each_leaf(*unit.bind,
              [&, &gang = name, &sits = unit](
                  const std::string& node, std::int32_t leaf, const std::string& type) {
                const auto place = layout_.nodes().find(node);
                if (place == layout_.nodes().end()) return fail(gang + " sits on no cell: " + node);
                if (place->second.pinned != sits.pinned)
                  return fail(fmt::format("{} sits in pinned cell \"{}\" and asked for \"{}\"",
                                          gang,
                                          place->second.pinned,
                                          sits.pinned));
                const std::int32_t level = layout_.chains().at(place->second.chain).level_of(type);
                if (level == 0)
                  return fail(gang + " sits in a cell of a type that is not there: " + type);
                const std::string cell = layout_.cell_of(node, leaf, level);
                const auto [owner, fresh] = owners.emplace(cell, sits.vc);
                if (owner->second != sits.vc)
                  return fail(fmt::format("a {} serves {} and {}", type, owner->second, sits.vc));
                if (sits.pinned.empty())
                  in_use[fmt::format("{}|{}|{}", sits.vc, place->second.chain, level)].insert(cell);
              });
  }
  for (const auto& [key, cells] : in_use) {
    std::int32_t owned = 0;
    const std::string vc = key.substr(0, key.find('|'));
    for (const auto& one : layout_.owned(vc)) {
      if (one.pinned.empty() && key == fmt::format("{}|{}|{}", vc, one.chain, one.level))
        owned += one.number;
    }
    if (static_cast<std::int32_t>(cells.size()) > owned)
      fail(fmt::format("{} uses {} cells and owns {}", key, cells.size(), owned));
  }
}

/// Those that were to make way are gone: who they went for starts.
void CellChecks::freed() {
  std::set<std::string> there;
  for (const auto& [key, pod] : model_.pods) there.insert(pod.spec.uid);
  for (auto it = owed_.begin(); it != owed_.end();) {
    const auto unit = after_.find(it->first);
    const bool over =
        unit == after_.end() || unit->second.waiting.empty() || !unit->second.seated.empty();
    const bool gone = std::none_of(it->second.victims.begin(),
                                   it->second.victims.end(),
                                   [&](const auto& uid) { return there.contains(uid); });
    if (!over && gone && it->second.due)
      fail(fmt::format("{} still waits though all who were to make way for it are gone: {}",
                       it->first,
                       reason_of(unit->second).second));
    it = over || gone ? owed_.erase(it) : std::next(it);
  }
}

std::pair<Reason, std::string> CellChecks::reason_of(const Unit& unit) const {
  const SimPod& pod = *unit.waiting.front();
  const auto why = engine_.why(pod.spec.group.empty() ? pod.spec.key : pod.spec.group);
  if (!why) return {Reason::kNone, "it does not know why"};
  return {why->refusal.reason, engine::describe(why->refusal)};
}

/// Its group lets it start, and so do its queues.
bool CellChecks::ready(const Unit& unit) const {
  const SimPod& pod = unit.waiting.empty() ? *unit.seated.front() : *unit.waiting.front();
  if (!pod.spec.group.empty()) {
    const Group& group = model_.groups.at(pod.spec.group);
    const auto pods = unit.waiting.size() + unit.seated.size();
    if (group.hold || static_cast<std::int32_t>(pods) < group.min_member) return false;
  }
  const auto line = line_of(unit.queue);
  return std::all_of(line.begin(), line.end(), [](const Queue* queue) {
    return queue->state == QueueState::kOpen;
  });
}

/// Nobody is refused what is his, or what nobody uses.
void CellChecks::refused() {
  const bool leaving = std::any_of(model_.pods.begin(), model_.pods.end(), [](const auto& pod) {
    return pod.second.life == Life::kLeaving;
  });
  std::map<std::string, std::pair<Reason, std::string>> reasons;
  std::set<std::string> reserving;
  for (const auto& [name, unit] : after_) {
    if (unit.waiting.empty() || !unit.seated.empty()) continue;
    const auto& reason = reasons[name] = reason_of(unit);
    if (owed_.contains(name) || reason.first == Reason::kWaitingForVictims) reserving.insert(name);
  }
  for (const auto& [name, told] : reasons) {
    const Unit& unit = after_.at(name);
    const auto& [reason, text] = told;
    if (!layout_.has_vc(unit.vc)) continue;
    if (reason == Reason::kWaitingForVictims && !owed_.contains(name) && !leaving &&
        spared_.empty())
      return fail(name + " waits for others to leave, and nobody does");
    if (reserving.contains(name) || reason == Reason::kHeldForReservation || !ready(unit) ||
        !queue_takes(unit))
      continue;
    const bool blocked = std::any_of(reserving.begin(), reserving.end(), [&](const auto& other) {
      const Unit& holder = after_.at(other);
      return !unit.guaranteed() || (holder.vc == unit.vc && holder.priority >= unit.priority);
    });
    if (blocked || spoken_for(unit, reserving) || !fits(unit)) continue;
    return fail(fmt::format("{} of {} is refused {}: {}",
                            name,
                            unit.vc,
                            unit.guaranteed() ? "what it is guaranteed" : "what nobody uses",
                            text));
  }
}

/// One of its queues has a limit, of which a part may be kept for somebody whose cells are.
bool CellChecks::spoken_for(const Unit& unit, const std::set<std::string>& reserving) const {
  const auto line = line_of(unit.queue);
  if (std::all_of(line.begin(), line.end(), [](const Queue* q) { return q->capability.empty(); }))
    return false;
  return !reserving.empty() || std::any_of(after_.begin(), after_.end(), [](const auto& other) {
    return !other.second.seated.empty() && !other.second.waiting.empty();
  });
}

/// Pods of one size are placed wherever enough of them fit: for others the order of nodes counts.
bool CellChecks::fits(const Unit& unit) const {
  std::int64_t pods = 0;
  const std::int64_t size = unit.waiting.front()->gpus;
  if (const auto* spec = asked(*unit.waiting.front())) {
    for (const auto& member : spec->members) {
      if (member.leaves != size) return false;
      pods += member.pods;
    }
  } else {
    pods = static_cast<std::int64_t>(unit.waiting.size());
    if (std::any_of(unit.waiting.begin(), unit.waiting.end(), [&](const SimPod* pod) {
          return pod->gpus != size ||
                 pod->spec.device_models != unit.waiting[0]->spec.device_models;
        }))
      return false;
  }
  return std::any_of(layout_.chains().begin(), layout_.chains().end(), [&](const auto& chain) {
    if (!unit.leaf_type.empty() && chain.second.leaf_type != unit.leaf_type) return false;
    return (unit.guaranteed() ? places_owned(unit, chain.first, size)
                              : places_unused(chain.first, size)) >= pods;
  });
}

/// How many pods of that size fit into what the virtual cluster owns of the chain and nobody of its
/// own rank or above uses. 0 where that cannot be told from outside.
std::int64_t CellChecks::places_owned(const Unit& unit,
                                      const std::string& name,
                                      std::int64_t size) const {
  const CellLayout::Chain& chain = layout_.chains().at(name);
  if (!std::all_of(
          chain.nodes.begin(), chain.nodes.end(), [&](const auto& node) { return is_well(node); }))
    return 0;
  // A pod fits into one node, or into one cell if that is smaller.
  const auto entry_level = [&](std::int32_t level) { return std::min(level, chain.node_level); };
  std::map<std::int32_t, std::int64_t> entries;  // By level that is owned.
  for (const auto& owned : layout_.owned(unit.vc)) {
    if (owned.chain != name || owned.pinned != unit.pinned) continue;
    entries[owned.level] += std::int64_t{owned.number} * chain.leaves(owned.level) /
                            chain.leaves(entry_level(owned.level));
  }
  std::map<std::pair<std::int32_t, std::string>, std::int64_t> used;
  for (const auto& [other, one] : after_) {
    if (one.seated.empty() || one.vc != unit.vc || one.pinned != unit.pinned) continue;
    if (carried_.contains(other)) return 0;
    each_leaf(
        *one.bind,
        [&, &sits = one](const std::string& node, std::int32_t leaf, const std::string& type) {
          const auto place = layout_.nodes().find(node);
          const std::int32_t level = chain.level_of(type);
          if (type.empty() || place == layout_.nodes().end() || place->second.chain != name ||
              level == 0)
            return;
          std::int64_t& count = used[{level, layout_.cell_of(node, leaf, entry_level(level))}];
          count += sits.priority >= unit.priority ? 1 : 0;
        });
  }
  std::int64_t places = 0;
  for (const auto& [entry, count] : used) {
    --entries[entry.first];
    places += (chain.leaves(entry_level(entry.first)) - count) / size;
  }
  for (const auto& [level, count] : entries)
    places += count * (chain.leaves(entry_level(level)) / size);
  return places;
}

/// How many pods of that size fit onto devices of the chain that no gang was given.
std::int64_t CellChecks::places_unused(const std::string& name, std::int64_t size) const {
  std::set<std::pair<std::string, std::int32_t>> used;
  for (const auto& [other, unit] : after_) {
    for (const SimPod* pod : unit.seated) {
      for (const auto device : pod->spec.device_indexes) used.emplace(pod->spec.node, device);
    }
    if (unit.seated.empty()) continue;
    each_leaf(*unit.bind, [&](const std::string& node, std::int32_t leaf, const std::string&) {
      used.emplace(node, leaf);
    });
  }
  const CellLayout::Chain& chain = layout_.chains().at(name);
  std::int64_t places = 0;
  for (const std::string& node : chain.nodes) {
    if (!is_well(node)) continue;
    std::int64_t free = chain.node_leaves();
    for (auto it = used.lower_bound({node, 0}); it != used.end() && it->first == node; ++it) --free;
    places += free / size;
  }
  return places;
}

}  // namespace muster::dst
