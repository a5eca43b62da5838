#include "counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace muster::dst {

using namespace engine;  // the subject of this program

namespace {

std::optional<std::string> rooms(const Model& model, const Engine& engine) {
  std::map<std::string, std::int64_t> used;
  for (const auto& [key, p] : model.pods) {
    if (p.life == Life::kBound) used[model.queue_of(p.spec)] += device_milli_of(p.spec);
  }
  for (const auto& q : model.queues) {
    const auto kept = model.used.find(q.name);
    if (used[q.name] != (kept == model.used.end() ? 0 : kept->second))
      return "the model lost count of queue " + q.name;
  }
  for (const auto& [name, n] : model.nodes) {
    const Room room = model.counted_room(n);
    if (room != n.room) return "the model lost count of node " + name;
    const auto view = engine.node(name);
    if (!view) return "the engine does not know node " + name;
    std::int64_t cpu = 0;
    for (const auto& amount : view->used) cpu = amount.name == "cpu" ? amount.value : cpu;
    const auto whole =
        static_cast<std::size_t>(std::count(room.devices.begin(), room.devices.end(), 1000));
    if (cpu != n.cpu - room.cpu || view->free_devices.size() != whole)
      return fmt::format("node {}: the engine counts {} cpu used, {} devices free; it is {} and {}",
                         name,
                         cpu,
                         view->free_devices.size(),
                         n.cpu - room.cpu,
                         whole);
  }
  return std::nullopt;
}

struct Gang {
  std::int32_t bound = 0, wanted = 0, least = 1;
  std::string queue;
  bool family = false;
  /// By a gate, or because room is held for it.
  bool held = false;

  [[nodiscard]] bool runs() const { return bound > 0 && bound >= least; }
  [[nodiscard]] bool waits() const { return !runs() && wanted > 0; }
};

std::map<std::string, Gang> gangs_of(const Model& model) {
  std::map<std::string, Gang> gangs;
  for (const auto& [key, p] : model.pods) {
    Gang& gang = gangs[p.spec.group.empty() ? key : p.spec.group];
    gang.queue = model.queue_of(p.spec);
    if (const auto group = model.groups.find(p.spec.group); group != model.groups.end()) {
      gang.least = group->second.min_member;
      gang.family = !group->second.parent.empty();
    }
    if (p.life == Life::kBound) ++gang.bound;
    if (p.life == Life::kPending && !p.spec.gated) ++gang.wanted;
    gang.held = gang.held || p.spec.gated || model.held.contains(key);
  }
  return gangs;
}

bool is_open(const Model& model, const std::string& name) {
  return std::all_of(model.queues.begin(), model.queues.end(), [&](const Queue& queue) {
    if (queue.name != name) return true;
    return queue.state == QueueState::kOpen &&
           (queue.parent.empty() || is_open(model, queue.parent));
  });
}

/// The gangs of each queue that run and that wait, against the engine's counters.
std::optional<std::string> standings(const Model& model,
                                     const Engine& engine,
                                     const std::map<std::string, Gang>& gangs) {
  std::map<std::string, std::pair<std::int32_t, std::int32_t>> counted;
  for (const auto& [key, gang] : gangs) {
    if (gang.runs()) ++counted[gang.queue].first;
    if (gang.waits()) ++counted[gang.queue].second;
  }
  std::int64_t waiting = 0;
  for (const auto& q : model.queues) {
    const auto view = engine.queue(q.name);
    const auto [running, waits] = counted[q.name];
    waiting += waits;
    if (!view || view->gangs_running != running || view->gangs_waiting != waits)
      return fmt::format(
          "queue {}: the engine counts {} gangs running and {} waiting; it is {} and {}",
          q.name,
          view ? view->gangs_running : -1,
          view ? view->gangs_waiting : -1,
          running,
          waits);
  }
  if (engine.stats().gangs_waiting != waiting)
    return "the engine lost count of the gangs that wait";
  return std::nullopt;
}

/// Who waits can be asked why. Who stands in line, its pods complete and none of them gated, its queue
/// open and no room held for it, is listed once and with its rank; who is listed waits.
std::optional<std::string> lists(const Model& model,
                                 const Engine& engine,
                                 const std::map<std::string, Gang>& gangs) {
  std::set<std::string> listed;
  for (const auto& q : model.queues) {
    std::int32_t rank = 0;
    for (const WaitView& view : engine.waiting(q.name, gangs.size() + 1)) {
      const auto gang = gangs.find(view.key);
      if (gang == gangs.end() || gang->second.queue != q.name || gang->second.wanted == 0)
        return fmt::format("{} is listed as waiting in {}, and does not", view.key, q.name);
      if (!listed.insert(view.key).second) return view.key + " is listed twice as waiting";
      if (view.rank != rank++) return view.key + " is listed with another rank than its own";
    }
  }
  for (const auto& [key, gang] : gangs) {
    if (!gang.waits()) continue;
    if (!engine.why(key)) return key + " waits and nobody can say why";
    const bool in_line = gang.bound + gang.wanted >= gang.least && !gang.family && !gang.held &&
                         is_open(model, gang.queue);
    if (in_line && !listed.contains(key)) return key + " waits and is not listed";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> miscounted(const Model& model, const Engine& engine) {
  if (auto wrong = rooms(model, engine)) return wrong;
  const auto gangs = gangs_of(model);
  if (auto wrong = standings(model, engine, gangs)) return wrong;
  return lists(model, engine, gangs);
}

}  // namespace muster::dst
