/// A job of the protocol after its schema was found right: defaults filled in, names looked up,
/// templates rendered.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pai/protocol/submit.h"

namespace muster::pai {

using Ports = std::vector<std::pair<std::string, int>>;  // label and how many

/// A command of the user's that runs beside the role's own.
struct Hook {
  std::vector<std::string> commands;
  bool may_fail = false;  // failurePolicy: ignore
};

struct Role {
  std::string name;     // as written
  std::string in_pods;  // as part of a pod's name: a-z and 0-9
  std::int64_t instances = 1;
  std::int64_t min_failed = 1, min_succeeded = 1;  // -1: never
  std::int64_t retries = 0;
  std::int64_t cpu = 0, memory_mb = 0, gpu = 0, shm_mb = 0;
  bool infiniband = false;
  Ports ports;
  std::string image;
  json::Value auth;  // of the image's registry; null: none
  std::vector<std::string> commands;
  std::vector<Hook> starts, succeeds;  // of prerequisites that are plugins, in order
  // HiveD.
  std::string sku_type, pinned_cell, affinity_group;
  std::int64_t skus = 0;
};

struct Mount {
  std::string storage, path;
};

struct Job {
  std::string name, user, virtual_cluster;
  std::int64_t retries = 0;
  bool gang = true;
  std::string priority_class;  // oppo, test, prod or crit
  std::vector<Role> roles;
  std::vector<Mount> mounts;
  const json::Value* protocol = nullptr;
};

/// References, names and templates. Secrets stay unrendered in commands.
Answer<Job> read_job(const json::Value& protocol, const std::string& user);

/// HiveD's checks; fills in how many cells each role's tasks need.
Answer<Job> check_cells(Job job, const Facts& facts);

/// `extras.storages` and the storage plugin against what there is.
Answer<Job> check_storages(Job job, const Facts& facts);

/// What the job becomes.
Submission make_submission(const Job& job, const Facts& facts);

Refusal invalid(std::string message);

}  // namespace muster::pai
