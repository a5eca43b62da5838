/// When pods that failed may be made again: at once, then after 10 s, 20 s and so on up to 5 minutes,
/// as Kubernetes does with containers; all is forgotten when a pod has lived for 10 minutes.
///
/// Pods of one job, by name; each that failed counts once, however often its deletion has to be tried.
/// Kept in memory: after a restart of the program the first comes back at once again. Pods that were
/// preempted are no failures.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "controllers/common/plan.h"

namespace muster::controllers {

class Comebacks {
 public:
  /// Takes out of the plan what is too early, and says so in its events. A plan that deletes a pod
  /// that failed restarts all pods that it deletes. Answers when it is no longer too early.
  std::optional<Time> hold_back(Plan& plan, const View& view, Time now);

 private:
  struct Failures {
    int count = 0;
    std::string uid;  // of the last pod that was counted
    Time last;
    std::string how;  // for people
    bool told = false;
    [[nodiscard]] Time due() const;
  };
  void note_failures(const Plan& plan, const View& view, Time now);

  std::map<std::string, Failures> pods_;
};

}  // namespace muster::controllers
