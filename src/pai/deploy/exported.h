/// What somebody took out of an OpenPAI before leaving it, as a folder:
///
///   services-configuration.yaml, layout.yaml   paictl.py config pull -o DIR
///   users.yaml, groups.yaml                    kubectl get secrets -n pai-user-v2 -o yaml, -n pai-group
///   jobs/USER~JOB.yaml                         GET /api/v2/jobs/USER~JOB/config
///
/// Every part may be missing. Pure but for reading the files.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "pai/people/records.h"

namespace muster::pai {

struct ExportedJob {
  std::string user, name;
  std::string protocol;  // YAML
};

struct Exported {
  std::string configuration;  // services-configuration.yaml
  std::string layout;
  std::vector<GroupRecord> groups;
  std::vector<UserRecord> users;
  std::vector<ExportedJob> jobs;
  /// What could not be read: the file, and why.
  std::vector<std::string> problems;
};

/// Fails only if there is nothing of an OpenPAI in the folder.
Result<Exported> read_exported(const std::string& folder);

/// A job's configuration as OpenPAI keeps it has its secrets masked, which no job can be made of: the
/// same without them. The second says whether there were any.
std::pair<std::string, bool> without_masked_secrets(const std::string& protocol);

}  // namespace muster::pai
