#include "answers/durations.h"

#include <algorithm>
#include <cstdlib>

#include "answers/normal.h"

namespace muster::answers {
namespace {

/// √0.6 and √0.4 in 65,536ths: shares of the variance.
constexpr std::int64_t kSharedPart = 50764;
constexpr std::int64_t kOwnPart = 41449;
constexpr std::int64_t kOne = 65536;
/// What ended last says most about what runs now: people submit in series, and the next one differs.
/// Of 80 ends the last counts twice as much as the first. (2^(-1/80), spelled out: libm's differ.)
constexpr double kOlder = 0.99137311;
/// Runs that go on are there in proportion to how long they last, those that ended are the last 200
/// however short a time these took. Counted alike, the long ones would outnumber the others.
constexpr double kStillRunning = 0.1;
/// Where nothing at all is known, a course has to go on somehow; nobody is told of it.
constexpr Duration kNothingKnown = std::chrono::hours(1);

/// Longer than `base`: base / v, v even in (0.02, 1).
Duration guess(Duration base, double u) {
  const double v = 1 - 0.98 * std::clamp(u, 0.0, 0.9999);
  return Duration(static_cast<std::int64_t>(static_cast<double>(base.count()) / v));
}

}  // namespace

std::uint64_t seed_of(const std::vector<engine::GangView>& gangs) {
  std::uint64_t sum = 1;
  for (const engine::GangView& g : gangs) {
    const std::uint64_t name = engine::hash_name(g.key);
    sum += name * (g.running ? 0x9e3779b97f4a7c15ULL : 0xbf58476d1ce4e5b9ULL) +
           static_cast<std::uint64_t>(g.created.us);
  }
  return sum;
}

SharedDraws::SharedDraws(const engine::Engine& engine, Time now, Settings settings)
    : history_(engine.shared_history()),
      seed_(settings.seed),
      shared_(settings.shared),
      draws_(settings.draws) {
  const std::vector<engine::GangView> gangs = engine.gangs();
  if (seed_ == 0) seed_ = seed_of(gangs);
  for (const engine::GangView& g : gangs) {
    if (!g.started || g.started >= now) continue;
    for (const std::uint32_t level : history_->levels(g.kind)) {
      if (level != engine::History::kNone) running_[level].push_back((now - g.started).count());
    }
  }
}

const Survival& SharedDraws::survival(std::uint32_t level) const {
  auto& made = survivals_[level];
  if (made == nullptr) {
    std::vector<Survival::Run> runs;
    double weight = 1;
    for (const std::int64_t us : history_->latest(level)) {
      runs.push_back({std::abs(us), us > 0, weight});
      weight *= kOlder;
    }
    if (const auto ages = running_.find(level); ages != running_.end()) {
      for (const std::int64_t age : ages->second) runs.push_back({age, false, kStillRunning});
    }
    made = std::make_unique<Survival>(std::move(runs));
  }
  return *made;
}

std::int32_t SharedDraws::part_of(std::uint64_t level, std::int32_t draw) const {
  if (draw >= draws_) return normal_from(even_bits_of(seed_, draw, draws_, level));
  std::vector<std::int32_t>& parts = parts_[level];
  while (parts.size() <= static_cast<std::size_t>(draw))
    parts.push_back(
        normal_from(even_bits_of(seed_, static_cast<std::int32_t>(parts.size()), draws_, level)));
  return parts[static_cast<std::size_t>(draw)];
}

double SharedDraws::share(std::uint64_t level, const std::string& gang, std::int32_t draw) const {
  const std::uint64_t name = engine::hash_name(gang);
  if (shared_ == 0) return (static_cast<double>(bits_of(seed_, draw, name)) + 0.5) / 4294967296.0;
  const std::int64_t of_level = part_of(level, draw);
  const std::int64_t of_gang = normal_from(even_bits_of(seed_, draw, draws_, name));
  const std::int64_t z = (kSharedPart * of_level + kOwnPart * of_gang) / kOne;
  return (static_cast<double>(share_below(static_cast<std::int32_t>(z))) + 0.5) / 4294967296.0;
}

const Survival& SharedDraws::declarations(std::uint64_t user) const {
  auto& made = declarations_[user];
  if (made == nullptr) {
    std::vector<Survival::Run> runs;
    for (const std::int32_t part : history_->ratios(user))
      runs.push_back({std::abs(part), part > 0});
    made = std::make_unique<Survival>(std::move(runs));
  }
  return *made;
}

/// What was declared, by as much as such declarations were wrong before.
Drawn SharedDraws::declared(const engine::GangView& gang, Duration age, double u) const {
  const Survival& past = declarations(gang.kind.user);
  const auto runs = static_cast<std::int32_t>(past.runs());
  const std::int64_t said = gang.declared.count();
  const auto passed = static_cast<std::int64_t>(static_cast<__int128>(age.count()) * 1000 / said);
  if (past.longest() <= passed) return {gang.declared, Source::kDeclared, runs, true};
  // Of those that were cut off nobody knows more than that they lasted longer.
  const auto part = [&](double share) {
    return past.quantile(passed, share).value_or(past.longest());
  };
  const std::int64_t permille = part(u);
  return {Duration(said / 1000 * permille + said % 1000 * permille / 1000),
          Source::kDeclared,
          runs,
          part(0) == part(0.9999)};
}

Drawn SharedDraws::learned(const engine::GangView& gang,
                           std::uint32_t level,
                           Duration age,
                           double u) const {
  (void)gang;
  const Survival& past = survival(level);
  double rest = 0;
  const auto runs = static_cast<std::int32_t>(past.runs());
  if (const auto us = past.quantile(age.count(), u, &rest))
    return {Duration(*us), Source::kLearned, runs};
  return {guess(std::max(age, Duration(past.longest())), rest), Source::kGuessed, runs};
}

Drawn SharedDraws::draw(const engine::GangView& gang, Duration age, std::int32_t draw) const {
  const std::uint32_t level = history_->level_for(gang.kind, age.count());
  const bool known = level != engine::History::kNone;
  const double u = share(known ? history_->name_of(level) : gang.kind.shape, gang.key, draw);
  Drawn out;
  if (gang.declared > age) {
    out = declared(gang, age, u);
  } else if (known) {
    out = learned(gang, level, age, u);
  } else {
    out = {guess(std::max(age, kNothingKnown), u), Source::kGuessed, 0};
  }
  out.lasts = within_limits(gang, out.lasts, age);
  return out;
}

}  // namespace muster::answers
