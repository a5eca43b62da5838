/// Compares each plan with the model: nothing overcommitted, no device given out twice, no gang started
/// in part, no limit broken, nobody evicted without need or twice for the same, held room kept,
/// reservations not delayed, nobody waiting who could start.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "model.h"
#include "promises.h"

namespace muster::dst {

class Checks {
 public:
  /// Thorough: everything is counted anew after every plan, not only now and then.
  Checks(Model& model, const engine::Engine& engine, const engine::Config& config, bool thorough)
      : model_(model),
        engine_(engine),
        config_(config),
        thorough_(thorough),
        promises_(model, engine, config) {}

  /// What is wrong with the plan, if anything. Afterwards the model is as the plan wants it.
  std::optional<std::string> plan(const engine::Plan& plan);

 private:
  void fail(std::string text) {
    if (!failure_) failure_ = std::move(text);
  }
  void hold(const engine::Plan& plan);
  void evict(const engine::Plan& plan);
  void gangs(const engine::Plan& plan);
  void family(const std::string& key);
  void limits(const engine::Plan& plan);
  void held_room(const engine::Plan& plan);
  void need(const engine::Plan& plan);
  [[nodiscard]] std::size_t start_together(const std::string& root);
  void nobody_left_behind(const engine::Plan& plan);

  Model& model_;
  const engine::Engine& engine_;
  engine::Config config_;
  bool thorough_;
  Promises promises_;
  std::map<std::string, Held> held_before_;
  std::map<std::string, std::int32_t> bound_before_;
  std::vector<engine::Reservation> reserved_before_;
  std::int64_t plans_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace muster::dst
