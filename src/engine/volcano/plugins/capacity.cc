// capacity: queues borrow up to their capability and give back what others deserve; with hierarchy
// they form a tree.
#include <map>

#include "engine/volcano/plugins/plugins.h"
#include "engine/volcano/plugins/queue_limits.h"

namespace muster::engine::volcano {

namespace {

/// Some dimension that `request` names is used and not above what is deserved.
bool partly_below(const Amounts& used, const Amounts& deserved, const Amounts& request) {
  for (std::size_t i = 0; i < request.v.size(); ++i) {
    if (!compared(i) || request[i] <= 0 || (used[i] < kTolerance && deserved[i] < kTolerance))
      continue;
    if (less_equal(used[i], deserved[i])) return true;
  }
  return false;
}

class Capacity : public QueueLimits {
 public:
  using QueueLimits::QueueLimits;

  void open() override {
    if (hierarchy()) {
      snapshot_.tree = true;
      open_tree();
    } else {
      open_flat();
    }
  }

  /// Queues that are nearer to the preemptor's in the tree give first.
  [[nodiscard]] int victim_queue_order(QueueIx a, QueueIx b, QueueIx preemptor) const override {
    if (!hierarchy()) return 0;
    const std::size_t x = snapshot_.common_level(a, preemptor);
    const std::size_t y = snapshot_.common_level(b, preemptor);
    return x == y ? 0 : x > y ? -1 : 1;
  }

  [[nodiscard]] bool allocatable(QueueIx q, const Amounts& request) const override {
    if (!snapshot_.queue_open(q) || !may_hold_jobs(q)) return false;
    const auto queues = limiting(q);
    return std::all_of(queues.begin(), queues.end(), [&](QueueIx c) { return takes(c, request); });
  }

  [[nodiscard]] bool preemptive(QueueIx q, const Amounts& request) const override {
    if (!snapshot_.queue_open(q) || (hierarchy() && !tree_ready_)) return false;
    if (!takes(q, request)) return false;
    if (stays_partly_within_due(q, request)) return true;
    for (std::int64_t level = 1; level <= reclaim_levels(); ++level) {
      const QueueIx up = ancestor_at(q, level);
      if (up == kNoIx) return false;  // The root is never asked.
      if (stays_partly_within_due(up, request)) return true;
    }
    return false;
  }

  [[nodiscard]] std::vector<QueueIx> limiting(QueueIx queue) const override {
    return snapshot_.chain(queue, hierarchy());
  }

  [[nodiscard]] Victims victims(const VictimQuestion& question) override {
    if (!question.reclaiming) return std::nullopt;
    std::vector<TaskIx> out;
    if (hierarchy() && !tree_ready_) return out;
    Left left;
    for (const TaskIx t : question.in_order) {
      if (may_go(t, question.preemptor, left)) out.push_back(t);
    }
    return out;
  }
  [[nodiscard]] bool judges_bundles() const override { return true; }

 protected:
  [[nodiscard]] bool may_hold_jobs(QueueIx queue) const override {
    return !hierarchy() || (tree_ready_ && snapshot_.queues[queue].children.empty());
  }

  [[nodiscard]] int by_due(QueueIx a, QueueIx b) const override {
    if (!hierarchy()) return by_share_and_due(a, b);
    const auto& queues = snapshot_.queues;
    const bool leaf_a = queues[a].children.empty();
    const bool leaf_b = queues[b].children.empty();
    if (leaf_a != leaf_b) return leaf_a ? -1 : 1;
    QueueIx x = a;
    QueueIx y = b;
    if (leaf_a) {
      // The two branches just below the lowest common ancestor are compared.
      const std::size_t level = snapshot_.common_level(a, b) + 1;
      if (level < queues[a].ancestors.size()) x = queues[a].ancestors[level];
      if (level < queues[b].ancestors.size()) y = queues[b].ancestors[level];
    }
    return by_share_and_due(x, y);
  }

 private:
  /// What queues would have left after the victims chosen so far.
  using Left = std::map<QueueIx, Amounts>;
  Amounts& left_of(QueueIx q, Left& left) const {
    return left.try_emplace(q, snapshot_.queues[q].allocated).first->second;
  }

  /// Queues that deserve something come before those that do not.
  [[nodiscard]] int by_share_and_due(QueueIx a, QueueIx b) const {
    if (const int r = by_share(a, b); r != 0) return r;
    const bool x = !is_empty(snapshot_.queues[a].deserved);
    const bool y = !is_empty(snapshot_.queues[b].deserved);
    return x == y ? 0 : x ? -1 : 1;
  }

  [[nodiscard]] bool takes(QueueIx q, const Amounts& request) const {
    const QueueAttr& attr = snapshot_.queues[q];
    return requested_less_equal(attr.allocated + request, attr.real, request);
  }

  [[nodiscard]] bool stays_partly_within_due(QueueIx q, const Amounts& request) const {
    const QueueAttr& attr = snapshot_.queues[q];
    return partly_below(attr.allocated + request, attr.deserved, request);
  }

  [[nodiscard]] std::int64_t reclaim_levels() const {
    return hierarchy() ? integer("ancestorReclaimLevel", 0) : 0;
  }

  /// The ancestor `level` steps up (1 = the parent); kNoIx when there is none or it is the root.
  [[nodiscard]] QueueIx ancestor_at(QueueIx q, std::int64_t level) const {
    const auto& ancestors = snapshot_.queues[q].ancestors;
    const auto n = static_cast<std::int64_t>(ancestors.size()) - level;
    return n <= 0 ? kNoIx : ancestors[static_cast<std::size_t>(n)];
  }

  // ---------------------------------------------------------------- victims

  [[nodiscard]] bool has_relevant_deserved(const Amounts& request, QueueIx q) const {
    for (std::size_t i = 0; i < snapshot_.dims; ++i) {
      if (request[i] >= kTolerance && snapshot_.queues[q].deserved[i] >= kTolerance) return true;
    }
    return false;
  }

  /// More than deserved in a dimension that the victim uses and the queue has a word on?
  [[nodiscard]] bool above_deserved(const Amounts& allocated,
                                    const Amounts& request,
                                    QueueIx q) const {
    const QueueAttr& attr = snapshot_.queues[q];
    for (std::size_t i = 0; i < snapshot_.dims; ++i) {
      const bool relevant =
          attr.deserved[i] >= kTolerance ||
          (attr.deserved_named[i] && i != ResourceNames::kCpu && i != ResourceNames::kMemory);
      if (compared(i) && request[i] > 0 && relevant && allocated[i] > attr.deserved[i]) return true;
    }
    return false;
  }

  [[nodiscard]] bool share_an_ancestor(QueueIx a, QueueIx b) const {
    const std::int64_t levels = reclaim_levels();
    for (std::int64_t x = 1; x <= levels; ++x) {
      for (std::int64_t y = 1; y <= levels; ++y) {
        if (ancestor_at(a, x) != kNoIx && ancestor_at(a, x) == ancestor_at(b, y)) return true;
      }
    }
    return false;
  }

  /// On success what its queue and those above have left is less by the task.
  bool may_go(TaskIx t, TaskIx preemptor, Left& left) const {
    const Amounts& request = snapshot_.tasks[t].request;
    const Amounts& wanted = snapshot_.tasks[preemptor].request;
    const QueueIx q = snapshot_.queue_of(t);
    const QueueIx mine = snapshot_.queue_of(preemptor);
    bool shares_dimension = false;
    for (std::size_t i = 0; i < snapshot_.dims; ++i)
      shares_dimension |= compared(i) && request[i] > 0 && wanted[i] > 0;
    if (!shares_dimension) return false;
    if (!everywhere_less_equal(snapshot_.queues[q].guarantee, left_of(q, left) - request))
      return false;
    if (has_relevant_deserved(request, q)) {
      if (!above_deserved(left_of(q, left), request, q)) return false;
    } else if (share_an_ancestor(q, mine) && !has_relevant_deserved(wanted, mine)) {
      // Two queues without a word on the matter do not take from each other below a common
      // ancestor.
      return false;
    }
    std::vector<QueueIx> charged = {q};
    for (std::int64_t level = 1; level <= reclaim_levels(); ++level) {
      const QueueIx up = ancestor_at(q, level);
      if (up == kNoIx || up == ancestor_at(mine, level)) continue;
      if (has_relevant_deserved(request, up) && !above_deserved(left_of(up, left), request, up))
        return false;
      charged.push_back(up);
    }
    for (const QueueIx c : charged) left_of(c, left) -= request;
    return true;
  }

  // ---------------------------------------------------------------- opening

  void open_flat() {
    snapshot_.sum_queues(false);
    const Amounts guarantees = all_guarantees();
    for (QueueIx q = 0; q < snapshot_.queues.size(); ++q) {
      QueueAttr& attr = snapshot_.queues[q];
      set_real(attr, guarantees);
      for (std::size_t i = 0; i < snapshot_.dims; ++i)
        attr.deserved[i] = std::max(std::min(attr.deserved[i], attr.real[i]), attr.guarantee[i]);
      snapshot_.update_share(q);
    }
  }

  void open_tree() {
    auto& queues = snapshot_.queues;
    const TenantId root = state_.find_tenant("root");
    if (!root.valid() || !state_.tenant(root).live) {
      tree_ready_ = false;
      return;
    }
    link(root);
    snapshot_.sum_queues(true);
    for (const Job& job : snapshot_.jobs) {
      if (!queues[job.queue].children.empty()) tree_ready_ = false;
    }
    // What no node has is not unlimited: the root covers the cluster's dimensions only.
    QueueAttr& top = queues[root.index()];
    for (std::size_t i = 0; i < snapshot_.dims; ++i) {
      const bool basic = i == ResourceNames::kCpu || i == ResourceNames::kMemory;
      if (!basic && snapshot_.total[i] == 0 && top.capability[i] == kInfinite)
        top.capability[i] = 0;
    }
    top.real = top.capability;
    walk(root.index());
    for (QueueIx q = 0; q < queues.size(); ++q) snapshot_.update_share(q);
  }

  /// Parents, children and ancestors of all queues.
  void link(TenantId root) {
    auto& queues = snapshot_.queues;
    for (QueueIx q = 0; q < queues.size(); ++q) {
      if (!state_.tenant(queues[q].tenant).live || q == root.index()) continue;
      const TenantId parent = state_.tenant(queues[q].tenant).parent;
      queues[q].parent = parent.valid() ? parent.index() : root.index();
      if (parent.valid() && !state_.tenant(parent).live) tree_ready_ = false;
      queues[queues[q].parent].children.push_back(q);
    }
    for (QueueIx q = 0; q < queues.size(); ++q) {
      for (QueueIx up = queues[q].parent; up != kNoIx && queues[q].ancestors.size() < 32;
           up = queues[up].parent) {
        queues[q].ancestors.insert(queues[q].ancestors.begin(), up);
      }
    }
  }

  /// Limits and dues from the top down.
  void walk(QueueIx ix) {
    const std::size_t dims = snapshot_.dims;
    QueueAttr& queue = snapshot_.queues[ix];
    Amounts guarantees;
    Amounts deserved;
    for (const QueueIx c : queue.children) {
      QueueAttr& child = snapshot_.queues[c];
      for (std::size_t i = 0; i < dims; ++i)
        child.deserved[i] = std::max(child.deserved[i], child.guarantee[i]);
      guarantees += child.guarantee;
      deserved += child.deserved;
      // An unlimited dimension is the parent's.
      for (std::size_t i = 0; i < dims; ++i) {
        if (child.capability[i] == kInfinite) child.capability[i] = queue.capability[i];
      }
    }
    if (queue.parent == kNoIx) {
      queue.guarantee = guarantees;
      queue.deserved = deserved;
    }
    for (const QueueIx c : queue.children) {
      QueueAttr& child = snapshot_.queues[c];
      child.real = exceeded(queue.real, guarantees) + child.guarantee;
      for (std::size_t i = 0; i < dims; ++i)
        child.real[i] = std::min(child.real[i], child.capability[i]);
    }
    for (const QueueIx c : queue.children) walk(c);
  }

  /// The tree has a root, all parents exist and only leaves hold jobs.
  bool tree_ready_ = true;
};

}  // namespace

std::unique_ptr<Plugin> make_capacity(const VolcanoPlugin& config, Snapshot& snapshot) {
  return std::make_unique<Capacity>(config, snapshot);
}

}  // namespace muster::engine::volcano
