/// A random cluster of nodes, queues, gangs and single pods under Muster's policy or Volcano's: what
/// happens in it, told to the engine, and what the engine wants done, checked and done.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/random.h"
#include "checks.h"
#include "engine/engine.h"
#include "model.h"
#include "subject.h"
#include "world.h"

namespace muster::dst {

class QueueWorld final : public World {
 public:
  explicit QueueWorld(const Run& run);
  [[nodiscard]] std::int64_t sent() const override { return subject_.sent(); }

 private:
  using Pods = std::map<std::string, SimPod>;

  std::optional<std::string> step(Random& r) override;
  void decide(Random& r);
  [[nodiscard]] std::vector<engine::Event> aftermath() const;
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

  Subject subject_;
  Model model_;
  Checks checks_;
  std::int64_t names_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace muster::dst
