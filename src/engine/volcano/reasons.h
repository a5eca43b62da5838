/// Why groups and pods still wait at the end of a session. Volcano's own word for it is one line
/// per node; here it is the engine's refusal with numbers, told when it changed.
#pragma once

#include <set>
#include <string>

#include "engine/model/reason.h"
#include "engine/volcano/session.h"

namespace muster::engine::volcano {

class Reasons {
 public:
  Reasons(Session& session, Memory& memory)
      : session_(session),
        snapshot_(session.snapshot()),
        state_(session.snapshot().state),
        memory_(memory) {}

  /// Puts what is news into the plan, and takes back what waits no more.
  void tell_waits();

 private:
  void tell(const std::string& group, const std::string& pod, Refusal refusal);
  [[nodiscard]] Refusal refusal_of(JobIx job, TaskIx task) const;
  [[nodiscard]] Refusal refused_by_queue(const Job& job,
                                         const Amounts& request,
                                         bool admission) const;
  [[nodiscard]] Refusal refused_by_nodes(const Job& job, TaskIx task) const;
  bool over_limit(const Filling& filling, const Amounts& request, Refusal& refusal) const;

  Session& session_;
  const Snapshot& snapshot_;
  const State& state_;
  Memory& memory_;
  std::set<std::string> still_waiting_;
};

}  // namespace muster::engine::volcano
