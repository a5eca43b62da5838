/// Why pods and gangs wait, told to people: conditions of pods and groups and FailedScheduling events, a little after the engine has
/// said so. Short waits are not worth a write.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/env.h"
#include "client/client.h"
#include "client/events.h"
#include "client/informer.h"
#include "engine/plan.h"
#include "scheduler/groups.h"
#include "scheduler/hands.h"
#include "scheduler/writer.h"

namespace muster::scheduler {

class Waits {
 public:
  Waits(Env& env, client::Client& client, client::Informer& pods, client::EventRecorder& events, Groups& groups, const Hands& hands, Lane& lane, Duration report_after)
      : env_(env), client_(client), pods_(pods), events_(events), groups_(groups), hands_(hands), lane_(lane), report_after_(report_after) {}

  /// What the engine says.
  void note(const engine::Wait& wait);
  /// The pod's reason is not the engine's, which only sees it as gated.
  void tell_otherwise(const json::Value& pod, const std::string& why);
  /// The same, by somebody who tells it in time.
  void told_by_others(const std::string& pod) { told_otherwise_.insert(pod); }
  void told_by_engine(const std::string& pod) { told_otherwise_.erase(pod); }
  void tell(const std::string& pod, const engine::Refusal& refusal, const std::string& message);

  /// The pod waits no more: what has not been written yet is not written.
  void placed(const std::string& pod);
  void gone(const std::string& pod);

  void stop() { timer_.reset(); }
  [[nodiscard]] bool idle() const { return noted_.empty(); }

 private:
  void report_soon();
  void report();

  Env& env_;
  client::Client& client_;
  client::Informer& pods_;
  client::EventRecorder& events_;
  Groups& groups_;
  const Hands& hands_;
  Lane& lane_;
  Duration report_after_;

  struct Noted {
    engine::Wait wait;
    Duration since{}, changed{};
  };
  std::map<std::string, Noted> noted_;  // not yet reported, by pod or gang
  std::set<std::string> told_otherwise_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace muster::scheduler
