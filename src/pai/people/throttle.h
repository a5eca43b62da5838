/// How often somebody may guess a password. After five failures in a row the account waits for 30 s
/// at that address, then twice as long after each further one, 15 minutes at most; an address has 20
/// tries a minute over all accounts.
///
/// A stranger cannot keep somebody out: failures elsewhere do not count where the owner is. Only
/// when an account was guessed at a hundred times from wherever, addresses at which it never signed
/// in share one try in 10 s.
/// Names that nobody has are counted like those that somebody has. Pure: time comes in.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>
#include <utility>

#include "base/time.h"

namespace muster::pai {

class Throttle {
 public:
  /// Zero: go ahead, and the try is counted for its address. Else how long to wait.
  Duration ask(const std::string& account, const std::string& address, Duration now);
  void failed(const std::string& account, const std::string& address, Duration now);
  void succeeded(const std::string& account, const std::string& address);
  /// The account has another password now.
  void forget(const std::string& account);

 private:
  /// Of one account at one address.
  struct Streak {
    int failures = 0;
    Duration until{};  // no try before
    Duration last{};   // failure
  };
  struct Account {
    std::deque<std::string> homes;  // addresses at which it signed in, the latest at the end
    int failures = 0;               // at other addresses
    Duration until{};               // no try there before
    Duration last{};
    [[nodiscard]] bool at_home(const std::string& address) const;
  };
  void forget_old(Duration now);

  std::map<std::pair<std::string, std::string>, Streak> streaks_;
  std::map<std::string, Account> accounts_;
  std::map<std::string, std::deque<Duration>> tries_;  // by address, of the last minute
};

}  // namespace muster::pai
