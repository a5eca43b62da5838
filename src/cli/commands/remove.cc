/// delete, prune, suspend and resume: commands that change jobs.
#include <fmt/core.h>

#include <map>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/fetch.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

/// "mpijob.kubeflow.org/medium" in a job's record -> what to delete.
const client::Resource* resource_of_record(const std::string& kind_group) {
  if (kind_group == "configmap") return &client::resources::kConfigMaps;
  if (kind_group == "service") return &client::resources::kServices;
  if (kind_group == "secret") return &client::resources::kSecrets;
  if (kind_group == "deployment.apps") return &client::resources::kDeployments;
  if (kind_group == "statefulset.apps") return &client::resources::kStatefulSets;
  if (kind_group == "job.batch") return &client::resources::kJobs;
  if (kind_group == to_lower(kube::kind_groups::kPodGroup)) return &client::resources::kPodGroups;
  for (const Trainer& trainer : trainers()) {
    if (trainer.kind_group() == kind_group) return &trainer.resource;
  }
  return nullptr;
}

struct Record {
  std::string type;
  json::Value map;
};

/// The ConfigMaps that record a job of this name; usually one.
Task<Result<std::vector<Record>>> find_records(Session& session,
                                               std::string ns,
                                               std::string name,
                                               std::string type) {
  std::vector<Record> records;
  for (const char* each : {"mpijob",
                           "pytorchjob",
                           "tfjob",
                           "volcanojob",
                           "etjob",
                           "deepspeedjob",
                           "horovodjob",
                           "sparkjob",
                           "rayjob"}) {
    if (!type.empty() && type != each) continue;
    auto map = co_await session.cluster().get(
        client::resources::kConfigMaps, ns, fmt::format("{}-{}", name, each));
    if (map) {
      records.push_back({each, std::move(*map)});
    } else if (map.error().code != Code::kNotFound) {
      co_return fail(map.error());
    }
  }
  co_return records;
}

Task<Result<void>> remove_one(Session& session,
                              const client::Resource& resource,
                              std::string ns,
                              std::string name) {
  client::DeleteOptions options;
  const auto removed =
      co_await session.cluster().remove(resource, std::move(ns), std::move(name), options);
  if (!removed && removed.error().code != Code::kNotFound) co_return fail(removed.error());
  co_return Result<void>{};
}

/// Everything the record lists, then the record itself: a failure leaves the record, so that it can
/// be tried again.
Task<Result<void>> remove_recorded(Session& session, std::string ns, const Record& record) {
  for (const std::string& line : split_nonempty(json::text_at(record.map, "data", "app"), '\n')) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const client::Resource* resource = resource_of_record(line.substr(0, slash));
    if (resource == nullptr) {
      session.console.warn(fmt::format("{} is of a kind that is not known here, left alone", line));
      continue;
    }
    const auto removed = co_await remove_one(session, *resource, ns, line.substr(slash + 1));
    if (!removed) co_return fail(removed.error());
  }
  const auto removed = co_await remove_one(
      session, client::resources::kConfigMaps, ns, std::string(kube::name_of(record.map)));
  co_return removed;
}

/// True when the job was there.
Task<Result<bool>> remove_job(Session& session,
                              std::string ns,
                              std::string name,
                              std::string type) {
  const auto records = co_await find_records(session, ns, name, type);
  if (!records) co_return fail(records.error());
  if (records->size() > 1) {
    co_return fail(
        Code::kConflict,
        fmt::format("there are several training jobs named {}, please choose one with --type",
                    name));
  }
  if (records->size() == 1) {
    const auto removed = co_await remove_recorded(session, ns, (*records)[0]);
    if (!removed) co_return fail(removed.error());
    co_return true;
  }
  // No record: a job made by other means, such as kubectl.
  const auto found = co_await fetch_job_object(session, name, type);
  if (!found && found.error().code == Code::kNotFound) co_return false;
  if (!found) co_return fail(found.error());
  const std::string own(kube::name_of(found->object));
  const auto removed = co_await remove_one(session, found->trainer->resource, ns, own);
  if (!removed) co_return fail(removed.error());
  // It belongs to the job, and nothing that belongs to the whole cluster can say so.
  if (found->trainer->type == "paijob") {
    const auto priority =
        co_await remove_one(session, client::resources::kPriorityClasses, "", own + "-priority");
    if (!priority && priority.error().code != Code::kForbidden) co_return fail(priority.error());
  }
  co_return true;
}

/// What to patch for a kind: the merge patch that suspends or resumes it; null when it cannot be
/// suspended.
json::Value suspend_patch(const json::Value& job, bool suspend) {
  const kube::Gvk gvk = kube::gvk_of(job);
  if (gvk.group == kube::groups::kT9kBatch) {
    return json::Object{
        {"spec",
         json::Object{{"runMode", json::Object{{"pause", json::Object{{"enabled", suspend}}}}}}}};
  }
  if (json::at(job, "spec", "template").is_object() || gvk.group == kube::groups::kVolcanoBatch) {
    // No field for it: Muster's controllers read the annotation.
    return json::Object{
        {"metadata",
         json::Object{{"annotations",
                       json::Object{{kube::names::kSuspend,
                                     suspend ? json::Value("true") : json::Value()}}}}}};
  }
  if (gvk.group == kube::groups::kKubeflow)
    return json::Object{{"spec", json::Object{{"runPolicy", json::Object{{"suspend", suspend}}}}}};
  return nullptr;
}

Task<int> set_suspended(Invocation& call, bool suspend) {
  Session& session = call.session;
  const auto type = type_flag(session, call.values);
  if (!type) co_return session.failed(type.error());
  int code = 0;
  for (const std::string& name : call.values.args) {
    const auto found = co_await fetch_job_object(session, name, *type);
    if (!found) {
      code = session.failed(found.error());
      continue;
    }
    JobParts parts;
    parts.trainer = found->trainer;
    parts.object = &found->object;
    if (const Job job = make_job(parts, session.now()); job.finished()) {
      code = session.failed(fmt::format("the training job {} is {}: it can no longer be {}",
                                        name,
                                        job.status,
                                        suspend ? "suspended" : "resumed"));
      continue;
    }
    json::Value patch = suspend_patch(found->object, suspend);
    if (patch.is_null()) {
      code = session.failed(fmt::format(
          "{} is a {} of {}, which has no way to suspend a job; delete it and submit it again",
          name,
          found->trainer->type,
          kube::gvk_of(found->object).api_version()));
      continue;
    }
    const auto patched = co_await session.cluster().patch(found->trainer->resource,
                                                          session.ns,
                                                          name,
                                                          "",
                                                          client::PatchType::kMerge,
                                                          std::move(patch));
    if (!patched) {
      code = session.failed(patched.error());
      continue;
    }
    session.console.info(fmt::format("The training job {} has been {}",
                                     name,
                                     suspend
                                         ? "suspended: its instances end and their GPUs are free"
                                         : "resumed: it is queued again"));
  }
  co_return code;
}

}  // namespace

Task<int> run_delete(Invocation& call) {
  Session& session = call.session;
  const auto type = type_flag(session, call.values);
  if (!type) co_return session.failed(type.error());
  int code = 0;
  for (const std::string& name : call.values.args) {
    const auto removed = co_await remove_job(session, session.ns, name, *type);
    if (!removed) {
      code = session.failed(removed.error());
    } else if (*removed) {
      session.console.info(fmt::format("The training job {} has been deleted successfully", name));
    } else if (!type->empty()) {
      session.console.error(fmt::format(
          "The training job '{}' of type {} does not exist, skip to delete it", name, *type));
    } else {
      session.console.info(
          fmt::format("The training job '{}' does not exist,skip to delete it", name));
    }
  }
  co_return code;
}

Task<int> run_prune(Invocation& call) {
  Session& session = call.session;
  if (!call.values.given("since") || call.values.duration("since").count() < 0) {
    co_return session.failed(
        "--since must be set to a duration such as 24h: finished jobs at least that old are deleted");
  }
  JobsQuery query;
  query.ns = call.values.yes("all-namespaces") ? "" : session.ns;
  const auto fetched = co_await fetch_jobs(session, query);
  if (!fetched) co_return session.failed(fetched.error());
  int deleted = 0, code = 0;
  for (const Job& job : (*fetched)->jobs) {
    if (!job.finished() || job.age < call.values.duration("since")) continue;
    if (!call.values.yes("dry-run")) {
      const std::string here = session.ns;
      session.ns = job.ns;
      const auto removed = co_await remove_job(session, job.ns, job.name, job.trainer->type);
      session.ns = here;
      if (!removed) {
        code = session.failed(removed.error());
        continue;
      }
    }
    session.console.out(fmt::format(
        "Delete {} {} with Age {}\n", job.trainer->type, job.name, short_human_duration(job.age)));
    ++deleted;
  }
  if (deleted == 0 && code == 0) session.console.out("No job need to be deleted\n");
  co_return code;
}

Task<int> run_suspend(Invocation& call) {
  const int code = co_await set_suspended(call, true);
  co_return code;
}

Task<int> run_resume(Invocation& call) {
  const int code = co_await set_suspended(call, false);
  co_return code;
}

}  // namespace muster::cli
