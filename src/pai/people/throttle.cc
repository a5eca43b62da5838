#include "pai/people/throttle.h"

#include <algorithm>

namespace muster::pai {
namespace {

constexpr int kFailuresFree = 5;
constexpr Duration kFirstWait = std::chrono::seconds(30);
constexpr Duration kLongestWait = std::chrono::minutes(15);
constexpr std::size_t kTriesMax = 20;
constexpr Duration kTriesWindow = std::chrono::minutes(1);
/// So many accounts and addresses are remembered; when there are more, the oldest are forgotten.
constexpr std::size_t kKnownMax = 20'000;
/// A streak of failures ends by itself after this time.
constexpr Duration kStreak = std::chrono::hours(1);

}  // namespace

Duration Throttle::ask(const std::string& account, const std::string& address, Duration now) {
  if (accounts_.size() > kKnownMax || tries_.size() > kKnownMax) forget_old(now);
  if (const auto found = accounts_.find(account); found != accounts_.end()) {
    if (found->second.until > now) return found->second.until - now;
    if (found->second.last + kStreak < now) accounts_.erase(found);
  }
  if (address.empty()) return Duration::zero();
  auto& tries = tries_[address];
  while (!tries.empty() && tries.front() + kTriesWindow <= now) tries.pop_front();
  if (tries.size() >= kTriesMax) return tries.front() + kTriesWindow - now;
  tries.push_back(now);
  return Duration::zero();
}

void Throttle::failed(const std::string& account, Duration now) {
  Account& known = accounts_[account];
  known.last = now;
  if (++known.failures < kFailuresFree) return;
  const int doublings = std::min(known.failures - kFailuresFree, 16);
  known.until = now + std::min<Duration>(kFirstWait * (1 << doublings), kLongestWait);
}

void Throttle::forget_old(Duration now) {
  std::erase_if(tries_, [now](const auto& entry) {
    return entry.second.empty() || entry.second.back() + kTriesWindow <= now;
  });
  std::erase_if(accounts_, [now](const auto& entry) {
    return entry.second.until <= now && entry.second.last + kLongestWait < now;
  });
  // A flood of made-up names must not push out the accounts that wait.
  if (accounts_.size() > kKnownMax)
    std::erase_if(accounts_,
                  [](const auto& entry) { return entry.second.failures < kFailuresFree; });
  if (accounts_.size() > 2 * kKnownMax) accounts_.clear();
  if (tries_.size() > 2 * kKnownMax) tries_.clear();
}

}  // namespace muster::pai
