#include "checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "counts.h"

namespace muster::dst {

using namespace engine;  // the subject of this program

std::optional<std::string> Checks::plan(const Plan& plan) {
  failure_.reset();
  held_before_ = model_.held;
  bound_before_ = model_.bound;
  reserved_before_ = model_.reservations;
  // Volcano's policy promises nothing to those that wait: it has no reservations, evicts action by
  // action, and what it nominates is worked out anew in every session.
  const bool promises = config_.policy == PolicyKind::kMuster;
  if (plan.reservations_changed) model_.reservations = plan.reservations;
  if (promises) hold(plan);
  evict(plan);
  if (promises && !failure_)
    failure_ = promises_.judge(plan, {reserved_before_, held_before_, bound_before_});
  for (const auto& b : plan.binds) {
    if (auto wrong = model_.carry_out(b)) fail(std::move(*wrong));
  }
  if (failure_) return failure_;
  promises_.forget_started();
  gangs(plan);
  limits(plan);
  if (promises) {
    held_room(plan);
    need(plan);
  }
  if (!failure_ && (++plans_ % 64 == 0 || thorough_)) failure_ = miscounted(model_, engine_);
  if (!failure_ && promises) nobody_left_behind(plan);
  return failure_;
}

/// Nominations: what was held stays held, unless somebody more important takes it or the world has
/// changed.
void Checks::hold(const Plan& plan) {
  for (const auto& n : plan.nominations) {
    const auto it = model_.pods.find(n.pod);
    if (it == model_.pods.end()) continue;  // It has gone in the meantime.
    const auto before = held_before_.find(n.pod);
    if (!n.node.empty()) {
      if (!model_.nodes.contains(n.node)) return fail("nominated to a node that is gone: " + n.pod);
      model_.held[n.pod] = {n.node, n.devices, before == held_before_.end() || before->second.due};
      continue;
    }
    model_.held.erase(n.pod);
    if (before == held_before_.end() || !before->second.due) continue;
    // What is held for the rest of a gang of which members must go may not be enough any more.
    const bool torn = std::any_of(plan.evicts.begin(), plan.evicts.end(), [&](const Evict& e) {
      const auto p = model_.pods.find(e.pod);
      return p != model_.pods.end() &&
             model_.root_of(p->second.spec) == model_.root_of(it->second.spec);
    });
    if (torn) continue;
    const bool outranked =
        std::any_of(plan.nominations.begin(), plan.nominations.end(), [&](const Nominate& other) {
          const auto p = model_.pods.find(other.pod);
          return !other.node.empty() && p != model_.pods.end() &&
                 model_.priority_of(p->second.spec) > model_.priority_of(it->second.spec);
        });
    if (!outranked) fail(n.pod + " lost the room held for it");
  }
}

void Checks::evict(const Plan& plan) {
  for (const auto& e : plan.evicts) {
    const auto it = model_.pods.find(e.pod);
    if (it == model_.pods.end()) return fail("eviction of unknown pod " + e.pod);
    SimPod& p = it->second;
    if (p.life != Life::kBound) return fail("eviction of a pod that does not run: " + e.pod);
    model_.set_life(p, Life::kLeaving);
    for (auto& [key, h] : model_.held)
      h.due = h.due && model_.root_of(model_.pods.at(key).spec) != model_.root_of(p.spec);
    const SimPod* winner = model_.someone_of(e.for_whom);
    if (winner == nullptr) return fail("eviction for nobody: " + e.for_whom);
    // Volcano asks its plugins in turn until somebody names victims, whatever their priorities are.
    if (e.kind == EvictKind::kPreempt && config_.policy == PolicyKind::kMuster &&
        model_.priority_of(p.spec) >= model_.priority_of(winner->spec))
      fail("eviction of an equal or higher priority: " + e.pod);
    if (e.kind == EvictKind::kReclaim && model_.queue_of(winner->spec) == model_.queue_of(p.spec))
      fail("reclaim inside a queue: " + e.pod);
    for (const auto& [key, h] : held_before_) {
      const Pod& spec = model_.pods.at(key).spec;
      const bool its = key == e.for_whom || spec.group == e.for_whom;
      const bool starts = std::any_of(
          plan.binds.begin(), plan.binds.end(), [&](const Bind& b) { return b.pod == key; });
      const bool lost =
          std::any_of(plan.nominations.begin(), plan.nominations.end(), [&](const Nominate& n) {
            return n.pod == key && n.node.empty();
          });
      if (its && h.due && !starts && !lost && model_.held.contains(key))
        return fail(
            fmt::format("{} was evicted for {}, which has room held already", e.pod, e.for_whom));
    }
  }
}

void Checks::gangs(const Plan& plan) {
  std::set<std::string> touched;
  for (const auto& b : plan.binds) touched.insert(model_.pods.at(b.pod).spec.group);
  touched.erase("");
  for (const auto& key : touched) {
    const auto group = model_.groups.find(key);
    if (group == model_.groups.end()) {
      fail("members started without their group: " + key);
      continue;
    }
    const Group& g = group->second;
    // Volcano's actions come one after the other: who starts may lose others in the same plan.
    std::int32_t together = model_.bound[key];
    for (const auto& e : plan.evicts)
      together += config_.policy == PolicyKind::kVolcano && model_.pods.at(e.pod).spec.group == key;
    if (together < g.min_member)
      fail(fmt::format("gang {} started with {} of {}", key, model_.bound[key], g.min_member));
    if (!g.parent.empty()) family(g.parent);
    if (g.topology.empty() || !g.topology[0].required) continue;
    std::set<std::string> zones;
    for (auto it = model_.pods.lower_bound(key + "-");
         it != model_.pods.end() && it->second.spec.group == key;
         ++it) {
      const auto n = model_.nodes.find(it->second.spec.node);
      if (it->second.life == Life::kBound && n != model_.nodes.end())
        zones.insert(n->second.spec.labels[0].second);
    }
    if (zones.size() > 1) fail("gang spans two domains: " + key);
  }
}

void Checks::family(const std::string& key) {
  const auto top = model_.families.find(key);
  if (top == model_.families.end())
    return fail("a gang started without the group above it: " + key);
  std::int32_t running = 0;
  for (const auto& [name, g] : model_.groups)
    running += g.parent == key && model_.bound[name] >= g.min_member ? 1 : 0;
  if (running < top->second.min_groups)
    fail(
        fmt::format("family {} started with {} of {} gangs", key, running, top->second.min_groups));
}

void Checks::limits(const Plan& plan) {
  std::set<std::string> grew;
  for (const auto& b : plan.binds) {
    const Pod& p = model_.pods.at(b.pod).spec;
    if (device_milli_of(p) > 0) grew.insert(model_.queue_of(p));
  }
  for (const auto& q : model_.queues) {
    if (q.capability.empty() || !grew.contains(q.name)) continue;
    if (model_.used[q.name] > q.capability[0].value * 1000)
      fail("queue beyond its capability: " + q.name);
  }
}

/// Where room is held there will be room, once those that leave have left; and then nobody waits
/// for it any longer.
void Checks::held_room(const Plan& plan) {
  std::set<std::string> nodes;
  for (const auto& [key, h] : model_.held) nodes.insert(h.node);
  for (const auto& name : nodes) {
    const auto n = model_.nodes.find(name);
    if (n == model_.nodes.end()) return fail("room is held on a node that is gone: " + name);
    if (!any_negative(model_.later_room(n->second))) continue;
    const auto told = std::find_if(plan.nominations.begin(),
                                   plan.nominations.end(),
                                   [&](const Nominate& m) { return m.node == name; });
    return fail(told == plan.nominations.end()
                    ? "room held on " + name + " was given to others"
                    : "the victims of " + told->pod + " make too little room");
  }
  std::set<std::string> waits_for_leavers;
  for (const auto& [key, h] : model_.held) {
    const auto& pods = model_.nodes.at(h.node).pods;
    if (std::any_of(
            pods.begin(), pods.end(), [](const SimPod* p) { return p->life == Life::kLeaving; }))
      waits_for_leavers.insert(model_.root_of(model_.pods.at(key).spec));
  }
  for (const auto& [key, h] : model_.held) {
    const bool told_now =
        std::any_of(plan.nominations.begin(), plan.nominations.end(), [&](const Nominate& m) {
          return m.pod == key && !m.node.empty();
        });
    if (told_now || !held_before_.contains(key)) continue;
    if (!waits_for_leavers.contains(model_.root_of(model_.pods.at(key).spec)))
      fail(key + " waits for room that nobody is in any more");
  }
}

/// How many groups of the family had to find room at once; one where it is no family.
std::size_t Checks::start_together(const std::string& root) {
  const auto top = model_.families.find(root);
  if (top == model_.families.end()) return 1;
  std::int32_t left = top->second.min_groups;
  for (const auto& [name, g] : model_.groups) {
    if (g.parent != root) continue;
    const bool waits_for_room =
        std::any_of(held_before_.begin(), held_before_.end(), [&, key = name](const auto& held) {
          const auto p = model_.pods.find(held.first);
          return p != model_.pods.end() && p->second.spec.group == key;
        });
    if (bound_before_[name] >= g.min_member || waits_for_room) --left;
  }
  return static_cast<std::size_t>(std::max(left, 1));
}

/// No eviction without need: with any one of those that may go alone still there, or any whole gang
/// or family, not all of those for whom they go would have their place, or their part of the queue.
void Checks::need(const Plan& plan) {
  if (plan.evicts.empty()) return;
  const std::string& winner = plan.evicts.front().for_whom;
  if (std::any_of(plan.evicts.begin(), plan.evicts.end(), [&](const Evict& e) {
        return e.for_whom != winner;
      }))
    return;
  // Where others lost their nominations, or got them, more than one wish was at work.
  std::map<std::string, std::vector<std::string>> guests;  // by node
  std::set<std::string> groups;
  const std::string root = model_.root_of(model_.someone_of(winner)->spec);
  for (const auto& n : plan.nominations) {
    if (n.node.empty() || !model_.held.contains(n.pod) ||
        model_.root_of(model_.pods.at(n.pod).spec) != root)
      return;
    guests[n.node].push_back(n.pod);
    groups.insert(model_.pods.at(n.pod).spec.group);
  }
  // So they were if a family got room for more groups than must start together: each of those comes
  // to what the others hold already.
  if (groups.size() > start_together(root)) return;
  std::map<std::string, std::vector<const SimPod*>> units;
  // The gang may have started anew in the meantime.
  std::map<std::string, std::int32_t> left = bound_before_;
  for (const auto& e : plan.evicts) --left[model_.pods.at(e.pod).spec.group];
  for (const auto& e : plan.evicts) {
    const SimPod& p = model_.pods.at(e.pod);
    const std::string& group = p.spec.group;
    const bool surplus = !group.empty() && model_.groups.at(group).parent.empty() &&
                         left[group] >= model_.groups.at(group).min_member;
    units[surplus ? e.pod : model_.root_of(p.spec)].push_back(&p);
  }
  const std::string queue = model_.queue_of(model_.someone_of(winner)->spec);
  const auto limit = std::find_if(model_.queues.begin(), model_.queues.end(), [&](const Queue& q) {
    return q.name == queue && !q.capability.empty();
  });
  for (const auto& [name, unit] : units) {
    std::map<std::string, Room> rooms;
    std::int64_t more = 0;
    for (const SimPod* p : unit) {
      const auto [room, fresh] = rooms.try_emplace(p->spec.node, Room{});
      if (fresh) {
        room->second = model_.later_room(model_.nodes.at(p->spec.node));
        for (const auto& g : guests[p->spec.node])
          adjust(room->second, model_.pods.at(g), model_.held.at(g).devices, -1);
      }
      adjust(room->second, *p, +1);
      if (model_.queue_of(p->spec) == queue) more += device_milli_of(p->spec);
    }
    bool needed =
        limit != model_.queues.end() && more > 0 &&
        model_.used[queue] + model_.held_of_queue(queue) + more > limit->capability[0].value * 1000;
    for (auto& [node, room] : rooms) {
      std::vector<const SimPod*> seated;
      for (const auto& g : guests[node]) seated.push_back(&model_.pods.at(g));
      std::stable_sort(seated.begin(), seated.end(), [](const SimPod* a, const SimPod* b) {
        return device_milli_of(a->spec) > device_milli_of(b->spec);
      });
      // Room that is there may be promised to somebody ahead.
      const auto promised = [&](const Reservation& r) {
        return std::find(r.nodes.begin(), r.nodes.end(), node) != r.nodes.end();
      };
      needed = needed || any_negative(room) ||
               std::any_of(model_.reservations.begin(), model_.reservations.end(), promised) ||
               std::any_of(reserved_before_.begin(), reserved_before_.end(), promised);
      for (const SimPod* p : seated) {
        needed = needed || !takes(room, *p);
        if (!needed) adjust(room, *p, devices_for(room, *p), +1);
      }
    }
    if (!needed) return fail(fmt::format("{} was evicted for {} without need", name, winner));
  }
}

/// The engine's indexes against a scan of everything: with no reservations in play, a pod or a gang
/// whose queue has room and which fits must not wait.
void Checks::nobody_left_behind(const Plan& plan) {
  if (config_.reservations > 0 || !plan.evicts.empty()) return;
  std::map<std::string, Room> rooms;
  for (const auto& [name, n] : model_.nodes)
    rooms[name] = model_.held.empty() ? n.room : model_.open_room(n);
  std::set<std::string> awaited;
  for (const auto& [key, h] : model_.held) awaited.insert(model_.root_of(model_.pods.at(key).spec));
  const SimPod* seen = nullptr;
  for (const auto& [key, p] : model_.pods) {
    if (p.life != Life::kPending) continue;
    std::int64_t wanted = 1;
    if (!p.spec.group.empty()) {
      // Members are alike: one speaks for all.
      if (seen != nullptr && seen->spec.group == p.spec.group) continue;
      seen = &p;
      const auto group = model_.groups.find(p.spec.group);
      if (group == model_.groups.end() || !group->second.topology.empty() ||
          !group->second.parent.empty())
        continue;
      std::int64_t ready = 0;
      bool gated = false;
      for (auto it = model_.pods.lower_bound(p.spec.group + "-");
           it != model_.pods.end() && it->second.spec.group == p.spec.group;
           ++it) {
        gated |= it->second.life == Life::kPending && it->second.spec.gated;
        ready += it->second.life == Life::kPending ? 1 : 0;
      }
      wanted = std::max<std::int64_t>(1, group->second.min_member - model_.bound[p.spec.group]);
      if (gated || ready < wanted) continue;
    } else if (p.spec.gated) {
      continue;
    }
    if (awaited.contains(model_.root_of(p.spec)) || !model_.queue_takes(p, wanted)) continue;
    std::int64_t left = wanted;
    for (const auto& [name, n] : model_.nodes) {
      if (left > 0 && usable(n, p)) left -= takes_count(rooms[name], p, left);
    }
    if (left > 0) continue;
    const auto why = engine_.why(p.spec.group.empty() ? key : p.spec.group);
    return fail(fmt::format("{} waits although it fits: {}",
                            key,
                            why ? describe(why->refusal) : "it does not know why"));
  }
}

}  // namespace muster::dst
