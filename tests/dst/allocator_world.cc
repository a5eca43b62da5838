#include "allocator_world.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "books.h"
#include "cell_config.h"

namespace muster::dst {
namespace {

using namespace engine::cells;

constexpr Time kNow{1'700'000'000'000'000};

std::int32_t number(Random& random, std::int32_t low, std::int32_t high) {
  return low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(high - low + 1)));
}

/// A pod bound after its gang was downgraded carries no guarantee; what a rebuild makes of the gang
/// depends on which pod is listed first.
bool bound_guaranteed(const BindInfo& bind) {
  return !bind.group->front().pods.front().preassigned_types.front().empty();
}

/// Whether a gang sits in the promises that its pods name. One that was taken over while nodes were
/// bad may sit in others of its virtual cluster, which were bound to those nodes by then: no
/// promise is broken, but the pods do not tell.
bool sits_as_named(const Cells& cells, const BindInfo& bind) {
  for (const MemberPlacement& member : *bind.group) {
    for (const PodPlacement& pod : member.pods) {
      const Index node = cells.find_node(pod.node);
      for (std::size_t i = 0; node != kNone && i < pod.leaves.size(); ++i) {
        const Index leaf = cells.find_leaf(node, pod.leaves[i], kNone);
        const Index virt = leaf == kNone ? kNone : cells.p(leaf).virt;
        if (virt != kNone &&
            cells.type(cells.v(cells.v(virt).root).type).name != pod.preassigned_types[i])
          return false;
      }
    }
  }
  return true;
}

}  // namespace

AllocatorWorld::AllocatorWorld(const Run& run) : World(run), large_(run.seed % 10 == 0) {
  Random random(run.seed);
  while (true) {
    config_ = random_config(random, large_);
    auto made = CellAllocator::create(config_, {});
    if (!made) continue;
    allocator_.emplace(std::move(*made));
    break;
  }
  for (const Node& node : allocator_->cells().nodes) health_[node.name] = true;
  for (const auto& [name, healthy] : health_) allocator_->set_node(name, true);
  if (run.trace) fmt::print("{}\n", describe());
}

void AllocatorWorld::say(const std::string& text) const {
  if (run_.trace) fmt::print("  {}\n", text);
}

std::string AllocatorWorld::describe() const {
  const Cells& cells = allocator_->cells();
  std::string out;
  for (const Chain& chain : cells.chains)
    out += fmt::format("chain {} top {} tops {} leaves {}; ",
                       chain.name,
                       chain.top,
                       chain.full.back().size(),
                       chain.full[1].size());
  for (const VirtualClusterSpec& vc : config_.virtual_clusters) {
    out += vc.name + ":";
    for (const VirtualCellSpec& c : vc.cells) out += fmt::format(" {}x{}", c.number, c.path);
    for (const PinnedCellSpec& c : vc.pinned) out += " " + c.id;
    out += "; ";
  }
  return out;
}

void AllocatorWorld::add_job(Random& random) {
  if (pods_.size() > (large_ ? 120U : 24U)) return;
  const auto& vc = config_.virtual_clusters[random.below(config_.virtual_clusters.size())];
  PodSpec spec;
  spec.vc = vc.name;
  static constexpr std::int32_t kPriorities[] = {-1, -1, 0, 0, 1, 5, 1000};
  spec.priority = kPriorities[random.below(7)];
  if (!vc.pinned.empty() && spec.priority >= 0 && random.chance(25))
    spec.pinned_cell = vc.pinned[0].id;
  const std::uint64_t type = random.below(4);
  spec.leaf_type = type == 0 ? "A" : type == 1 ? "B" : "";
  spec.lazy_preemption = random.chance(30);
  spec.ignore_suggested = random.chance(70);
  spec.group = fmt::format("g{}", next_name_++);
  const std::int32_t members = number(random, 1, 2);
  for (std::int32_t m = 0; m < members; ++m)
    spec.members.push_back({number(random, 1, 3), number(random, 1, random.chance(80) ? 3 : 6)});
  std::int32_t k = 0;
  for (const GroupMember& member : std::vector<GroupMember>(spec.members)) {
    for (std::int32_t i = 0; i < member.pods; ++i) {
      Pod pod;
      pod.spec = spec;
      pod.spec.leaves = member.leaves;
      pod.ref.uid = fmt::format("{}-{}", spec.group, k++);
      pod.ref.name = "ns/" + pod.ref.uid;
      pods_.push_back(std::move(pod));
    }
  }
}

std::string AllocatorWorld::schedule(Random& random) {
  std::vector<std::size_t> waiting;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (!pods_[i].bind) waiting.push_back(i);
  }
  if (waiting.empty()) return "";
  Pod& pod = pods_[waiting[random.below(waiting.size())]];
  std::vector<std::string> suggested;
  for (const auto& [name, healthy] : health_) {
    if (random.chance(85)) suggested.push_back(name);
  }
  const bool all = random.chance(50);
  const Phase phase = random.chance(60) ? Phase::kFiltering : Phase::kPreempting;
  // Planning may downgrade lazily; who was guaranteed before it counts.
  std::set<std::string> guaranteed_before;
  for (const Group* group : allocator_->groups()) {
    if (group->has_virtual) guaranteed_before.insert(group->name);
  }
  const Decision decision =
      allocator_->schedule({pod.ref, pod.spec, phase, all ? nullptr : &suggested, kNow});
  say(fmt::format("schedule {} vc {} priority {} leaves {} {} -> {} {} {}",
                  pod.ref.uid,
                  pod.spec.vc,
                  pod.spec.priority,
                  pod.spec.leaves,
                  phase == Phase::kFiltering ? "filter" : "preempt",
                  static_cast<int>(decision.kind),
                  decision.bind.node,
                  decision.reason));
  if (decision.kind == Decision::Kind::kBind && (phase == Phase::kFiltering || random.chance(50))) {
    for (const std::int32_t leaf : decision.bind.leaves) say(fmt::format("   leaf {}", leaf));
    const auto added = allocator_->add_allocated(pod.ref, pod.spec, decision.bind, kNow);
    if (!added) return "a decided pod was not accepted: " + added.error().message;
    pod.bind = decision.bind;
    if (run_.fault == Fault::kDevice) ++pod.bind->leaves.back();
  }
  if (decision.kind == Decision::Kind::kPreempt) {
    if (decision.victims.empty()) return "preemption without victims";
    for (const Victims& victims : decision.victims) {
      for (const PodRef& victim : victims.pods) {
        const auto found = std::find_if(
            pods_.begin(), pods_.end(), [&](const Pod& p) { return p.ref.uid == victim.uid; });
        if (found == pods_.end() || !found->bind)
          return fmt::format("victim {} does not run", victim.uid);
        const bool guaranteed = guaranteed_before.contains(found->spec.group);
        if (guaranteed && found->spec.vc != pod.spec.vc)
          return fmt::format("guaranteed pod {} of {} would be evicted for {}",
                             victim.uid,
                             found->spec.vc,
                             pod.spec.vc);
        if (guaranteed && found->spec.priority >= pod.spec.priority)
          return fmt::format("{} (priority {}) would be evicted for priority {}",
                             victim.uid,
                             found->spec.priority,
                             pod.spec.priority);
        if (pod.spec.priority < 0) return "an opportunistic pod preempts";
        if (phase == Phase::kPreempting) victims_.push_back(victim.uid);
      }
    }
  }
  if (decision.kind == Decision::Kind::kError &&
      allocator_->find_group(pod.spec.group) == nullptr &&
      decision.reason.find("does not have") == std::string::npos &&
      decision.reason.find("whole cluster") == std::string::npos &&
      decision.reason.find("does not exists") == std::string::npos) {
    return "unexpected error: " + decision.reason;
  }
  return "";
}

void AllocatorWorld::remove_pod(std::size_t index) {
  const Pod pod = pods_[index];
  pods_.erase(pods_.begin() + static_cast<std::ptrdiff_t>(index));
  say("remove " + pod.ref.uid);
  if (pod.bind)
    (void)allocator_->delete_allocated(pod.ref, pod.spec, *pod.bind);
  else
    allocator_->delete_unallocated(pod.ref, pod.spec.group);
}

void AllocatorWorld::remove_some(Random& random) {
  if (!victims_.empty() && random.chance(70)) {
    const std::string victim = victims_.back();
    victims_.pop_back();
    for (std::size_t i = 0; i < pods_.size(); ++i) {
      if (pods_[i].ref.uid == victim) return remove_pod(i);
    }
  }
  if (pods_.empty()) return;
  if (random.chance(50)) return remove_pod(random.below(pods_.size()));
  const std::string group = pods_[random.below(pods_.size())].spec.group;
  for (std::size_t i = pods_.size(); i-- > 0;) {
    if (pods_[i].spec.group == group) remove_pod(i);
  }
}

void AllocatorWorld::toggle_node(Random& random) {
  auto node = health_.begin();
  std::advance(node, static_cast<std::ptrdiff_t>(random.below(health_.size())));
  node->second = !node->second;
  say(fmt::format("node {} {}", node->first, node->second ? "healthy" : "bad"));
  allocator_->set_node(node->first, node->second);
}

std::string AllocatorWorld::restart(Random& random, bool change) {
  const Config next = change ? changed_config(config_, random) : config_;
  auto made = CellAllocator::create(next, {});
  if (!made) return change ? "" : "the running configuration is refused: " + made.error().message;
  // "Equal to a rebuild" is asked of states that pods carry: no reservation, no downgrade, all
  // nodes well, each gang where it says.
  bool clean = !change &&
               std::all_of(health_.begin(), health_.end(), [](const auto& n) { return n.second; });
  for (const Group* group : allocator_->groups())
    clean = clean && group->state == GroupState::kAllocated &&
            (group->has_virtual || group->priority < 0);
  for (const Pod& pod : pods_)
    clean =
        clean && (!pod.bind || pod.spec.priority < 0 ||
                  (bound_guaranteed(*pod.bind) && sits_as_named(allocator_->cells(), *pod.bind)));
  std::map<std::string, bool> health;
  for (const Node& node : made->cells().nodes) {
    const auto old = health_.find(node.name);
    health[node.name] = old == health_.end() || old->second;
  }
  for (const auto& [name, healthy] : health) {
    if (healthy) made->set_node(name, true);
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < pods_.size(); ++i) {
    if (pods_[i].bind) order.push_back(i);
  }
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  say(change ? "reconfigure" : "restart");
  for (const std::size_t i : order) {
    const auto added = made->add_allocated(pods_[i].ref, pods_[i].spec, *pods_[i].bind, kNow);
    if (!added)
      return fmt::format("pod {} is not taken over: {}", pods_[i].ref.uid, added.error().message);
  }
  const std::string differs = clean ? check_same(*allocator_, *made) : "";
  config_ = next;
  health_ = std::move(health);
  allocator_.emplace(std::move(*made));
  return differs;
}

namespace {

/// A pod as large as one cell of a view.
struct Claim {
  PodSpec spec;
  std::string what;
};

std::vector<Claim> claims_of(const Cells& cells, const VirtualCluster& vc) {
  std::vector<Claim> out;
  const auto add = [&](const View& view, const std::string& leaf_type, const std::string& pinned) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(view.size()); ++i) {
      Claim claim;
      claim.spec.vc = vc.name;
      claim.spec.priority = kMaxPriority;
      claim.spec.leaf_type = leaf_type;
      claim.spec.pinned_cell = pinned;
      claim.spec.leaves = view.entry(i).total;
      claim.what = cells.vaddress(view.entry(i).cell);
      if (claim.spec.leaves > 0) out.push_back(std::move(claim));
    }
  };
  for (const Holding& holding : vc.holdings) {
    if (holding.has_cells)
      add(cells.view(holding.view), cells.type(cells.chain(holding.chain).leaf_type).name, "");
  }
  for (const PinnedHolding& pinned : vc.pinned) add(cells.view(pinned.view), "", pinned.id);
  // Large ones first: a small pod may sit in a large cell.
  std::stable_sort(out.begin(), out.end(), [](const Claim& a, const Claim& b) {
    return a.spec.leaves > b.spec.leaves;
  });
  return out;
}

}  // namespace

std::string AllocatorWorld::claim_everything() const {
  auto made = CellAllocator::create(config_, {});
  if (!made) return "";
  for (const auto& [name, healthy] : health_) made->set_node(name, true);
  std::map<std::string, const Pod*> running;
  for (const Pod& pod : pods_) {
    if (!pod.bind || !made->add_allocated(pod.ref, pod.spec, *pod.bind, kNow)) continue;
    running[pod.ref.uid] = &pod;
  }
  const auto end = [&](const std::string& uid) {
    const auto found = running.find(uid);
    if (found == running.end()) return;
    (void)made->delete_allocated(found->second->ref, found->second->spec, *found->second->bind);
    running.erase(found);
  };
  for (const Pod& pod : pods_) {
    if (pod.spec.priority == kMaxPriority) end(pod.ref.uid);  // nobody ranks above them
  }
  int number = 0;
  for (const VirtualClusterSpec& owner : config_.virtual_clusters) {
    for (Claim& claim :
         claims_of(made->cells(), made->cells().vc(made->cells().find_vc(owner.name)))) {
      claim.spec.group = fmt::format("claim-{}", number++);
      claim.spec.members = {{1, claim.spec.leaves}};
      const PodRef ref{claim.spec.group, "ns/" + claim.spec.group};
      bool bound = false;
      std::string reason = "it preempts without end";
      for (std::size_t round = 0; round <= pods_.size() && !bound; ++round) {
        const Decision decision =
            made->schedule({ref, claim.spec, Phase::kPreempting, nullptr, kNow});
        if (decision.kind == Decision::Kind::kPreempt) {
          for (const Victims& victims : decision.victims) {
            for (const PodRef& victim : victims.pods) end(victim.uid);
          }
          continue;
        }
        bound = decision.kind == Decision::Kind::kBind &&
                made->add_allocated(ref, claim.spec, decision.bind, kNow).has_value();
        reason = decision.reason;
        if (!bound) break;
      }
      if (!bound)
        return fmt::format("{} cannot get {} ({} leaf cells): {}",
                           owner.name,
                           claim.what,
                           claim.spec.leaves,
                           reason);
    }
  }
  const std::string wrong = check_leaves(*made);
  return wrong.empty() ? check_books(*made) : wrong;
}

std::string AllocatorWorld::check(Random& random) {
  std::string wrong = check_leaves(*allocator_);
  if (wrong.empty() && (!large_ || random.chance(10))) wrong = check_books(*allocator_);
  if (wrong.empty() && (!large_ || random.chance(10))) wrong = check_promises(*allocator_);
  if (wrong.empty() && !large_ && random.chance(3)) wrong = claim_everything();
  // The pods' own annotations agree with the books: no device twice.
  std::map<std::pair<std::string, std::int32_t>, std::string> devices;
  if (!random.chance(20)) return wrong;
  for (const Pod& pod : pods_) {
    if (!wrong.empty() || !pod.bind) continue;
    for (const std::int32_t leaf : pod.bind->leaves) {
      const auto [it, fresh] =
          devices.emplace(std::pair{pod.bind->node + pod.bind->chain, leaf}, pod.ref.uid);
      if (!fresh)
        return fmt::format(
            "device {} of {} is given to {} and {}", leaf, pod.bind->node, it->second, pod.ref.uid);
    }
  }
  return wrong;
}

std::optional<std::string> AllocatorWorld::step(Random& random) {
  ++sent_;
  const std::uint64_t kind = random.below(100);
  std::string wrong;
  if (kind < 15)
    add_job(random);
  else if (kind < 65)
    wrong = schedule(random);
  else if (kind < 83)
    remove_some(random);
  else if (kind < 95)
    toggle_node(random);
  else if (kind < 98)
    wrong = restart(random, false);
  else
    wrong = restart(random, true);
  if (wrong.empty()) wrong = check(random);
  return wrong.empty() ? std::nullopt : std::optional(wrong);
}

}  // namespace muster::dst
