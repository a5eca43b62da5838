/// What proportion and capacity have in common: queues with a guarantee, a limit and a due.
#pragma once

#include <algorithm>

#include "engine/volcano/plugin.h"

namespace muster::engine::volcano {

class QueueLimits : public Plugin {
 public:
  using Plugin::Plugin;

  /// By the queues' priority, then as by_due() says.
  [[nodiscard]] int queue_order(QueueIx a, QueueIx b) override {
    const auto x = state_.tenant(snapshot_.queues[a].tenant).spec.priority;
    const auto y = state_.tenant(snapshot_.queues[b].tenant).spec.priority;
    if (x != y) return x > y ? -1 : 1;
    return by_due(a, b);
  }

  [[nodiscard]] Vote job_enqueueable(const Job& job) const override {
    const bool takes = snapshot_.queue_open(job.queue) && may_hold_jobs(job.queue);
    return takes && room_for(job) ? Vote::kPermit : Vote::kReject;
  }

  [[nodiscard]] std::vector<QueueIx> limiting(QueueIx queue) const override {
    return snapshot_.chain(queue, false);
  }

 protected:
  [[nodiscard]] virtual int by_due(QueueIx a, QueueIx b) const = 0;
  [[nodiscard]] virtual bool may_hold_jobs(QueueIx) const { return true; }

  [[nodiscard]] int by_share(QueueIx a, QueueIx b) const {
    const Share x = snapshot_.queues[a].share;
    const Share y = snapshot_.queues[b].share;
    return x == y ? 0 : x < y ? -1 : 1;
  }

  /// What is guaranteed to all queues that there are.
  [[nodiscard]] Amounts all_guarantees() const {
    Amounts sum;
    for (std::uint32_t t = 0; t < state_.tenant_count(); ++t) {
      if (state_.tenant(TenantId(t)).live) sum += Amounts::of(state_.tenant(TenantId(t)).guarantee);
    }
    return sum;
  }

  /// What a queue may have at most when no other has more than it is guaranteed.
  void set_real(QueueAttr& queue, const Amounts& guarantees) const {
    queue.real = exceeded(snapshot_.total, guarantees) + queue.guarantee;
    for (std::size_t i = 0; i < snapshot_.dims; ++i)
      queue.real[i] = std::min(queue.real[i], queue.capability[i]);
  }

 private:
  [[nodiscard]] bool room_for(const Job& job) const {
    const auto queues = limiting(job.queue);
    return std::all_of(queues.begin(), queues.end(), [&](QueueIx q) {
      const QueueAttr& attr = snapshot_.queues[q];
      return requested_less_equal(job.min_resources + attr.allocated + attr.inqueue - attr.elastic,
                                  attr.real,
                                  job.min_resources);
    });
  }
};

}  // namespace muster::engine::volcano
