// conformance: critical pods are nobody's victims.
#include "engine/volcano/plugins/plugins.h"

namespace muster::engine::volcano {

namespace {

class Conformance : public Plugin {
 public:
  using Plugin::Plugin;

  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    std::vector<TaskIx> out;
    for (const TaskIx t : question.candidates) {
      if (!snapshot_.pod_of(t).critical) out.push_back(t);
    }
    return out;
  }
  [[nodiscard]] bool judges_bundles() const override { return true; }
};

}  // namespace

std::unique_ptr<Plugin> make_conformance(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Conformance>(config, snapshot);
}

}  // namespace muster::engine::volcano
