/// What runs in a task's container, as bash: the variables that name addresses and ports, the
/// plugins' part, the user's commands, and the translation of how they end. Pure.
///
/// It is shell because it must run in the user's image, where this program need not run; what needs
/// the cluster is done before, in the init container, which is this program.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"

namespace muster::pai {

/// A task that has its place.
struct PlacedTask {
  std::string role;  // as its pods are named
  std::int64_t index = 0;
  std::string ip, pod_uid;
};

/// The tasks of this attempt that have an address; `all` is told whether none is missing.
std::vector<PlacedTask> placed_tasks(const json::Value& framework, std::int64_t attempt, bool& all);

/// Who the task is.
struct Self {
  std::string role;  // as its pods are named
  std::int64_t index = 0;
  std::string ip, pod_uid;
};

struct Inputs {
  json::Value spec;  // runtime_spec
  std::vector<PlacedTask> tasks;
  Self self;
  json::Value secrets;      // of the job; null: none
  std::string private_key;  // of the job's key pair; empty: no ssh
  std::string public_key;
};

/// The ports that this task may listen at.
std::vector<int> own_ports(const Inputs& inputs);

/// File name to content, all below kRuntimeFolder.
std::map<std::string, std::string> make_files(const Inputs& inputs);

}  // namespace muster::pai
