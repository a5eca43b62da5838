#include "controllers/t9k/validate.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/quantity.h"
#include "controllers/common/objects.h"
#include "controllers/t9k/pods.h"

namespace muster::controllers::t9k {
namespace {

using Names = std::vector<std::string_view>;

void known_fields(Verdict& verdict,
                  const json::Value& object,
                  const std::string& path,
                  const Names& known) {
  for (const auto& [key, value] : json::as_object(object)) {
    const std::string_view name(key.data(), key.size());
    if (std::find(known.begin(), known.end(), name) == known.end())
      verdict.forbidden(path + "." + std::string(name), "unknown field");
  }
}

void check_replica_list(Verdict& verdict,
                        const json::Value& list,
                        const std::string& path,
                        const Names& known) {
  std::set<std::string> seen;
  const auto& entries = json::as_array(list);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto at = fmt::format("{}[{}]", path, i);
    const auto& type = json::at(entries[i], "type");
    const auto name = json::text(type);
    if (name != "launcher" && name != "worker")
      verdict.unsupported(at + ".type", type, {"launcher", "worker"});
    if (!seen.insert(name).second)
      verdict.invalid(at + ".type", type, "each type may be given once");
    known_fields(verdict, entries[i], at, known);
  }
}

void check_resources(Verdict& verdict, const json::Value& container, const std::string& path) {
  for (const auto& [name, amount] : json::object_at(container, "resources", "requests")) {
    const auto& limit =
        json::at(container, "resources", "limits", std::string_view(name.data(), name.size()));
    if (limit.is_null()) continue;
    const auto read = [](const json::Value& value) {
      return parse_quantity(value.is_string() ? std::string(json::as_string(value))
                                              : json::dump(value));
    };
    const auto wanted = read(amount), most = read(limit);
    if (wanted && most && *wanted > *most) {
      verdict.invalid(fmt::format("{}.resources.requests", path),
                      amount,
                      fmt::format("must be less than or equal to {} limit of {}",
                                  std::string_view(name.data(), name.size()),
                                  most->text()));
    }
  }
}

void check_worker(Verdict& verdict, const json::Value& spec, bool later) {
  const auto& worker = json::at(spec, "worker");
  if (!worker.is_object()) {
    verdict.required("spec.worker", "must describe the workers");
    return;
  }
  known_fields(
      verdict,
      worker,
      "spec.worker",
      {"replicas", "extraMPIArgs", "cmd", "template", "processesPerWorker", "processRecovery"});
  if (const auto& replicas = json::at(worker, "replicas");
      replicas.is_number() && json::as_int(replicas) < 1) {
    verdict.invalid("spec.worker.replicas", replicas, "must be at least 1");
  }
  const bool debug = json::bool_at(spec, "runMode", "debug", "enabled");
  if (!debug && json::array_at(worker, "cmd").empty())
    verdict.required("spec.worker.cmd", "must name the program that the MPI processes run");
  const std::string path = "spec.worker.template.spec.containers";
  const auto& containers = json::array_at(worker, "template", "spec", "containers");
  if (!later && find_container(json::at(worker, "template", "spec"), "mpi-worker") < 0)
    verdict.required(path, "must have a container named mpi-worker");
  for (std::size_t i = 0; i < containers.size(); ++i)
    check_resources(verdict, containers[i], fmt::format("{}[{}]", path, i));
}

/// A memory-backed /dev/shm larger than the memory limit will get the container killed: worth a
/// word, no refusal.
void warn_shared_memory(Verdict& verdict, const json::Value& spec) {
  const auto& pod = json::at(spec, "worker", "template", "spec");
  for (const auto& volume : json::array_at(pod, "volumes")) {
    const auto& empty = json::at(volume, "emptyDir");
    const auto size = parse_quantity(json::string_at(empty, "sizeLimit"));
    if (json::string_at(empty, "medium") != "Memory" || !size) continue;
    for (const auto& container : json::array_at(pod, "containers")) {
      const auto limit =
          parse_quantity(json::string_at(container, "resources", "limits", "memory"));
      if (limit && *size > *limit) {
        verdict.warnings.push_back(fmt::format(
            "shared memory \"{}\" ({}) is larger than the memory limit of container \"{}\" ({})",
            json::string_at(volume, "name"),
            size->text(),
            json::string_at(container, "name"),
            limit->text()));
      }
    }
  }
}

/// Only runMode.pause.enabled may change.
void check_update(Verdict& verdict, const json::Value& spec, const json::Value& old_spec) {
  const auto& resume = json::at(spec, "runMode", "pause", "resumeSpecs");
  if (!json::equal(resume, json::at(old_spec, "runMode", "pause", "resumeSpecs"))) {
    verdict.invalid("spec.runMode.pause.resumeSpecs", resume, "field is immutable");
  }
  json::Value now = spec, before = old_spec;
  for (auto* each : {&now, &before}) {
    json::remove(*each, {"runMode", "pause"});
    if (json::object_at(*each, "runMode").empty()) json::remove(*each, {"runMode"});
  }
  if (!json::equal(now, before))
    verdict.forbidden("spec", "only spec.runMode.pause.enabled may be changed after creation");
}

/// The later manual's shape: what cannot be taken apart into the usual one is told in its own
/// words.
void check_later_shape(Verdict& verdict, const json::Value& spec) {
  known_fields(verdict,
               json::at(spec, "mpiConfig"),
               "spec.mpiConfig",
               {"home", "mca", "extraArgs", "script"});
  if (!json::at(spec, "worker").is_null())
    verdict.forbidden("spec.worker", "may not be combined with mpiConfig and replicaSpecs");
  const auto& roles = json::at(spec, "replicaSpecs");
  check_replica_list(
      verdict, roles, "spec.replicaSpecs", {"type", "replicas", "restartPolicy", "template"});
  for (const auto& role : json::as_array(roles)) {
    const auto type = json::text_at(role, "type");
    const auto& pod = json::at(role, "template", "spec");
    if (type == "worker" && find_container(pod, "worker") < 0)
      verdict.required("spec.replicaSpecs[worker].template.spec.containers",
                       "must have a container named worker");
  }
}

}  // namespace

Verdict validate(const json::Value& job, const json::Value* old_job) {
  Verdict verdict;
  const auto& original = json::at(job, "spec");
  const bool later =
      !json::at(original, "mpiConfig").is_null() || !json::at(original, "replicaSpecs").is_null();
  if (later) check_later_shape(verdict, original);
  const json::Value shaped = usual_shape(job);
  const auto& spec = json::at(shaped, "spec");
  known_fields(verdict,
               spec,
               "spec",
               {"worker", "mca", "ssh", "mpiHome", "runPolicy", "runMode", "scheduler"});
  check_worker(verdict, spec, later);
  warn_shared_memory(verdict, spec);
  known_fields(verdict, json::at(spec, "ssh"), "spec.ssh", {"sshdPath", "sshAuthMountPath"});
  if (const auto& path = json::at(spec, "ssh", "sshdPath");
      path.is_string() && !json::as_string(path).starts_with('/')) {
    verdict.invalid(
        "spec.ssh.sshdPath", path, "must be an absolute path: sshd does not start otherwise");
  }
  known_fields(verdict, json::at(spec, "runPolicy"), "spec.runPolicy", {"cleanUpWorkers"});
  known_fields(verdict, json::at(spec, "runMode"), "spec.runMode", {"debug", "pause"});
  known_fields(verdict,
               json::at(spec, "runMode", "debug"),
               "spec.runMode.debug",
               {"enabled", "replicaSpecs"});
  known_fields(verdict,
               json::at(spec, "runMode", "pause"),
               "spec.runMode.pause",
               {"enabled", "resumeSpecs"});
  check_replica_list(verdict,
                     json::at(spec, "runMode", "debug", "replicaSpecs"),
                     "spec.runMode.debug.replicaSpecs",
                     {"type", "skipInitContainer", "command"});
  check_replica_list(verdict,
                     json::at(spec, "runMode", "pause", "resumeSpecs"),
                     "spec.runMode.pause.resumeSpecs",
                     {"type", "skipInitContainer", "command", "args"});
  known_fields(verdict, json::at(spec, "scheduler"), "spec.scheduler", {"t9kScheduler"});
  if (const auto& scheduler = json::at(spec, "scheduler", "t9kScheduler"); scheduler.is_object()) {
    known_fields(verdict, scheduler, "spec.scheduler.t9kScheduler", {"queue", "priority"});
    if (json::string_at(scheduler, "queue").empty())
      verdict.required("spec.scheduler.t9kScheduler.queue", "must name a queue");
    const auto& priority = json::at(scheduler, "priority");
    if (priority.is_number() && (json::as_int(priority) < 0 || json::as_int(priority) > 100)) {
      verdict.invalid(
          "spec.scheduler.t9kScheduler.priority", priority, "must be between 0 and 100, inclusive");
    }
  }
  if (old_job != nullptr) check_update(verdict, json::at(job, "spec"), json::at(*old_job, "spec"));
  return verdict;
}

}  // namespace muster::controllers::t9k
