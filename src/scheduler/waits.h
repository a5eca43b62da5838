/// Why pods and gangs wait, told to people: conditions of pods and groups and FailedScheduling
/// events, a little after the engine has said so. Short waits are not worth a write.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "engine/model/plan.h"
#include "scheduler/context.h"
#include "scheduler/groups.h"
#include "scheduler/hands.h"

namespace muster::scheduler {

class Waits {
 public:
  struct Options {
    Groups& groups;
    const Hands& hands;
    Duration report_after;
    std::function<void(const engine::Wait&, const std::string& pod, const std::string& message)>
        on_wait;
  };
  Waits(const Context& context, Options options)
      : context_(context),
        groups_(options.groups),
        hands_(options.hands),
        report_after_(options.report_after),
        on_wait_(std::move(options.on_wait)) {}

  /// What the engine says.
  void note(const engine::Wait& wait);
  /// The pod's reason is not the engine's, which only sees it as gated.
  void tell_otherwise(const json::Value& pod, const std::string& why);
  /// The same, by somebody who tells it in time.
  void told_by_others(const std::string& pod) { told_otherwise_.insert(pod); }
  void told_by_engine(const std::string& pod) {
    // What the engine said meanwhile was about the gate that it saw.
    if (told_otherwise_.erase(pod) > 0) noted_.erase(pod);
  }
  void tell(const std::string& pod, const engine::Refusal& refusal, const std::string& message);

  /// The pod waits no more: what has not been written yet is not written.
  void placed(const std::string& pod);
  void gone(const std::string& pod);

  void stop() { timer_.reset(); }
  [[nodiscard]] bool idle() const { return noted_.empty(); }

 private:
  void report_soon();
  void report();

  Context context_;
  Groups& groups_;
  const Hands& hands_;
  Duration report_after_;
  std::function<void(const engine::Wait&, const std::string& pod, const std::string& message)>
      on_wait_;

  struct Noted {
    engine::Wait wait;
    Duration since{}, changed{};
  };
  std::map<std::string, Noted> noted_;  // not yet reported, by pod or gang
  std::set<std::string> told_otherwise_;
  std::unique_ptr<Timer> timer_;
};

}  // namespace muster::scheduler
