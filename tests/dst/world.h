/// One random world from a seed: what happens in it, told to the engine, and what the engine wants
/// done, checked and done.
///
/// Every step draws from its own generator (seed, step), so steps can be left out and the rest
/// stays what it was: that is how a failing run is made small before it is printed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/random.h"
#include "checks.h"
#include "engine/engine.h"
#include "faults.h"
#include "model.h"

namespace muster::dst {

struct Failure {
  std::int64_t step = 0;
  std::string text;
};

struct Run {
  std::uint64_t seed = 0;
  std::int64_t steps = 400;
  std::set<std::int64_t> skipped;
  Fault fault = Fault::kNone;
  bool trace = false;  ///< Print every event and what the plan says.
};

class World {
 public:
  explicit World(const Run& run);

  /// Events the engine was told.
  [[nodiscard]] std::int64_t sent() const { return sent_; }
  /// What went wrong, or nothing.
  std::optional<Failure> go();

 private:
  using Pods = std::map<std::string, SimPod>;

  void send(const engine::Event& event);
  void decide(Random& r);
  std::optional<std::string> clone_plan(std::string& plan);
  void ask();
  void carry_on(Random& r, const engine::Plan& plan);

  void act(Random& r);
  void add_node(Random& r);
  void add_gang(Random& r);
  void add_family(Random& r);
  void add_single(Random& r);
  void add_members(const engine::Group& group, const engine::Pod& like, std::uint64_t members);
  void remove_group(const std::string& key);
  void replace(const std::string& key);
  void leavers_go();
  void toggle_node(Random& r);
  void lose_node(Random& r);
  void resize_queue(Random& r);
  void toggle_gate(Random& r);
  void change_policy(Random& r);

  engine::Pod make_pod(Random& r, const std::string& key);
  SimPod* random_pod(Random& r, Life life);
  void add(SimPod pod);
  Pods::iterator drop(Pods::iterator it);
  /// What is held for those may be lost now, without anybody's fault.
  void disturb(const std::string& root);
  void disturb_all();

  const Run& run_;
  engine::Engine engine_;
  /// Told the same: must say the same. Now and then it is replaced by a clone, which must go on as
  /// one that was told all.
  engine::Engine twin_;
  bool asked_ = false;  ///< Forecasts are made from the engine, and none from the twin.
  bool compare_ = false;
  Model model_;
  Checks checks_;
  std::int64_t sent_ = 0;
  std::int64_t names_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace muster::dst
