/// How often somebody may guess a password. After five failures in a row an account waits for 30 s,
/// then twice as long after each further one, 15 minutes at most; an address has 20 tries a minute.
/// Names that nobody has are counted like those that somebody has. Pure: time comes in.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <string>

#include "base/time.h"

namespace muster::pai {

class Throttle {
 public:
  /// Zero: go ahead, and the try is counted for its address. Else how long to wait.
  Duration ask(const std::string& account, const std::string& address, Duration now);
  void failed(const std::string& account, Duration now);
  void succeeded(const std::string& account) { accounts_.erase(account); }

 private:
  struct Account {
    int failures = 0;
    Duration until{};  // no try before
    Duration last{};   // failure
  };
  void forget_old(Duration now);

  std::map<std::string, Account> accounts_;
  std::map<std::string, std::deque<Duration>> tries_;  // by address, of the last minute
};

}  // namespace muster::pai
