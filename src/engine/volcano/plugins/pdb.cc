// pdb: as many victims as the disruption budgets of their pods allow.
#include <map>

#include "engine/state/match.h"
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Pdb : public Plugin {
 public:
  using Plugin::Plugin;

  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    std::map<std::string, std::int32_t> allowed;
    for (const auto& [key, b] : state_.budgets()) allowed[key] = b.disruptions_allowed;
    std::vector<TaskIx> out;
    for (const TaskIx t : question.candidates) {
      const PodState& pod = snapshot_.pod_of(t);
      bool ok = true;
      for (const auto& [key, b] : state_.budgets()) {
        if (b.ns != pod.ns || !b.selector || !matches(*b.selector, pod.labels)) continue;
        if (--allowed[key] < 0) ok = false;
      }
      if (ok) out.push_back(t);
    }
    return out;
  }
  [[nodiscard]] bool judges_bundles() const override { return true; }
};

}  // namespace

std::unique_ptr<Plugin> make_pdb(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Pdb>(config, snapshot);
}

}  // namespace muster::engine::volcano
