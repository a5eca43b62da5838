/// Compares each plan of a cluster of cells with HiveD's rules, counted only from the configuration and
/// from what pods carry: gangs whole, no device twice, nobody on a failed node; no virtual cluster in
/// more cells than it owns or in another's; no guaranteed gang made to leave by an equal or lower rank
/// or by another virtual cluster; who was promised cells by evictions gets them; and a guarantee is
/// never refused to a gang that fits in it.
///
/// A gang that was taken over by other cells, or by another engine, may have lost its guarantee: of
/// those, and of gangs that agreed to lose it (lazy preemption), less is asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cell_layout.h"
#include "engine/engine.h"
#include "model.h"

namespace muster::dst {

class CellChecks {
 public:
  /// Thorough: everything is counted anew after every plan, not only now and then.
  CellChecks(Model& model, const engine::Engine& engine, bool thorough)
      : model_(model), engine_(engine), thorough_(thorough) {}

  /// What is wrong with the plan, if anything. Afterwards the model is as the plan wants it.
  std::optional<std::string> plan(const engine::Plan& plan);

  [[nodiscard]] const CellLayout& layout() const { return layout_; }
  /// Who starts together with the pod, as its owner sees it.
  [[nodiscard]] std::string gang_of(const SimPod& pod) const;

  // What happened since, and may be the reason that somebody does not get what was promised.
  void divided(const engine::cells::Config& cells);
  void restarted();
  /// Queues are to change.
  void limited();
  void disturb(const SimPod& pod);
  void disturb_all();
  /// It was to leave and does not.
  void spared(const SimPod& pod);

 private:
  /// Pods that cells place together or not at all.
  struct Unit {
    std::string vc;
    std::string pinned;
    /// Empty: any.
    std::string leaf_type;
    std::int32_t priority = 0;
    bool lazy = false;
    std::vector<const SimPod*> waiting;
    /// Bound or leaving.
    std::vector<const SimPod*> seated;
    bool leaving = false;
    bool gated = false;
    std::string queue;
    /// Of its pods, where it was given cells: all places, those of pods that are not there included.
    const engine::cells::BindInfo* bind = nullptr;

    /// A pod of it carries that it has no guarantee any more.
    bool downgraded = false;

    [[nodiscard]] bool guaranteed() const { return priority >= 0; }
  };
  /// Cells that somebody's evictions are to free.
  struct Owed {
    std::set<std::string> victims;
    /// Nothing has happened that could have taken them away.
    bool due = true;
  };
  using Units = std::map<std::string, Unit>;

  void fail(std::string text) {
    if (!failure_) failure_ = std::move(text);
  }
  [[nodiscard]] Units units() const;
  void describe(const SimPod& pod, Unit& unit) const;
  [[nodiscard]] std::string unit_of(const SimPod& pod) const;
  [[nodiscard]] std::vector<std::string> free_slots(const Unit& unit, std::int64_t size) const;
  [[nodiscard]] std::string virtual_cluster_of(const std::string& queue) const;
  [[nodiscard]] const engine::Queue* find_queue(const std::string& name) const;
  /// The queue and those above it, from below.
  [[nodiscard]] std::vector<const engine::Queue*> line_of(const std::string& queue) const;
  [[nodiscard]] std::int64_t held_by(const engine::Queue& queue, bool with_leaving) const;
  [[nodiscard]] bool queue_takes(const Unit& unit) const;
  [[nodiscard]] bool is_well(const std::string& node) const;
  [[nodiscard]] std::pair<engine::Reason, std::string> reason_of(const Unit& unit) const;
  [[nodiscard]] bool ready(const Unit& unit) const;

  void evict(const engine::Plan& plan);
  /// Told to leave, even if its last pod does not: what others of it left is not theirs any more.
  [[nodiscard]] bool makes_way(const Unit& unit) const;
  void rank(const std::string& name,
            const Unit& victim,
            const std::pair<const std::string, Unit>& winner);
  void outrank(const std::string& name, const Unit& unit);
  void bind(const engine::Plan& plan);
  void whole(const engine::Plan& plan);
  void limits(const engine::Plan& plan);
  void ownership();
  void freed();
  void refused();
  [[nodiscard]] bool spoken_for(const Unit& unit, const std::set<std::string>& reserving) const;
  [[nodiscard]] bool fits(const Unit& unit) const;
  [[nodiscard]] std::int64_t places_owned(const Unit& unit,
                                          const std::string& chain,
                                          std::int64_t size) const;
  [[nodiscard]] std::int64_t places_unused(const std::string& chain, std::int64_t size) const;
  void take_over();
  void forget();

  Model& model_;
  const engine::Engine& engine_;
  bool thorough_;
  CellLayout layout_;
  /// Units that may have lost their guarantee.
  std::set<std::string> carried_;
  std::map<std::string, Owed> owed_;
  std::set<std::string> spared_;
  /// Units that had cells, or were promised some, when a limit changed.
  std::set<std::string> admitted_;
  /// Before and after the plan.
  Units before_;
  Units after_;
  std::int64_t plans_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace muster::dst
