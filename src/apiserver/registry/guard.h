/// What a writer may not do although the verb is theirs: give away rights they do not hold, ask of
/// a node what their namespace forbids, write what only the scheduler may write, or believe that
/// something is enforced here which is not.
///
/// Runs on every create and on every update that changes something, after the object has its
/// defaults. Costs one look-up for kinds it has nothing to say about.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "apiserver/core.h"

namespace muster::apiserver {

struct GuardedWrite {
  const Resource& resource;
  const std::string& ns;
  const json::Value& next;
  const json::Value* live = nullptr;  // null on create
  const User& user;
  std::string_view subresource;
  std::vector<std::string>* warnings = nullptr;
  std::vector<std::string>* violations = nullptr;  // of the `audit` level, for the audit log
};

/// Forbidden or Invalid with the reason; warnings are added.
[[nodiscard]] Result<void> guard(Core& core, const GuardedWrite& write);

/// Once it is known who runs the pods: says which stored objects ask for what is not done here.
void report_unserved(Core& core);

}  // namespace muster::apiserver
