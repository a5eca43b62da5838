/// Which instance and container of a job a command works on; for logs and attach.
#pragma once

#include "cli/view/fetch.h"

namespace muster::cli {

/// What the flags --type, --instance and --container chose.
struct Chosen {
  SnapshotPtr snapshot;  // holds what the pointers below point to
  const Job* job = nullptr;
  const Instance* instance = nullptr;
  std::string container;  // empty when the caller named none
};

/// The named instance, else the chief, else the only one. Otherwise the reason is printed, or the
/// instances to choose from, and the answer is empty: the command ends with exit code 1.
Task<std::optional<Chosen>> choose_instance(Invocation& call);

/// The container's name, or the pod's first.
std::string container_or_first(const Chosen& chosen);

}  // namespace muster::cli
