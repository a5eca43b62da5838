/// What a record says of its job: read off the job's object and one of its pods.
#include <fmt/core.h>

#include <algorithm>

#include "answers/records/tracker.h"
#include "engine/model/history.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::answers {
namespace {

namespace names = kube::names;
using json::at;

std::string hash_text(std::string_view text) {
  std::uint64_t hash = 14'695'981'039'346'656'037ULL;  // FNV-1a
  for (const unsigned char c : text) hash = (hash ^ c) * 1'099'511'628'211ULL;
  return fmt::format("{:016x}", hash);
}

/// The first container of a pod, or of the first template of a job.
const json::Value& first_container(const json::Value& object) {
  const json::Value& spec = at(object, "spec");
  if (const json::Array& own = json::array_at(spec, "containers"); !own.empty()) return own[0];
  const auto of = [](const json::Value& pod_template) -> const json::Value& {
    const json::Array& list = json::array_at(pod_template, "spec", "containers");
    return list.empty() ? json::null_value() : list[0];
  };
  for (const auto& [field, roles] : json::as_object(spec)) {
    if (!field.ends_with("ReplicaSpecs")) continue;
    for (const auto& [role, value] : json::as_object(roles)) {
      if (const json::Value& found = of(at(value, "template")); found.is_object()) return found;
    }
  }
  for (const char* list : {"tasks", "taskRoles"}) {
    for (const json::Value& task : json::array_at(spec, list)) {
      const json::Value& own = at(task, "task", "pod");
      if (const json::Value& found = of(own.is_object() ? own : at(task, "template"));
          found.is_object())
        return found;
    }
  }
  for (const char* role : {"worker", "launcher"}) {
    if (const json::Value& found = of(at(spec, role, "template")); found.is_object()) return found;
  }
  return of(at(spec, "template"));
}

/// What the scheduler reads off a pod for the engine.
void note_origin(Record& record, const json::Value& pod) {
  const JobFacts facts = job_facts(JobKind::kPod, pod);
  record.pods_user = facts.user.empty() ? facts.ns : facts.user;
  if (record.pods_user == record.user) record.pods_user.clear();
  const json::Array& owners = json::array_at(pod, "metadata", "ownerReferences");
  record.pods_stem =
      engine::stem_of(owners.empty() ? kube::name_of(pod) : json::string_at(owners[0], "name"));
  if (record.pods_stem == record.stem) record.pods_stem.clear();
}

}  // namespace

void Tracker::describe(Tracked& job) {
  if (job.described) return;
  const kube::ObjectPtr pod = job.held.empty() ? nullptr : job.held.begin()->second.pod;
  const json::Value* object = job.object ? job.object.get() : pod ? pod.get() : nullptr;
  if (object == nullptr) return;
  Record& record = job.record;
  const JobFacts facts = job_facts(job.object ? job.kind : JobKind::kPod, *object);
  record.uid = job.uid.empty() ? facts.uid : job.uid;
  record.ns = facts.ns;
  record.kind = job.key.substr(facts.ns.size() + 1);
  record.kind = record.kind.substr(0, record.kind.find('/'));
  record.job = job.object ? facts.name : job.key.substr(job.key.rfind('/') + 1);
  record.user = facts.user.empty() ? facts.ns : facts.user;
  record.vc = facts.vc;
  record.queue = facts.queue;
  record.priority = facts.prio_class;
  record.stem = engine::stem_of(record.job);
  record.submitted = whole_seconds(Time{facts.submitted * 1000});
  record.tasks = std::max<std::int64_t>(facts.tasks, static_cast<std::int64_t>(job.held.size()));
  record.milli = std::int64_t{1000} * facts.gpus;
  if (facts.gpus == 0 || facts.kind == JobKind::kPodGroup || facts.kind == JobKind::kPod)
    record.milli = std::max({record.milli, job.milli, job.object ? gpu_milli_of_pod(*object) : 0});
  const json::Value& source = pod ? *pod : *object;
  if (pod) {
    if (record.queue.empty()) record.queue = kube::annotation(*pod, names::volcano::kQueueName);
    if (record.priority.empty()) record.priority = json::text_at(*pod, "spec", "priorityClassName");
    note_origin(record, *pod);
    if (record.model.empty()) {
      record.model = kube::annotation(*pod, names::kGpuModel);
      record.model_asked = !record.model.empty();
    }
    if (record.model.empty() && asks_.model_of)
      record.model = asks_.model_of(json::text_at(*pod, "spec", "nodeName"));
  }
  if (record.queue.empty()) record.queue = "default";
  const json::Value& container = first_container(source);
  record.image = json::text_at(container, "image");
  if (const json::Value& command = at(container, "command"); command.is_array())
    record.command = hash_text(json::dump(command) + json::dump(at(container, "args")));
  std::string_view declared = kube::annotation(*object, names::kExpectedDuration);
  if (declared.empty()) declared = kube::annotation(source, names::kExpectedDuration);
  if (const auto lasts = parse_duration(declared); !declared.empty() && lasts)
    record.declared = *lasts;
  // Without a task its model and priority are not known yet.
  job.described = pod != nullptr;
}

}  // namespace muster::answers
