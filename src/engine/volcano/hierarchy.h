/// Hierarchical DRF: the tree that queues form by their annotations `volcano.sh/hierarchy` and
/// `-weights`.
///
/// Inner nodes are the parts of those paths, leaves are jobs. A leaf is saturated when it has all
/// it wants of some resource, or holds and wants one of which nothing is left; an inner node when
/// all below it are. What a node uses is the sum of its children, where the unsaturated ones are
/// scaled down to the least dominant share among them (those that use nothing apart), so that a
/// child that cannot use its due does not count against its siblings. Queues are compared from the
/// top down: unsaturated first, then the smaller dominant share by weight; where both are equal,
/// one level further down.
///
/// Example: `root/sci` and `root/eng/dev`, `root/eng/prod`, all of weight 1, on 10 CPU and 10 GB.
/// sci asks for (1 CPU, 1 GB) a pod, dev for CPU, prod for memory. eng uses as much as dev and prod
/// together, its dominant share is that of one of them, and sci ends with 5 and 5, dev with 5 CPU,
/// prod with 5 GB.
///
/// Source: Bhattacharya et al., "Hierarchical Scheduling for Diverse Datacenter Workloads" (SoCC
/// 2013), as Volcano 1.15 has it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/volcano/amounts.h"

namespace muster::engine::volcano {

class Hierarchy {
 public:
  using Queue = std::size_t;
  using Job = std::size_t;

  Hierarchy(const Amounts& total, std::size_t dims);

  /// With the text of its two annotations. A queue without a path stands below the root, under
  /// `name` and with `weight`.
  struct Place {
    std::string_view path;
    std::string_view weights;
    std::string_view name;
    std::int64_t weight = 1;
  };
  void add_queue(Queue queue, const Place& place);
  /// `request`: all that it has and waits for. A job that is over is not added.
  void add_job(Job job, Queue queue, const Amounts& allocated, const Amounts& request);
  void charge(Job job, const Amounts& request, bool add);

  /// Negative: `a` is served first. 0: they are equal as far as both reach.
  [[nodiscard]] int compare(Queue a, Queue b);

 private:
  using NodeIx = std::size_t;
  static constexpr NodeIx kRoot = 0;
  static constexpr NodeIx kNone = ~NodeIx{0};

  /// Of the cluster's total; fine enough that what should be equal is, and far from where 64 bits
  /// end.
  using Part = std::int64_t;
  static constexpr Part kAll = 1'000'000'000'000'000;
  static constexpr Part kNoise = kAll / 1'000'000'000;

  struct Node {
    NodeIx parent = kNone;
    std::int64_t weight_milli = 1000;
    std::vector<NodeIx> children;
    bool job = false;
    Amounts allocated;  ///< Of a job.
    Amounts request;    ///< Of a job.
    std::array<Part, ResourceVector::kMax> uses{};
    Part share = 0;         ///< The greatest of `uses`.
    bool saturated = true;  ///< Nobody below wants anything.
  };

  NodeIx add_node(NodeIx parent);
  void mark(NodeIx node);
  void refresh();
  void weigh_job(Node& node) const;
  void weigh_children(Node& node) const;

  Amounts total_;
  std::size_t dims_;
  Amounts taken_;  ///< Of all jobs.
  /// Bit i: nothing is left of resource i. What the leaves were weighed with.
  std::uint32_t full_ = 0;
  std::vector<Node> nodes_;  ///< Parents before their children.
  std::map<std::pair<NodeIx, std::string>, NodeIx> inner_;
  std::vector<std::vector<NodeIx>> paths_;  ///< By queue: from below the root to its own node.
  std::vector<NodeIx> leaves_;              ///< By job.
  std::set<NodeIx, std::greater<>> stale_;  ///< With every node all above it.
};

}  // namespace muster::engine::volcano
