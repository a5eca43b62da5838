// binpack: the fuller node first, in the resources that its arguments name.
#include "base/strings.h"
#include "engine/volcano/plugins/plugins.h"
#include "engine/volcano/plugins/scores.h"

namespace muster::engine::volcano {

namespace {

/// Before what nodeorder says: next to binpack it would spread what binpack packs.
constexpr std::int64_t kFirst = 100'000'000;

class Binpack : public Plugin {
 public:
  using Plugin::Plugin;

  [[nodiscard]] std::int64_t node_score(TaskIx t, NodeId node) const override {
    const NodeRoom& room = snapshot_.rooms[node.index()];
    const Amounts& request = snapshot_.tasks[t].request;
    std::int64_t sum = 0;
    std::int64_t points = 0;
    for (const auto& [i, w] : weights()) {
      if (request[i] <= 0) continue;
      sum += w;
      const Wide after = room.used[i] + request[i];
      if (room.allocatable[i] > 0 && after <= room.allocatable[i])
        points += w * fill(after, room.allocatable[i]);
    }
    return sum > 0 ? kFirst * (points / sum * weight("binpack.weight")) : 0;
  }

 private:
  [[nodiscard]] std::int64_t weight(const std::string& key) const {
    const std::int64_t w = integer(key, 1);
    return w < 0 ? 1 : w;
  }

  [[nodiscard]] std::vector<std::pair<std::size_t, std::int64_t>> weights() const {
    std::vector<std::pair<std::size_t, std::int64_t>> out = {
        {ResourceNames::kCpu, weight("binpack.cpu")},
        {ResourceNames::kMemory, weight("binpack.memory")}};
    for (const auto& part : split_nonempty(argument("binpack.resources"), ',')) {
      const std::string resource(trim(part));
      const std::size_t i = state_.names().find(resource);
      if (i != ResourceNames::kNone) out.emplace_back(i, weight("binpack.resources." + resource));
    }
    return out;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_binpack(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Binpack>(config, snapshot);
}

}  // namespace muster::engine::volcano
