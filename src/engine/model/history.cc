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

std::uint32_t History::Names::find(std::uint64_t name) const {
  if (slots_.empty()) return kNone;
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = name & mask;
  while (slots_[at].id != kNone && slots_[at].name != name) at = (at + 1) & mask;
  return slots_[at].id;
}

void History::Names::put(const Slot& slot) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = slot.name & mask;
  while (slots_[at].id != kNone) at = (at + 1) & mask;
  slots_[at] = slot;
}

void History::Names::insert(std::uint64_t name, std::uint32_t id) {
  if (++count_ * 2 > slots_.size()) {
    const std::vector<Slot> before = std::exchange(slots_, {});
    slots_.resize(std::max<std::size_t>(before.size() * 2, 16));
    for (const Slot& slot : before) {
      if (slot.id != kNone) put(slot);
    }
  }
  put({name, id});
}

std::uint32_t History::level_named(std::uint64_t name) {
  const std::uint32_t known = by_name_.find(name);
  if (known != kNone) return known;
  const auto fresh = static_cast<std::uint32_t>(levels_.size());
  ++levels_version_;
  by_name_.insert(name, fresh);
  levels_.emplace_back();
  levels_.back().name = name;
  return fresh;
}

std::size_t History::recent_place(const RunKind& kind) {
  const std::uint64_t all = kind.user + kind.stem * 3 + kind.team * 5 + kind.shape * 7;
  return (all * 0x9e3779b97f4a7c15ULL) >> 56;
}

/// All that there are for the kind; those that are new are made.
const History::Recent& History::levels_taught(const RunKind& kind) {
  Recent& recent = recent_[recent_place(kind)];
  if (recent.known && recent.kind == kind) return recent;
  const auto names = names_of(kind);
  for (std::size_t i = 0; i < kLevels; ++i) recent.levels[i] = level_named(names[i]);
  recent.kind = kind;
  recent.known = true;
  return recent;
}

void History::learn(const RunKind& kind, const Run& run) {
  if (run.us <= 0) return;
  ++taught_;
  for (const std::uint32_t id : levels_taught(kind).levels) {
    Level& level = levels_[id];
    level.taught = taught_;
    level.keep(run.ended ? run.us : -run.us);
  }
  if (run.declared_us > 0) {
    learn_ratio(kEverybody, run);
    learn_ratio(mix(6, kind.user), run);
  }
  if (levels_.size() > kLevelsMax || ratios_.size() > kLevelsMax) forget_oldest();
}

/// Every end teaches, and the next decision asks: where it does the order is kept up rather than made
/// anew.
void History::Level::keep(std::int64_t us) {
  std::int64_t gone = 0;
  if (last.size() < kRunsKept) {
    last.push_back(us);
  } else {
    gone = std::exchange(last[next], us);
    next = next + 1 == kRunsKept ? 0 : next + 1;
  }
  if (unasked == kUnsorted) return;
  if (++unasked > kAskedWithin) {
    unasked = kUnsorted;
    return;
  }
  if (gone > 0 && us > 0) {
    replace_sorted(gone, us);
  } else if (gone > 0) {
    sorted.erase(std::lower_bound(sorted.begin(), sorted.end(), gone));
  } else if (us > 0) {
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), us), us);
  }
}

/// Only those between the two move.
void History::Level::replace_sorted(std::int64_t gone, std::int64_t come) {
  const auto from = std::lower_bound(sorted.begin(), sorted.end(), gone);
  if (gone <= come) {
    const auto to = std::upper_bound(from, sorted.end(), come);
    *std::move(from + 1, to, from) = come;
  } else {
    const auto to = std::upper_bound(sorted.begin(), from, come);
    std::move_backward(to, from, from + 1);
    *to = come;
  }
}

void History::learn_ratio(std::uint64_t user, const Run& run) {
  std::uint32_t id = ratios_of_.find(user);
  if (id == kNone) {
    id = static_cast<std::uint32_t>(ratios_.size());
    ratios_of_.insert(user, id);
    ratios_.emplace_back();
  }
  Ratios& of = ratios_[id];
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
  for (std::uint32_t i = 0; i < levels_.size(); ++i) by_name_.insert(levels_[i].name, i);
  recent_.assign(kRecent, Recent{});
  ++levels_version_;
  if (ratios_.size() <= kLevelsMax) return;
  ratios_.clear();
  ratios_of_.clear();
}

std::array<std::uint32_t, History::kLevels> History::levels(const RunKind& kind) const {
  std::array<std::uint32_t, kLevels> out{};
  const auto names = names_of(kind);
  for (std::size_t i = 0; i < kLevels; ++i) out[i] = by_name_.find(names[i]);
  return out;
}

void History::freshen() const {
  for (std::uint32_t i = 0; i < levels_.size(); ++i) (void)ended(i);
}

std::span<const std::int64_t> History::ended(std::uint32_t id) const {
  const Level& level = levels_[id];
  if (level.unasked == kUnsorted) {
    level.sorted.clear();
    for (const std::int64_t us : level.last) {
      if (us > 0) level.sorted.push_back(us);
    }
    std::sort(level.sorted.begin(), level.sorted.end());
  }
  // Several threads may read what nobody teaches any more.
  if (level.unasked != 0) level.unasked = 0;
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

/// Of one level of a kind, the narrowest being the first; nothing: it does not know enough.
History::Longer History::longer_in(std::uint32_t level,
                                   std::size_t rank,
                                   std::int64_t age_us) const {
  if (level == kNone) return {};
  const auto runs = ended(level);
  if (runs.size() < (rank + 1 == kLevels ? kEnoughOfAll : kEnough)) return {};
  // Every run has lasted longer than one that has not begun.
  if (age_us <= 0) return {level, runs};
  if (runs[runs.size() - kEnough] <= age_us) return {};
  const auto first = std::upper_bound(runs.begin(), runs.end(), age_us) - runs.begin();
  return {level, runs.subspan(static_cast<std::size_t>(first))};
}

History::Longer History::longer_than(const Levels& levels, std::int64_t age_us) const {
  Longer found;
  for (std::size_t i = 0; i < kLevels && found.level == kNone; ++i)
    found = longer_in(levels[i], i, age_us);
  return found;
}

History::Longer History::longer_than(const RunKind& kind, std::int64_t age_us) const {
  Longer found;
  if (const Recent& recent = recent_[recent_place(kind)]; recent.known && recent.kind == kind)
    return longer_than(recent.levels, age_us);
  const auto names = names_of(kind);
  for (std::size_t i = 0; i < kLevels && found.level == kNone; ++i)
    found = longer_in(by_name_.find(names[i]), i, age_us);
  return found;
}

bool History::Ratios::tell(std::size_t enough) const {
  const auto ended = std::count_if(last.begin(), last.end(), [](auto part) { return part > 0; });
  return ended >= static_cast<std::ptrdiff_t>(enough);
}

std::span<const std::int32_t> History::ratios(std::uint64_t user) const {
  const std::uint32_t own = ratios_of_.find(mix(6, user));
  if (own != kNone && ratios_[own].tell(kEnough)) return ratios_[own].last;
  const std::uint32_t all = ratios_of_.find(kEverybody);
  if (all == kNone || !ratios_[all].tell(kEnoughOfAll)) return {};
  return ratios_[all].last;
}

void History::digest(Digest& d) const {
  d.add(taught_);
  for (const Level& level : levels_) d.add(level.name, level.taught, level.last, level.next);
  for (const Ratios& of : ratios_) d.add(of.last, of.next);
}

}  // namespace muster::engine
