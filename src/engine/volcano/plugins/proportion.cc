// proportion: each queue deserves its part of the cluster by weight, and that is a hard cap.
#include <map>

#include "engine/state/shares.h"
#include "engine/volcano/plugins/plugins.h"
#include "engine/volcano/plugins/queue_limits.h"

namespace muster::engine::volcano {

namespace {

class Proportion : public QueueLimits {
 public:
  using QueueLimits::QueueLimits;

  void open() override {
    snapshot_.sum_queues(false);
    const Amounts guarantees = all_guarantees();
    std::vector<Claim> claims;
    std::vector<QueueIx> owners;
    for (QueueIx q = 0; q < snapshot_.queues.size(); ++q) {
      QueueAttr& attr = snapshot_.queues[q];
      set_real(attr, guarantees);
      attr.deserved = Amounts();
      if (!attr.used) continue;
      owners.push_back(q);
      claims.push_back(
          {state_.tenant(attr.tenant).spec.weight, attr.real, attr.request, attr.guarantee, {}});
    }
    water_fill(snapshot_.total, snapshot_.dims, claims);
    for (std::size_t i = 0; i < owners.size(); ++i)
      snapshot_.queues[owners[i]].deserved = claims[i].deserved;
    for (QueueIx q = 0; q < snapshot_.queues.size(); ++q) snapshot_.update_share(q);
  }

  [[nodiscard]] bool overused(QueueIx q) const override {
    return everywhere_less_equal(snapshot_.queues[q].deserved, snapshot_.queues[q].allocated);
  }

  [[nodiscard]] bool allocatable(QueueIx q, const Amounts& request) const override {
    return snapshot_.queue_open(q) && stays_within_due(q, request);
  }

  [[nodiscard]] bool preemptive(QueueIx q, const Amounts& request) const override {
    return snapshot_.queue_open(q) && stays_within_due(q, request);
  }

  [[nodiscard]] bool limits_to_deserved() const override { return true; }

  /// What queues have above their due.
  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    if (!question.reclaiming) return std::nullopt;
    std::map<QueueIx, Amounts> left;
    std::vector<TaskIx> out;
    for (const TaskIx t : question.candidates) {
      const QueueIx q = snapshot_.queue_of(t);
      const auto [it, fresh] = left.try_emplace(q, snapshot_.queues[q].allocated);
      if (everywhere_less_equal(it->second, snapshot_.queues[q].deserved)) continue;
      it->second -= snapshot_.tasks[t].request;
      out.push_back(t);
    }
    return out;
  }
  [[nodiscard]] bool judges_bundles() const override { return true; }

 protected:
  [[nodiscard]] int by_due(QueueIx a, QueueIx b) const override { return by_share(a, b); }

 private:
  [[nodiscard]] bool stays_within_due(QueueIx q, const Amounts& request) const {
    const QueueAttr& attr = snapshot_.queues[q];
    return requested_less_equal(attr.allocated + request, attr.deserved, request);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_proportion(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Proportion>(config, snapshot);
}

}  // namespace muster::engine::volcano
