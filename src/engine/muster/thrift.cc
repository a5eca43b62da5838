#include "engine/muster/thrift.h"

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace muster::engine {

namespace {

/// Pods among which, and sets through which, the search looks for a cheaper plan.
constexpr std::size_t kSearchPods = 40;
constexpr int kSearchSteps = 1500;
constexpr int kSearchStepsForBudgets = 6000;

auto counts(const VictimCost& c) { return std::tuple(c.budgets_broken, c.pods); }

/// The plan's victims that `base` did not have, the most important first.
std::vector<PodId> new_victims(const State& state,
                               const EvictionPlan& base,
                               const EvictionPlan& plan) {
  std::vector<PodId> all;
  for (const PodId v : plan.victims) {
    if (!base.victims.contains(v)) all.push_back(v);
  }
  std::sort(all.begin(), all.end(), [&](PodId a, PodId b) {
    const auto pa = state.rank_priority(state.pod(a));
    const auto pb = state.rank_priority(state.pod(b));
    if (pa != pb) return pa > pb;
    return goes_before(state, b, a);
  });
  return all;
}

/// A bounded search for a cheaper set of victims that seats the same guests.
class Search {
 public:
  Search(const State& state,
         Seating& seating,
         Wish& wish,
         const EvictionPlan& base,
         EvictionPlan& plan)
      : state_(state), seating_(seating), wish_(wish), base_(base), plan_(plan) {}

  void run() {
    find_guests();
    if (!find_options()) return;
    const bool breaks = plan_.cost.budgets_broken > base_.cost.budgets_broken;
    most_steps_ = breaks ? kSearchStepsForBudgets : kSearchSteps;
    const std::int32_t most = plan_.cost.pods - base_.cost.pods + (breaks ? 3 : -1);
    for (limit_ = 1; limit_ <= most && steps_ <= most_steps_; ++limit_) {
      const VictimCost before = plan_.cost;
      (void)extend(base_, 0);
      if (plan_.cost.budgets_broken <= base_.cost.budgets_broken &&
          counts(plan_.cost) < counts(before))
        return;
    }
  }

 private:
  struct Option {
    PodId pod;
    VictimCost cost;
    std::int64_t size;
  };

  /// Whom the plan seats and `base` did not, in the order of the wish.
  void find_guests() {
    for (const auto& [node, on] : plan_.nodes) {
      const auto before = base_.nodes.find(node);
      for (const auto& [g, devices] : on.guests) {
        if (before == base_.nodes.end() || !before->second.hosts(g)) guests_.push_back(g);
      }
    }
    const auto& tasks = wish_.members.tasks;
    std::sort(guests_.begin(), guests_.end(), [&](PodId a, PodId b) {
      return std::find(tasks.begin(), tasks.end(), a) < std::find(tasks.begin(), tasks.end(), b);
    });
  }

  /// Pods that may go, the cheapest and largest first. False: too many of them.
  bool find_options() {
    std::size_t nodes = 0;
    for (const NodeId n : seating_.candidates(wish_, plan_)) {
      if (nodes++ >= kCandidates + plan_.nodes.size()) break;
      for (const PodId p : state_.node(n).pods) {
        if (base_.victims.contains(p) || !eligible(wish_.asking, state_.pod(p))) continue;
        EvictionPlan trial = base_;
        if (!trial.add(wish_.asking, p)) continue;
        const ResourceVector& request = state_.cls_of(p).request;
        const std::int64_t size =
            request[ResourceNames::kDevice] * 1'000'000 + request[ResourceNames::kCpu];
        options_.push_back({p, trial.cost, size});
      }
    }
    if (options_.size() > kSearchPods) return false;
    std::sort(options_.begin(), options_.end(), [&](const Option& a, const Option& b) {
      return std::tuple(a.cost.budgets_broken, a.cost.pods, -a.size, a.pod) <
             std::tuple(b.cost.budgets_broken, b.cost.pods, -b.size, b.pod);
    });
    return true;
  }

  bool seated(EvictionPlan& trial) {
    for (const PodId g : guests_) {
      const NodeId n = seating_.free_place(wish_, g, trial);
      if (!n.valid()) return false;
      trial.seat(state_, n, g);
    }
    return true;
  }

  /// Tries sets that add options from `from` on. True: done, with a better plan or out of steps.
  bool extend(const EvictionPlan& so_far, std::size_t from) {
    for (std::size_t i = from; i < options_.size(); ++i) {
      if (so_far.victims.contains(options_[i].pod)) continue;
      if (++steps_ > most_steps_) return true;
      EvictionPlan trial = so_far;
      if (!trial.add(wish_.asking, options_[i].pod)) continue;
      if (trial.cost.pods - base_.cost.pods > limit_ || !(counts(trial.cost) < counts(plan_.cost)))
        continue;
      EvictionPlan full = trial;
      if ((!wish_.enough || wish_.enough(full)) && seated(full)) {
        plan_ = std::move(full);
        return true;
      }
      if (extend(trial, i + 1)) return true;
    }
    return false;
  }

  const State& state_;
  Seating& seating_;
  Wish& wish_;
  const EvictionPlan& base_;
  EvictionPlan& plan_;
  std::vector<PodId> guests_;
  std::vector<Option> options_;
  int most_steps_ = 0;
  int steps_ = 0;
  /// Pods that may go in this round.
  std::int32_t limit_ = 0;
};

}  // namespace

void give_back(const State& state,
               Seating& seating,
               Wish& wish,
               const EvictionPlan& base,
               EvictionPlan& plan) {
  const std::vector<PodId> all = new_victims(state, base, plan);
  const auto without = [&](const std::function<bool(PodId)>& spared) {
    std::vector<PodId> seeds;
    for (const PodId v : all) {
      if (plan.victims.contains(v) && !spared(v)) seeds.push_back(v);
    }
    auto trial = with_victims(wish.asking, base, seeds);
    if (!trial || !(counts(trial->cost) < counts(plan.cost)) ||
        (wish.enough && !wish.enough(*trial)))
      return;
    if (seating.reseat(wish, plan, base, *trial)) plan = std::move(*trial);
  };
  // Whole families and gangs first: they are what costs.
  std::set<GangId> gangs;
  std::set<GangId> families;
  for (const PodId v : all) {
    const GangId gang = state.pod(v).gang;
    if (!state.gang(gang).has_group) continue;
    gangs.insert(gang);
    if (state.parent_of(gang).valid()) families.insert(state.root_of(gang));
  }
  for (const GangId f : families)
    without([&](PodId v) { return state.root_of(state.pod(v).gang) == f; });
  for (const GangId g : gangs) without([&](PodId v) { return state.pod(v).gang == g; });
  for (const PodId spared : all) {
    if (plan.victims.contains(spared)) without([&](PodId v) { return v == spared; });
  }
}

void search_cheaper(const State& state,
                    Seating& seating,
                    Wish& wish,
                    const EvictionPlan& base,
                    EvictionPlan& plan) {
  Search(state, seating, wish, base, plan).run();
}

}  // namespace muster::engine
