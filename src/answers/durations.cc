#include "answers/durations.h"

#include <algorithm>

#include "answers/normal.h"

namespace muster::answers {
namespace {

/// √0.6 and √0.4 in 65,536ths: shares of the variance.
constexpr std::int64_t kSharedPart = 50764;
constexpr std::int64_t kOwnPart = 41449;
constexpr std::int64_t kOne = 65536;
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
    : history_(engine.history()),
      seed_(settings.seed),
      shared_(settings.shared),
      draws_(settings.draws) {
  const std::vector<engine::GangView> gangs = engine.gangs();
  if (seed_ == 0) seed_ = seed_of(gangs);
  for (const engine::GangView& g : gangs) {
    if (!g.started || g.started >= now) continue;
    for (const std::uint32_t level : history_.levels(g.kind)) {
      if (level != engine::History::kNone) running_[level].push_back((now - g.started).count());
    }
  }
}

const Survival& SharedDraws::survival(std::uint32_t level) const {
  auto& made = survivals_[level];
  if (made == nullptr) {
    std::vector<std::int64_t> longer = history_.cut_off(level);
    if (const auto ages = running_.find(level); ages != running_.end())
      longer.insert(longer.end(), ages->second.begin(), ages->second.end());
    made = std::make_unique<Survival>(history_.ended(level), std::move(longer));
  }
  return *made;
}

double SharedDraws::share(std::uint64_t level, const std::string& gang, std::int32_t draw) const {
  const std::uint64_t name = engine::hash_name(gang);
  if (shared_ == 0) return (static_cast<double>(bits_of(seed_, draw, name)) + 0.5) / 4294967296.0;
  const std::int64_t of_level = normal_from(even_bits_of(seed_, draw, draws_, level));
  const std::int64_t of_gang = normal_from(even_bits_of(seed_, draw, draws_, name));
  const std::int64_t z = (kSharedPart * of_level + kOwnPart * of_gang) / kOne;
  return (static_cast<double>(share_below(static_cast<std::int32_t>(z))) + 0.5) / 4294967296.0;
}

Drawn SharedDraws::declared(const engine::GangView& gang, Duration age, double u) const {
  const auto ratios = history_.ratios(gang.kind.user);
  std::vector<std::int64_t> times;
  for (const std::int32_t permille : ratios) {
    const std::int64_t us =
        gang.declared.count() / 1000 * permille + gang.declared.count() % 1000 * permille / 1000;
    if (us > age.count()) times.push_back(us);
  }
  const auto runs = static_cast<std::int32_t>(ratios.size());
  if (times.empty()) return {gang.declared, Source::kDeclared, runs, true};
  std::sort(times.begin(), times.end());
  const bool certain = times.front() == times.back();
  const auto at =
      std::min(times.size() - 1, static_cast<std::size_t>(u * static_cast<double>(times.size())));
  return {Duration(times[at]), Source::kDeclared, runs, certain};
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
  const std::uint32_t level = history_.level_for(gang.kind, age.count());
  const bool known = level != engine::History::kNone;
  const double u = share(known ? history_.name_of(level) : gang.kind.shape, gang.key, draw);
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
