#include "engine/model/history.h"

#include <algorithm>

#include "engine/model/digest.h"

namespace muster::engine {
namespace {

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2);
  a *= 0xff51afd7ed558ccdULL;
  return a ^ (a >> 32);
}

/// Of the ratios of everybody.
constexpr std::uint64_t kEverybody = 1;
constexpr std::int64_t kRatioMax = 1'000'000;  ///< A thousand times what was declared.

}  // namespace

std::string stem_of(std::string_view name) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto hex = [&](char c) {
    return digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  };
  std::string out;
  std::size_t at = 0;
  while (at < name.size()) {
    std::size_t end = at;
    while (end < name.size() && (digit(name[end]) || letter(name[end]))) ++end;
    std::string_view word = name.substr(at, end - at);
    at = end + 1;
    const bool numbered = std::any_of(word.begin(), word.end(), digit);
    const bool random = numbered && word.size() >= 5 && std::all_of(word.begin(), word.end(), hex);
    while (!word.empty() && digit(word.back())) word.remove_suffix(1);
    while (!word.empty() && digit(word.front())) word.remove_prefix(1);
    if (random || word.empty()) continue;
    if (!out.empty()) out += '-';
    out += word;
  }
  return out;
}

std::uint64_t hash_name(std::string_view name) {
  std::uint64_t h = 1469598103934665603ULL;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return mix(h, name.size());
}

std::uint64_t hash_models(const std::vector<std::string>& models) {
  std::uint64_t h = 0;
  for (const std::string& model : models) h = mix(h, hash_name(model));
  return h;
}

std::uint64_t mix_shape(std::int64_t device_milli, std::uint64_t models) {
  return mix(models, static_cast<std::uint64_t>(device_milli));
}

std::array<std::uint64_t, History::kLevels> History::names_of(const RunKind& kind) {
  const std::uint64_t of_user = mix(mix(2, kind.user), kind.shape);
  const std::uint64_t team = mix(4, kind.team);
  return {mix(mix(1, of_user), kind.stem), of_user, mix(mix(3, kind.team), kind.shape), team, 5};
}

std::uint32_t History::level_named(std::uint64_t name) {
  const auto [it, fresh] = by_name_.try_emplace(name, static_cast<std::uint32_t>(levels_.size()));
  if (fresh) {
    levels_.emplace_back();
    levels_.back().name = name;
  }
  return it->second;
}

void History::learn(const RunKind& kind, const Run& run) {
  if (run.us <= 0) return;
  ++taught_;
  for (const std::uint64_t name : names_of(kind)) {
    Level& level = levels_[level_named(name)];
    level.taught = taught_;
    level.keep(run.ended ? run.us : -run.us);
  }
  if (run.declared_us > 0) {
    learn_ratio(kEverybody, run);
    learn_ratio(mix(6, kind.user), run);
  }
  if (levels_.size() > kLevelsMax || ratios_.size() > kLevelsMax) forget_oldest();
}

/// Every end teaches, and the next decision asks: the order is kept up rather than made anew.
void History::Level::keep(std::int64_t us) {
  std::int64_t gone = 0;
  if (last.size() < kRunsKept) {
    last.push_back(us);
  } else {
    gone = std::exchange(last[next], us);
    next = (next + 1) % kRunsKept;
  }
  if (!asked) return;
  if (gone > 0) sorted.erase(std::lower_bound(sorted.begin(), sorted.end(), gone));
  if (us > 0) sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), us), us);
}

void History::learn_ratio(std::uint64_t user, const Run& run) {
  const auto [it, fresh] = ratios_of_.try_emplace(user, static_cast<std::uint32_t>(ratios_.size()));
  if (fresh) ratios_.emplace_back();
  Ratios& of = ratios_[it->second];
  auto part = static_cast<std::int32_t>(
      std::clamp<__int128>(static_cast<__int128>(run.us) * 1000 / run.declared_us, 1, kRatioMax));
  if (!run.ended || (run.stopped && run.us < run.declared_us)) part = -part;
  if (of.last.size() < kRatiosKept) {
    of.last.push_back(part);
  } else {
    of.last[of.next] = part;
    of.next = (of.next + 1) % kRatiosKept;
  }
}

/// Keeps three quarters; ratios start anew, since they are learned again soon.
void History::forget_oldest() {
  std::vector<std::uint64_t> ages;
  for (const Level& level : levels_) ages.push_back(level.taught);
  const auto at = ages.begin() + static_cast<std::ptrdiff_t>(ages.size() / 4);
  std::nth_element(ages.begin(), at, ages.end());
  const std::uint64_t oldest = *at;
  std::erase_if(levels_, [&](const Level& level) { return level.taught < oldest; });
  by_name_.clear();
  for (std::uint32_t i = 0; i < levels_.size(); ++i) by_name_.emplace(levels_[i].name, i);
  if (ratios_.size() <= kLevelsMax) return;
  ratios_.clear();
  ratios_of_.clear();
}

std::array<std::uint32_t, History::kLevels> History::levels(const RunKind& kind) const {
  std::array<std::uint32_t, kLevels> out{};
  const auto names = names_of(kind);
  for (std::size_t i = 0; i < kLevels; ++i) {
    const auto found = by_name_.find(names[i]);
    out[i] = found == by_name_.end() ? kNone : found->second;
  }
  return out;
}

void History::freshen() const {
  for (std::uint32_t i = 0; i < levels_.size(); ++i) (void)ended(i);
}

std::span<const std::int64_t> History::ended(std::uint32_t id) const {
  const Level& level = levels_[id];
  if (!level.asked) {
    level.sorted.clear();
    for (const std::int64_t us : level.last) {
      if (us > 0) level.sorted.push_back(us);
    }
    std::sort(level.sorted.begin(), level.sorted.end());
    level.asked = true;
  }
  return level.sorted;
}

std::vector<std::int64_t> History::latest(std::uint32_t id) const {
  const Level& level = levels_[id];
  std::vector<std::int64_t> out;
  for (std::size_t i = 0; i < level.last.size(); ++i)
    out.push_back(level.last[(level.next + level.last.size() - 1 - i) % level.last.size()]);
  return out;
}

std::vector<std::int64_t> History::last_ended(std::uint32_t id, std::size_t most) const {
  std::vector<std::int64_t> out = latest(id);
  std::erase_if(out, [](std::int64_t us) { return us < 0; });
  out.resize(std::min(out.size(), most));
  return out;
}

History::Longer History::longer_than(const RunKind& kind, std::int64_t age_us) const {
  const auto names = names_of(kind);
  for (std::size_t i = 0; i < kLevels; ++i) {
    const auto found = by_name_.find(names[i]);
    if (found == by_name_.end()) continue;
    const auto runs = ended(found->second);
    const bool all = i + 1 == kLevels;
    if (runs.size() < (all ? kEnoughOfAll : kEnough)) continue;
    const auto first = std::upper_bound(runs.begin(), runs.end(), age_us) - runs.begin();
    const auto longer = runs.subspan(static_cast<std::size_t>(first));
    if (longer.size() >= kEnough) return {found->second, longer};
  }
  return {};
}

std::uint32_t History::level_for(const RunKind& kind, std::int64_t age_us) const {
  return longer_than(kind, age_us).level;
}

bool History::Ratios::tell(std::size_t enough) const {
  const auto ended = std::count_if(last.begin(), last.end(), [](auto part) { return part > 0; });
  return ended >= static_cast<std::ptrdiff_t>(enough);
}

std::span<const std::int32_t> History::ratios(std::uint64_t user) const {
  const auto own = ratios_of_.find(mix(6, user));
  if (own != ratios_of_.end() && ratios_[own->second].tell(kEnough))
    return ratios_[own->second].last;
  const auto all = ratios_of_.find(kEverybody);
  if (all == ratios_of_.end() || !ratios_[all->second].tell(kEnoughOfAll)) return {};
  return ratios_[all->second].last;
}

std::int64_t History::estimate(const RunKind& kind,
                               std::int64_t age_us,
                               std::int32_t permille) const {
  const auto runs = longer_than(kind, age_us).runs;
  if (runs.empty()) return kUnknown;
  const auto count = static_cast<std::int64_t>(runs.size());
  return runs[static_cast<std::size_t>(std::min(count - 1, count * permille / 1000))];
}

void History::digest(Digest& d) const {
  d.add(taught_);
  for (const Level& level : levels_) d.add(level.name, level.taught, level.last, level.next);
  for (const Ratios& of : ratios_) d.add(of.last, of.next);
}

}  // namespace muster::engine
