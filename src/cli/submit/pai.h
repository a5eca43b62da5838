/// OpenPAI's job protocol, version 2: from its YAML to a Volcano Job. Pure.
///
/// Every task role becomes a task. A gang (the protocol's default) starts whole or not at all. A
/// failed instance restarts the whole job, as often as jobRetryCount allows; a role whose instances
/// have all succeeded ends it; a preempted job waits for its turn again. Inside the containers the
/// PAI_* variables name roles, hosts and ports.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "json/json.h"

namespace muster::cli {

struct PaiContext {
  std::string ns, user;
};

struct PaiJob {
  std::string name;                // of the object: the protocol's in lower case
  json::Value job;                 // batch.volcano.sh/v1alpha1 Job
  std::string priority_class;      // oppo, test, prod or crit
  std::vector<std::string> notes;  // what the translation leaves out
};

/// Errors are in the protocol's words.
Result<PaiJob> translate_pai(const json::Value& protocol, const PaiContext& context);

/// The number that OpenPAI gives to a priority class; empty for an unknown one.
std::optional<int> pai_priority(std::string_view priority_class);

}  // namespace muster::cli
