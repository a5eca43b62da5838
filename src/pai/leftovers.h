/// What jobs leave behind that Kubernetes does not take along: the PriorityClass of a job that is
/// deleted, since an object of a namespace owns none outside of it, and what was made for a submission
/// that a crash ended before its Framework was there. On the loop.
#pragma once

#include <string>
#include <string_view>

#include "base/gate.h"
#include "client/client.h"
#include "pai/index/job_index.h"

namespace muster::pai {

class Leftovers {
 public:
  Leftovers(Env& env, client::Client& client, const JobIndex& index)
      : env_(env), client_(client), index_(index), gate_(env) {}
  /// Jobs that go from now on.
  void follow(JobIndex& index);
  /// What is there already, once: before submissions are taken.
  Task<Result<void>> sweep();
  Task<void> stop();

 private:
  Task<void> forget(std::string framework);

  Env& env_;
  client::Client& client_;
  const JobIndex& index_;
  Gate gate_;
};

/// The name of the Framework that an object was made for, by its own name: what stands before the
/// first dash, if that is 32 hexadecimal digits. Empty: none.
std::string_view made_for(std::string_view name);

}  // namespace muster::pai
