/// A random cluster whose devices are HiveD's cells, driven through the engine: virtual clusters with
/// queues below them, gangs with and without HiveD's annotation, failing nodes, cells that are divided
/// anew and schedulers that start again. What the engine wants is checked and done.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "cell_checks.h"
#include "engine/engine.h"
#include "model.h"
#include "subject.h"
#include "world.h"

namespace muster::dst {

class CellWorld final : public World {
 public:
  explicit CellWorld(const Run& run);
  [[nodiscard]] std::int64_t sent() const override { return subject_.sent(); }

 private:
  using Pods = std::map<std::string, SimPod>;

  std::optional<std::string> step(Random& r) override;
  void act(Random& r);
  void carry_on(Random& r, const engine::Plan& plan);
  [[nodiscard]] std::vector<engine::Event> aftermath() const;

  void add_nodes();
  void add_queues(Random& r);
  void add_gang(Random& r);
  void add_annotated(Random& r);
  void add_single(Random& r);
  void add_plain(Random& r);
  void toggle_node(Random& r);
  void lose_node(Random& r);
  void change_queue(Random& r);
  void toggle_gate(Random& r);
  void toggle_hold(Random& r);
  void spare_one(Random& r);
  void divide_anew(Random& r);
  void restart(Random& r);
  void end_one(Random& r);
  void leavers_go();

  engine::Pod make_pod(const std::string& key, std::int64_t gpus);
  [[nodiscard]] std::int32_t some_size(Random& r) const;
  [[nodiscard]] std::int32_t some_priority(Random& r) const;
  [[nodiscard]] std::string some_queue(Random& r) const;
  SimPod* random_pod(Random& r, Life life);
  void add(SimPod pod);
  Pods::iterator drop(Pods::iterator it);
  /// It is gone, and its owner makes another of its name.
  void replace(const std::string& key);
  /// As the API server has it.
  [[nodiscard]] engine::Pod as_seen(const SimPod& pod) const;

  Subject subject_;
  Model model_;
  engine::cells::Config cells_;
  CellChecks checks_;
  std::int64_t names_ = 0;
};

}  // namespace muster::dst
