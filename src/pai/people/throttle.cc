#include "pai/people/throttle.h"

#include <algorithm>

namespace muster::pai {
namespace {

constexpr int kFailuresFree = 5;
constexpr Duration kFirstWait = std::chrono::seconds(30);
constexpr Duration kLongestWait = std::chrono::minutes(15);
constexpr std::size_t kTriesMax = 20;
constexpr Duration kTriesWindow = std::chrono::minutes(1);
constexpr int kStrangersFree = 100;
constexpr Duration kStrangersWait = std::chrono::seconds(10);
constexpr std::size_t kHomesMax = 8;
/// So many accounts and addresses are remembered; when there are more, the oldest are forgotten.
constexpr std::size_t kKnownMax = 20'000;
/// A streak of failures ends by itself after this time.
constexpr Duration kStreak = std::chrono::hours(1);

}  // namespace

bool Throttle::Account::at_home(const std::string& address) const {
  return std::find(homes.begin(), homes.end(), address) != homes.end();
}

Duration Throttle::ask(const std::string& account, const std::string& address, Duration now) {
  if (std::max({streaks_.size(), accounts_.size(), tries_.size()}) > kKnownMax) forget_old(now);
  if (const auto found = streaks_.find({account, address}); found != streaks_.end()) {
    if (found->second.until > now) return found->second.until - now;
    if (found->second.last + kStreak < now) streaks_.erase(found);
  }
  if (const auto found = accounts_.find(account); found != accounts_.end()) {
    Account& known = found->second;
    if (known.until > now && !known.at_home(address)) return known.until - now;
    if (known.last + kStreak < now) known.failures = 0;
  }
  if (address.empty()) return Duration::zero();
  auto& tries = tries_[address];
  while (!tries.empty() && tries.front() + kTriesWindow <= now) tries.pop_front();
  if (tries.size() >= kTriesMax) return tries.front() + kTriesWindow - now;
  tries.push_back(now);
  return Duration::zero();
}

void Throttle::failed(const std::string& account, const std::string& address, Duration now) {
  Streak& here = streaks_[{account, address}];
  here.last = now;
  if (++here.failures >= kFailuresFree) {
    const int doublings = std::min(here.failures - kFailuresFree, 16);
    here.until = now + std::min<Duration>(kFirstWait * (1 << doublings), kLongestWait);
  }
  Account& known = accounts_[account];
  if (known.at_home(address)) return;
  known.last = now;
  if (++known.failures >= kStrangersFree) known.until = now + kStrangersWait;
}

void Throttle::succeeded(const std::string& account, const std::string& address) {
  streaks_.erase({account, address});
  Account& known = accounts_[account];
  std::erase(known.homes, address);
  known.homes.push_back(address);
  if (known.homes.size() > kHomesMax) known.homes.pop_front();
}

void Throttle::forget(const std::string& account) {
  accounts_.erase(account);
  const auto first = streaks_.lower_bound({account, ""});
  auto last = first;
  while (last != streaks_.end() && last->first.first == account) ++last;
  streaks_.erase(first, last);
}

void Throttle::forget_old(Duration now) {
  std::erase_if(tries_, [now](const auto& entry) {
    return entry.second.empty() || entry.second.back() + kTriesWindow <= now;
  });
  std::erase_if(streaks_, [now](const auto& entry) {
    return entry.second.until <= now && entry.second.last + kLongestWait < now;
  });
  std::erase_if(accounts_, [now](const auto& entry) {
    return entry.second.homes.empty() && entry.second.last + kLongestWait < now;
  });
  // A flood of made-up names must not push out those that wait, nor where people sign in.
  if (streaks_.size() > kKnownMax)
    std::erase_if(streaks_,
                  [](const auto& entry) { return entry.second.failures < kFailuresFree; });
  if (accounts_.size() > kKnownMax)
    std::erase_if(accounts_, [](const auto& entry) {
      return entry.second.homes.empty() && entry.second.failures < kStrangersFree;
    });
  if (streaks_.size() > 2 * kKnownMax) streaks_.clear();
  if (accounts_.size() > 2 * kKnownMax) accounts_.clear();
  if (tries_.size() > 2 * kKnownMax) tries_.clear();
}

}  // namespace muster::pai
