/// A job of OpenPAI's protocol, version 2, from its YAML to what is created in the cluster. Pure:
/// the REST server and `muster submit pai` are the same code.
///
/// Checks run in OpenPAI's order and the first failure wins: schema, references, templates, HiveD,
/// duplicate, virtual cluster, storage. Tokens and rate limits come before and are the server's.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.h"
#include "pai/protocol/facts.h"
#include "pai/refusal.h"

namespace muster::pai {

/// What to create (create.h): the PriorityClass, each of `owned`, which pods wait for, then the
/// Framework, which owns them.
struct Submission {
  std::string user, job, virtual_cluster;
  std::string framework_name;  // 32 hexadecimal digits
  json::Value priority_class;
  json::Value framework;
  std::vector<json::Value> owned;  // Secrets of this job
};

/// "alice~job-config-6": how OpenPAI calls a job, and its Framework's name.
std::string job_id(std::string_view user, std::string_view job);
std::string framework_name(std::string_view user, std::string_view job);

/// The name of a job, user or virtual cluster as a label by which it is found: itself, or a digest of
/// one that no label can hold. Annotations say it in full.
std::string label_value(std::string_view name);

/// The number that OpenPAI gives to a priority class; empty for an unknown one.
std::optional<int> priority_number(std::string_view priority_class);

/// At most 1 MiB of text.
Answer<Submission> submit(std::string_view protocol, const std::string& user, const Facts& facts);

/// `object` with the Framework as its owner, so that it goes when the job goes.
json::Value owned_by(json::Value object, const json::Value& framework);

}  // namespace muster::pai
