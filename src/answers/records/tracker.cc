/// One piece: each change of an object may begin a run, end it, or end the job, and they follow from
/// each other.
#include "answers/records/tracker.h"

#include <fmt/core.h>

#include <algorithm>

#include "answers/jobs/followed.h"
#include "base/strings.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::answers {
namespace {

namespace names = kube::names;
using json::at;

std::string pod_key_of(const json::Value& pod) {
  return std::string(kube::namespace_of(pod)) + "/" + std::string(kube::name_of(pod));
}

bool is_terminal(const json::Value& pod) {
  const std::string_view phase = json::string_at(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed";
}
bool is_bound(const json::Value& pod) { return !json::string_at(pod, "spec", "nodeName").empty(); }

/// When the pod got its node, by the API server's time.
Time bound_at(const json::Value& pod, Time otherwise) {
  const json::Value& scheduled = kube::condition(pod, "PodScheduled");
  if (json::string_at(scheduled, "status") == "True") {
    if (const auto time = parse_time(json::string_at(scheduled, "lastTransitionTime")); time)
      return whole_seconds(*time);
  }
  const Time created = kube::creation_time(pod);
  return whole_seconds(created ? std::max(created, Time{}) : otherwise);
}

/// When its last container ended; `otherwise` when none of them says so.
Time ended_at(const json::Value& pod, Time otherwise) {
  Time last;
  for (const json::Value& status : json::array_at(pod, "status", "containerStatuses")) {
    const auto time = parse_time(json::string_at(status, "state", "terminated", "finishedAt"));
    if (time) last = std::max(last, *time);
  }
  return whole_seconds(last ? last : otherwise);
}

/// Whether a change of the object can begin or end anything.
bool says_the_same(const json::Value& before, const json::Value& after) {
  const auto same = [&](auto... path) {
    return json::equal(at(before, path...), at(after, path...));
  };
  return same("metadata", "uid") && same("metadata", "deletionTimestamp") &&
         same("status", "conditions") && same("status", "state") && same("status", "phase") &&
         same("status", "completionTime") && same("status", "launcherStatus") &&
         same("spec", "executionType");
}

}  // namespace

// ----------------------------------------------------------------------------------- whose it is

/// A name that comes back with another uid is another job.
Tracked& Tracker::job_at(const std::string& key, const std::string& uid) {
  std::unique_ptr<Tracked>& slot = jobs_[key];
  if (slot && !uid.empty() && !slot->uid.empty() && slot->uid != uid) {
    if (slot->held.empty()) {
      unname(*slot);
    } else {
      const std::string old = slot->uid;
      leaving_[old] = std::move(slot);
    }
    slot = nullptr;
  }
  if (!slot) {
    slot = std::make_unique<Tracked>();
    slot->key = key;
  }
  if (slot->uid.empty() && !uid.empty()) {
    name(*slot, uid);
    if (const auto found = restored_.find(uid); found != restored_.end()) {
      slot->record = std::move(found->second);
      slot->noted = slot->stored = true;
      restored_.erase(found);
    }
  }
  return *slot;
}

void Tracker::name(Tracked& job, const std::string& uid) {
  job.uid = uid;
  by_uid_.insert_or_assign(job.uid, &job);
}

void Tracker::unname(const Tracked& job) {
  const auto found = by_uid_.find(job.uid);
  if (found != by_uid_.end() && found->second == &job) by_uid_.erase(found);
}

/// As the portal's index: empty when it is nobody's job.
std::string Tracker::key_of_pod(const json::Value& pod) const {
  const std::string_view ns = kube::namespace_of(pod);
  if (const std::string_view name = kube::label(pod, names::framework::kFrameworkName);
      !name.empty())
    return job_id(ns, JobKind::kOpenPai, name);
  if (std::string key = key_of_owner(pod); !key.empty()) {
    const auto above = parents_.find(key);
    return above == parents_.end() ? key : above->second;
  }
  const kube::OwnerReference owner = kube::controller_of(pod);
  if (owner.kind == "StatefulSet") {
    const std::string_view job = kube::label(pod, names::kubeflow::kMpiJobName);
    if (!job.empty()) return job_id(ns, JobKind::kMpiJob, job);
  }
  if (owner.uid.empty()) {
    if (const std::string_view group = group_of_pod(pod); !group.empty()) {
      const auto found = groups_.find(std::string(ns) + "/" + std::string(group));
      if (found != groups_.end()) return found->second;
      return job_id(ns, JobKind::kPodGroup, group);
    }
    return job_id(ns, JobKind::kPod, kube::name_of(pod));
  }
  return gpu_milli_of_pod(pod) > 0 ? job_id(ns, JobKind::kPod, kube::name_of(pod)) : "";
}

Tracked& Tracker::job_of(const json::Value& pod) {
  const std::string key = key_of_pod(pod);
  const bool itself = key == job_id(kube::namespace_of(pod), JobKind::kPod, kube::name_of(pod));
  Tracked& job = job_at(key, itself ? std::string(kube::uid_of(pod)) : "");
  // A task of an older job of this name, which has yet to leave.
  const kube::OwnerReference owner = kube::controller_of(pod);
  if (const auto old = leaving_.find(owner.uid); !itself && old != leaving_.end())
    return *old->second;
  return job;
}

// ------------------------------------------------------------------------------- what is seen

void Tracker::job_changed(JobKind kind,
                          const kube::ObjectPtr& before,
                          const kube::ObjectPtr& after,
                          Time now) {
  if (before && after && says_the_same(*before, *after)) {
    // The newest picture is kept: what it says of itself is read when it is written.
    const auto found = jobs_.find(job_id(kube::namespace_of(*after), kind, kube::name_of(*after)));
    if (found != jobs_.end()) found->second->object = after;
    return;
  }
  const json::Value& object = after ? *after : *before;
  const std::string key = job_id(kube::namespace_of(object), kind, kube::name_of(object));
  if (kind == JobKind::kJob) {
    if (const std::string above = key_of_owner(object); !above.empty()) {
      if (after)
        parents_[key] = above;
      else
        parents_.erase(key);
      return;
    }
  }
  const std::string uid(kube::uid_of(object));
  if (!after) {
    const auto found = jobs_.find(key);
    if (found == jobs_.end() || found->second->uid != uid) return;
    found->second->deleted = true;
    look_for_end(*found->second, now);
    forget_if_nothing(*found->second);
    return;
  }
  Tracked& job = job_at(key, uid);
  job.kind = kind;
  job.object = after;
  const JobFacts facts = job_facts(kind, object);
  const bool final = facts.final_state && *facts.final_state != JobState::kStopping &&
                     *facts.final_state != JobState::kSuspended;
  job.final_state = final ? facts.final_state : std::nullopt;
  job.final_at = whole_seconds(Time{facts.ended * 1000});
  if (final && facts.has_exit) {
    job.record.has_exit = true;
    job.record.exit = facts.exit_code;
    job.record.exit_phrase = facts.exit_phrase;
  }
  if (facts.suspended && job.noted && job.held.empty() && !job.record.over()) {
    job.record.state = "SUSPENDED";
    stop_waiting(job, now);
  }
  look_for_end(job, now);
}

void Tracker::group_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after, Time now) {
  const json::Value& object = after ? *after : *before;
  const std::string name = pod_key_of(object);
  std::string key = key_of_owner(object);
  const bool own = key.empty() && kube::controller_of(object).kind != "Pod";
  if (own) key = job_id(kube::namespace_of(object), JobKind::kPodGroup, kube::name_of(object));
  if (key.empty())
    key = job_id(kube::namespace_of(object), JobKind::kPod, kube::controller_of(object).name);
  if (after)
    groups_[name] = key;
  else
    groups_.erase(name);
  if (!own) return;
  if (after) {
    Tracked& job = job_at(key, std::string(kube::uid_of(object)));
    job.kind = JobKind::kPodGroup;
    job.object = after;
    return;
  }
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || found->second->uid != kube::uid_of(object)) return;
  found->second->deleted = true;
  look_for_end(*found->second, now);
  forget_if_nothing(*found->second);
}

void Tracker::pod_changed(const kube::ObjectPtr& before, const kube::ObjectPtr& after, Time now) {
  const json::Value& pod = after ? *after : *before;
  const std::string key = pod_key_of(pod);
  const auto holder = holders_.find(key);
  if (holder != holders_.end()) {
    const json::Value& known = *holder->second->held[key].pod;
    // A watch that was begun anew may show the next pod of the name first.
    if (!after || kube::uid_of(known) != kube::uid_of(pod) || is_terminal(pod)) {
      release(key, after && kube::uid_of(known) == kube::uid_of(pod) ? *after : known, !after, now);
      if (!after || is_terminal(pod)) return;
    } else {
      holder->second->held[key].pod = after;
      // A pod by itself is the job's object: an old state of it would stay in memory beside this.
      if (holder->second->uid == kube::uid_of(pod)) holder->second->object = after;
      return;
    }
  }
  if (!after) {
    // One that never ran, or ended before it was deleted: a pod by itself goes with its object.
    const auto found = jobs_.find(key_of_pod(pod));
    if (found == jobs_.end() || found->second->uid != kube::uid_of(pod)) return;
    found->second->deleted = true;
    look_for_end(*found->second, now);
    forget_if_nothing(*found->second);
    return;
  }
  if (!is_bound(pod)) return;
  const bool first_seen = !before || !is_bound(*before);
  if (!first_seen) return;
  if (key_of_pod(pod).empty()) return;
  if (is_terminal(pod)) {
    Tracked& job = job_of(pod);
    const Time since = bound_at(pod, now), end = ended_at(pod, now);
    if (counted(job, since, end)) return;
    if (!job.record.over() || !asks_.is_kept || !asks_.is_kept(job.uid)) {
      bind(job, after, now);
      release(key, pod, false, now);
    }
    return;
  }
  Tracked& job = job_of(pod);
  if (!before && counted(job, bound_at(pod, now), Time{})) return;
  bind(job, after, now);
}

bool Tracker::counted(const Tracked& job, Time since, Time end) {
  const std::vector<Run>& runs = job.record.runs;
  if (!runs.empty() && !runs.back().end && since >= runs.back().start) {
    return std::any_of(runs.back().parts.begin(), runs.back().parts.end(), [&](const Part& part) {
      return end && part.start == since && part.end == end;
    });
  }
  return std::any_of(runs.begin(), runs.end(), [&](const Run& run) {
    return run.end && run.start <= since && since <= run.end;
  });
}

// ------------------------------------------------------------------------------ begin and end

void Tracker::bind(Tracked& job, const kube::ObjectPtr& pod, Time now) {
  const std::string key = pod_key_of(*pod);
  Tracked::Held held{pod, bound_at(*pod, now), gpu_milli_of_pod(*pod)};
  Record& record = job.record;
  const bool itself =
      job.key == job_id(kube::namespace_of(*pod), JobKind::kPod, kube::name_of(*pod));
  if (itself) {
    job.object = pod;
    job.kind = JobKind::kPod;
  }
  if (record.runs.empty() || record.runs.back().end) {
    Run& run = record.runs.emplace_back();
    run.start = held.since;
    job.failed = job.succeeded = job.evicted = job.lost = job.gone = 0;
    job.preemptor.clear();
    if (job.record.over()) job.record.ended = {};
  }
  Run& run = record.runs.back();
  run.start = std::min(run.start, held.since);
  job.milli += held.milli;
  run.milli = std::max(run.milli, job.milli);
  const std::string node = json::text_at(*pod, "spec", "nodeName");
  if (run.nodes.size() < Record::kNodesMax && (run.nodes.empty() || run.nodes.back() != node) &&
      std::find(run.nodes.begin(), run.nodes.end(), node) == run.nodes.end())
    run.nodes.push_back(node);
  if (!kube::annotation(*pod, names::hived::kSchedulingSpec).empty())
    run.opportunistic = task_facts(*pod).opportunistic;
  job.held.insert_or_assign(key, std::move(held));
  holders_[key] = &job;
  record.state = "RUNNING";
  job.noted = true;
  stop_waiting(job, now);
  if (job.held.size() == 1 && asks_.began) asks_.began(job);
  if (job.stored && job.held.size() == 1 && asks_.due) asks_.due(job);
}

void Tracker::count_end(Tracked& job, const json::Value& pod, bool vanished) {
  const std::string key = pod_key_of(pod);
  const json::Value& target = kube::condition(pod, "DisruptionTarget");
  const std::string_view why =
      json::string_at(target, "status") == "True" ? json::string_at(target, "reason") : "";
  const auto preemptor = preemptors_.find(key);
  if (preemptor != preemptors_.end() || why == "PreemptionByScheduler") {
    ++job.evicted;
    if (preemptor != preemptors_.end()) {
      job.preemptor = preemptor->second;
      preemptors_.erase(preemptor);
    }
  } else if (why == "DeletionByTaintManager" || why == "DeletionByPodGC" ||
             json::string_at(pod, "status", "reason") == "NodeLost") {
    ++job.lost;
  } else if (json::string_at(pod, "status", "phase") == "Succeeded") {
    ++job.succeeded;
  } else if (json::string_at(pod, "status", "phase") == "Failed") {
    ++job.failed;
    if (!job.record.has_exit) {
      const TaskFacts facts = task_facts(pod);
      job.record.has_exit = facts.has_exit;
      job.record.exit = facts.exit_code;
      job.record.exit_phrase = facts.exit_phrase.empty() ? facts.reason : facts.exit_phrase;
    }
  } else if (vanished) {
    ++job.gone;
  }
}

void Tracker::release(const std::string& pod_key,
                      const json::Value& last,
                      bool vanished,
                      Time now) {
  const auto holder = holders_.find(pod_key);
  if (holder == holders_.end()) return;
  Tracked& job = *holder->second;
  holders_.erase(holder);
  describe(job);  // while a task is there to be asked
  auto node = job.held.extract(pod_key);
  const Tracked::Held& held = node.mapped();
  job.milli -= held.milli;
  Time end = is_terminal(last) ? ended_at(last, now) : whole_seconds(now);
  end = std::max(end, held.since);
  Run& run = job.record.runs.back();
  const auto same = std::find_if(run.parts.begin(), run.parts.end(), [&](const Part& part) {
    return part.start == held.since && part.end == end;
  });
  if (same != run.parts.end())
    same->milli += held.milli;
  else
    run.parts.push_back({held.since, end, held.milli});
  count_end(job, last, vanished);
  if (!job.held.empty()) return;
  Time over = run.start;
  for (const Part& part : run.parts) over = std::max(over, part.end);
  close_run(job, over);
  // A pod by itself goes with its object.
  if (vanished && job.kind == JobKind::kPod && job.uid == kube::uid_of(last)) job.deleted = true;
  look_for_end(job, now);
  if (!job.record.over() && asks_.due) asks_.due(job);  // its pods may be gone a moment later
  forget_if_nothing(job);
}

void Tracker::close_run(Tracked& job, Time end) {
  Run& run = job.record.runs.back();
  run.end = end;
  run.how = job.evicted > 0                      ? "evicted"
            : job.lost > 0                       ? "lost"
            : job.failed > 0                     ? "failed"
            : job.gone > 0 && job.succeeded == 0 ? "stopped"
                                                 : "succeeded";
  run.by = job.preemptor;
  job.record.state = "WAITING";
}

void Tracker::look_for_end(Tracked& job, Time now) {
  if (!job.held.empty() || job.record.over()) return;
  const std::vector<Run>& runs = job.record.runs;
  const bool ran = !runs.empty() && runs.back().end;
  if (job.final_state) {
    // A job whose end was kept before this process began has no record here any more.
    const bool kept = !job.noted && asks_.is_kept && asks_.is_kept(job.uid);
    const Time end = job.final_at ? job.final_at : ran ? runs.back().end : whole_seconds(now);
    if (!kept && ran) close(job, std::string(state_name(*job.final_state)), end);
    if (!kept && !ran && job.noted) close(job, std::string(state_name(*job.final_state)), end);
    return;
  }
  const bool alone = job.kind == JobKind::kPod || job.kind == JobKind::kPodGroup;
  if (alone && ran && (!job.deleted || job.kind == JobKind::kPod)) {
    const std::string how = runs.back().how;  // close() may say it in other words
    if (how == "succeeded") close(job, "SUCCEEDED", runs.back().end);
    if (how == "failed") close(job, "FAILED", runs.back().end);
    // A pod is gone for good; a group may get new ones.
    if (how != "succeeded" && how != "failed" && job.kind == JobKind::kPod)
      close(job, how == "stopped" ? "STOPPED" : "FAILED", runs.back().end);
  } else if (job.deleted && job.noted) {
    close(job, "STOPPED", whole_seconds(now));
  }
}

void Tracker::close(Tracked& job, std::string state, Time end) {
  describe(job);
  Record& record = job.record;
  if (!record.runs.empty()) end = std::max(end, record.runs.back().end);
  stop_waiting(job, end);
  record.state = std::move(state);
  record.ended = end;
  if (!record.runs.empty() && record.runs.back().how != "evicted" &&
      record.runs.back().how != "lost")
    record.runs.back().how = to_lower(record.state);
  if (record.state == "SUCCEEDED") {
    record.has_exit = true;
    record.exit = 0;
    record.exit_phrase.clear();
  }
  if (asks_.due) asks_.due(job);
}

void Tracker::stop_waiting(Tracked& job, Time at) {
  std::vector<Waited>& waits = job.record.waits;
  if (!waits.empty() && !waits.back().to)
    waits.back().to = std::max(waits.back().from, whole_seconds(at));
}

/// Jobs that left nothing to keep, or whose record is closed and whose object is gone.
void Tracker::forget_if_nothing(Tracked& job) {
  if (!job.deleted || !job.held.empty()) return;
  if (job.noted && !job.record.over()) return;
  // Either map may own it: nothing is asked of it once it is taken out.
  const auto found = jobs_.find(job.key);
  if (found != jobs_.end() && found->second.get() == &job) {
    unname(job);
    jobs_.erase(found);
  } else if (const auto old = leaving_.find(job.uid); old != leaving_.end()) {
    unname(*old->second);
    leaving_.erase(old);
  }
}

// ---------------------------------------------------------------------------- what others tell

void Tracker::waits(const kube::ObjectPtr& pod, const std::string& group, Waited wait) {
  Tracked* job = nullptr;
  if (pod && !key_of_pod(*pod).empty()) {
    job = &job_of(*pod);
    if (!job->object && job->kind == JobKind::kPod && job->uid == kube::uid_of(*pod))
      job->object = pod;
  } else if (const auto found = groups_.find(group); found != groups_.end()) {
    const auto known = jobs_.find(found->second);
    if (known != jobs_.end()) job = known->second.get();
  }
  if (job == nullptr || !job->held.empty() || job->record.over()) return;
  wait.from = whole_seconds(wait.from);
  std::vector<Waited>& waits = job->record.waits;
  if (!waits.empty() && !waits.back().to && waits.back().reason == wait.reason &&
      waits.back().subject == wait.subject) {
    waits.back().text = std::move(wait.text);
    return;
  }
  stop_waiting(*job, wait.from);
  if (waits.size() >= Record::kWaitsMax) waits.erase(waits.begin() + 1);
  waits.push_back(std::move(wait));
  describe(*job);
  job->record.state = "WAITING";
  const bool first = !job->noted || !job->stored;
  job->noted = true;
  if (first && asks_.due) asks_.due(*job);
}

void Tracker::evicting(const std::string& pod_key, const std::string& for_whom) {
  if (holders_.contains(pod_key)) preemptors_[pod_key] = for_whom;
}

bool Tracker::said(const std::string& key, Foretold said) {
  const auto found = jobs_.find(key);
  if (found == jobs_.end() || !found->second->noted) return false;
  std::vector<Foretold>& list = found->second->record.said;
  if (list.size() >= Record::kSaidMax) list.erase(list.begin() + 1);
  list.push_back(std::move(said));
  return true;
}

void Tracker::restore(Record record) {
  for (Run& run : record.runs) {
    // What was held still is counted from the pods that hold it.
    std::erase_if(run.parts, [](const Part& part) { return !part.end; });
  }
  restored_[record.uid] = std::move(record);
}

void Tracker::settled(Time now) {
  for (auto& [uid, record] : restored_) {
    if (record.over()) continue;
    const std::string key = fmt::format("{}/{}/{}~{}", record.ns, record.kind, record.job, uid);
    Tracked& job = *(jobs_[key] = std::make_unique<Tracked>());
    job.key = key;
    name(job, uid);
    job.record = std::move(record);
    job.noted = job.stored = job.described = job.deleted = true;
    std::vector<Run>& runs = job.record.runs;
    if (!runs.empty() && !runs.back().end) {
      // Nobody saw when its tasks went: no later than now.
      runs.back().end = whole_seconds(now);
      runs.back().how = "lost";
    }
    close(job, "STOPPED", whole_seconds(now));
  }
  restored_.clear();
  std::vector<std::string> over;
  for (const auto& [key, job] : jobs_) {
    if (job->deleted && job->record.over()) over.push_back(key);
  }
  for (const std::string& key : over) {
    const auto found = jobs_.find(key);
    unname(*found->second);
    jobs_.erase(found);
  }
  // A job that kept nothing of its open run: its pods have gone.
  for (auto& [key, job] : jobs_) {
    std::vector<Run>& runs = job->record.runs;
    if (!job->held.empty() || runs.empty() || runs.back().end) continue;
    Time end = runs.back().start;
    for (const Part& part : runs.back().parts) end = std::max(end, part.end);
    close_run(*job, end);
    look_for_end(*job, now);
    if (!job->record.over() && asks_.due) asks_.due(*job);
  }
}

// ------------------------------------------------------------------------------------- questions

Record Tracker::now_of(Tracked& job) {
  describe(job);
  Record record = job.record;
  if (job.held.empty()) return record;
  std::vector<Part>& parts = record.runs.back().parts;
  for (const auto& [key, held] : job.held) {
    const auto same = std::find_if(parts.begin(), parts.end(), [&](const Part& part) {
      return !part.end && part.start == held.since;
    });
    if (same != parts.end())
      same->milli += held.milli;
    else
      parts.push_back({held.since, Time{}, held.milli});
  }
  return record;
}

void Tracker::each(const std::function<void(Tracked&)>& call) {
  for (auto& [key, job] : jobs_) {
    if (job->noted) call(*job);
  }
  for (auto& [uid, job] : leaving_) {
    if (job->noted) call(*job);
  }
}

const Tracked* Tracker::find(const std::string& key) const {
  const auto found = jobs_.find(key);
  return found == jobs_.end() ? nullptr : found->second.get();
}
const Tracked* Tracker::of_pod(const std::string& pod_key) const {
  const auto found = holders_.find(pod_key);
  return found == holders_.end() ? nullptr : found->second;
}
std::string Tracker::key_of_group(const std::string& group) const {
  const auto found = groups_.find(group);
  return found == groups_.end() ? "" : found->second;
}
const Tracked* Tracker::of_group(const std::string& group_key) const {
  const auto found = groups_.find(group_key);
  return found == groups_.end() ? nullptr : find(found->second);
}
Tracked* Tracker::find_uid(const std::string& uid) {
  const auto found = by_uid_.find(uid);
  return found == by_uid_.end() ? nullptr : found->second;
}
Tracked* Tracker::find_live(const std::string& key, const std::string& uid) {
  if (const auto found = jobs_.find(key); found != jobs_.end()) {
    const std::string& known = found->second->uid;
    if (known == uid || (known.empty() && key == uid)) return found->second.get();
  }
  const auto found = leaving_.find(uid);
  return found == leaving_.end() ? nullptr : found->second.get();
}

}  // namespace muster::answers
