/// `submit`: from flags to the objects that arena's charts would render. Pure apart from reading
/// the files that --config-file names.
#pragma once

#include <string>
#include <vector>

#include "cli/shell/session.h"
#include "cli/submit/trainer.h"
#include "json/json.h"

namespace muster::cli {

/// The sub-commands of `submit`, with every flag.
std::vector<Command> submit_commands();

struct SubmitContext {
  std::string type;  // canonical: mpijob
  std::string ns;
  std::string user;
  std::string command;                          // positionals joined with blanks
  std::vector<std::string> image_pull_secrets;  // of the arena config file
};

/// What is created, in this order: the ConfigMap that records the job, the extras, the job.
struct SubmitPlan {
  std::string name;
  const Trainer* trainer = nullptr;
  json::Value record;               // ConfigMap <name>-<type>
  std::vector<json::Value> before;  // needed by the job's pods: --config-file's ConfigMaps
  json::Value job;
  std::vector<json::Value> after;  // tensorboard's Service and Deployment
  std::vector<std::string> notes;  // for people: what a flag could not do
};

/// Errors are what is wrong with the flags, without the prefix "failed to validate command args: ".
Result<SubmitPlan> plan_submit(const SubmitContext& context, const Values& values);
/// "mpijob.kubeflow.org/medium", as kubectl reports what it made.
std::string shown(const json::Value& object);
/// The name alone, so that a bad one is told before anything is asked of the server.
Result<void> check_name(const std::string& name);

}  // namespace muster::cli
