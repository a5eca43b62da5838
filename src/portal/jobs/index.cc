#include "portal/jobs/index.h"

#include <algorithm>

#include "answers/jobs/followed.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "portal/jobs/rows.h"

namespace muster::portal {
namespace {

/// How long one step may hold the loop, and how soon the next one follows.
constexpr Duration kStep = std::chrono::milliseconds(4);
constexpr Duration kPause = std::chrono::milliseconds(1);
constexpr int kStepRows = 512;
/// Changes are gathered for so long before rows are made anew.
constexpr Duration kGather = std::chrono::milliseconds(40);

}  // namespace

JobIndex::JobIndex(Env& env, client::Informers& informers)
    : env_(env), informers_(informers), became_ready_(env.make_signal()) {
  table_.now = [this] { return env_.now().us / 1000; };
  table_.runs_on = [this](Slot slot, const std::string& node) {
    const Entry* found = at(slot);
    return found != nullptr &&
           std::any_of(found->tasks.begin(), found->tasks.end(), [&](const auto& task) {
             return task.second.node == node;
           });
  };
}

JobIndex::~JobIndex() = default;

void JobIndex::begin() {
  if (begun_) return;
  begun_ = true;
  follow_classes();
  push(JobKind::kPod, nullptr, nullptr);
}

void JobIndex::stop() {
  stopped_ = true;
  timer_.reset();
  became_ready_->notify();
}

Task<void> JobIndex::wait_ready() {
  begin();
  while (!ready_ && !stopped_) co_await became_ready_->wait(std::chrono::milliseconds(100));
}

void JobIndex::follow(const client::Resource& resource, JobKind kind) {
  client::Informer& informer = informers_.get(resource);
  awaited_.push_back(&informer);
  informer.add_handlers(
      {[this, kind](const client::ObjectPtr& old_object, const client::ObjectPtr& new_object) {
         push(kind, old_object, new_object);
       },
       [this] { push(JobKind::kPod, nullptr, nullptr); }});
  informer.start();
}

/// Not among those that are waited for: only jobs without pods want to know.
void JobIndex::follow_classes() {
  client::Informer& classes = informers_.get(client::resources::kPriorityClasses);
  client::InformerHandlers handlers;
  handlers.on_change = [this](const client::ObjectPtr& old_object,
                              const client::ObjectPtr& new_object) {
    const auto found =
        by_class_.find(std::string(kube::name_of(new_object ? *new_object : *old_object)));
    if (found == by_class_.end()) return;
    for (const std::string& key : found->second) mark(key);
    push(JobKind::kPod, nullptr, nullptr);
  };
  classes.add_handlers(std::move(handlers));
  classes.start();
}

std::int32_t JobIndex::class_number(const std::string& key, const Entry& job) {
  // OpenPAI's words for priorities are no names of classes.
  const std::string& name = job.facts.prio_class;
  if (name.empty() || job.facts.kind == JobKind::kOpenPai) return 0;
  if (!job.tasks.empty() || !job.object) {
    if (const auto known = by_class_.find(name); known != by_class_.end()) {
      known->second.erase(key);
      if (known->second.empty()) by_class_.erase(known);
    }
    return 0;
  }
  by_class_[name].insert(key);
  const auto found = informers_.get(client::resources::kPriorityClasses).find(name);
  return found ? static_cast<std::int32_t>(json::int_at(*found, "value")) : 0;
}

/// Both objects null: only a wake-up.
void JobIndex::push(JobKind kind,
                    const client::ObjectPtr& old_object,
                    const client::ObjectPtr& new_object) {
  if (stopped_) return;
  if (old_object || new_object) changes_.push_back({kind, old_object, new_object});
  if (!timer_) timer_ = env_.after(ready_ ? kGather : kPause, [this] { pump(); });
}

void JobIndex::pump() {
  timer_.reset();
  // One at a time: all there is of a kind that others follow already is told at once.
  if (awaited_.size() < answers::followed_kinds().size()) {
    const answers::Followed& next = answers::followed_kinds()[awaited_.size()];
    follow(next.resource, next.kind);
    timer_ = env_.after(kPause, [this] { pump(); });
    return;
  }
  const Duration begun = env_.monotonic();
  int count = 0;
  const auto enough = [&] {
    ++count;
    return count == kStepRows || (count % 16 == 0 && env_.monotonic() - begun >= kStep);
  };
  bool over = false;
  while (!changes_.empty() && !over) {
    apply(changes_.front());
    changes_.pop_front();
    over = enough();
  }
  while (changes_.empty() && !dirty_.empty() && !over) {
    const std::string key = *dirty_.begin();
    dirty_.erase(dirty_.begin());
    settle(key);
    over = enough();
  }
  if (!changes_.empty() || !dirty_.empty()) {
    timer_ = env_.after(kPause, [this] { pump(); });
    return;
  }
  if (!ready_ && std::all_of(awaited_.begin(), awaited_.end(), [](const client::Informer* one) {
        return one->synced();
      })) {
    ready_ = true;
    became_ready_->notify();
  }
  if (told_ != version_ && on_change) on_change();
  told_ = version_;
}

void JobIndex::apply(const Change& change) {
  if (change.kind == JobKind::kPod)
    apply_pod(change.old_object, change.new_object);
  else if (change.kind == JobKind::kPodGroup)
    apply_group(change.old_object, change.new_object);
  else
    apply_job(change.kind, change.old_object, change.new_object);
}

JobIndex::Entry& JobIndex::entry(const std::string& key) {
  std::unique_ptr<Entry>& slot = entries_[key];
  if (!slot) slot = std::make_unique<Entry>();
  return *slot;
}

void JobIndex::mark(const std::string& key) { dirty_.insert(key); }

void JobIndex::apply_job(JobKind kind,
                         const client::ObjectPtr& old_object,
                         const client::ObjectPtr& new_object) {
  const json::Value& object = new_object ? *new_object : *old_object;
  const std::string key = job_id(kube::namespace_of(object), kind, kube::name_of(object));
  const std::string uid(kube::uid_of(object));
  if (!new_object) {
    by_uid_.erase(uid);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      found->second->object = nullptr;
      mark(key);
    }
    return;
  }
  Entry& job = entry(key);
  job.object = new_object;
  JobFacts facts = job_facts(kind, object);
  if (facts.id != job.facts.id) {
    // Its pods were seen first, under another name.
    for (const auto& [name, task] : job.tasks) {
      if (const auto node = nodes_.find(task.node); node != nodes_.end())
        node->second.version = ++version_;
    }
  }
  job.facts = std::move(facts);
  by_uid_[uid] = key;
  mark(key);
  if (kind == JobKind::kJob && !job.tasks.empty()) {
    if (const std::string above = answers::key_of_owner(object); !above.empty())
      hand_up(job, above);
  }
}

/// Pods that were seen before the Job that says whose they are.
void JobIndex::hand_up(Entry& from, const std::string& key) {
  Entry& to = entry(key);
  const std::string ns = from.facts.ns + "/";
  to.tasks.merge(from.tasks);
  for (auto& [name, task] : to.tasks) {
    job_of_pod_[ns + name] = key;
    by_uid_[task.uid] = key;
    if (const auto node = nodes_.find(task.node); node != nodes_.end()) {
      if (const auto at = node->second.pods.find(ns + name); at != node->second.pods.end()) {
        at->second = {&to, &task};
        node->second.version = ++version_;
      }
    }
  }
  mark(key);
}

std::string JobIndex::owner_key(const json::Value& pod) const {
  const std::string_view ns = kube::namespace_of(pod);
  // Between a Framework and its pods there is an object for each attempt.
  if (const std::string_view name = kube::label(pod, kube::names::framework::kFrameworkName);
      !name.empty())
    return job_id(ns, JobKind::kOpenPai, name);
  const std::string key = answers::key_of_owner(pod);
  if (!key.empty()) {
    const auto found = entries_.find(key);
    if (found != entries_.end() && found->second->object) {
      if (std::string above = answers::key_of_owner(*found->second->object); !above.empty())
        return above;
    }
    return key;
  }
  const kube::OwnerReference owner = kube::controller_of(pod);
  if (owner.kind == "StatefulSet") {
    // MPIJob v1alpha1's workers.
    const std::string_view job = kube::label(pod, kube::names::kubeflow::kMpiJobName);
    if (!job.empty()) return job_id(ns, JobKind::kMpiJob, job);
  }
  if (owner.uid.empty()) {
    if (const std::string_view group = group_of_pod(pod); !group.empty())
      return job_id(ns, JobKind::kPodGroup, group);
    return job_id(ns, JobKind::kPod, kube::name_of(pod));
  }
  // Pods of services are no jobs; those that hold GPUs are shown all the same, or the map would have
  // holders that nobody can look at.
  return gpus_of_pod_spec(json::at(pod, "spec")) > 0 ? job_id(ns, JobKind::kPod, kube::name_of(pod))
                                                     : "";
}

void JobIndex::apply_group(const client::ObjectPtr& old_object,
                           const client::ObjectPtr& new_object) {
  const json::Value& object = new_object ? *new_object : *old_object;
  std::string key = answers::key_of_owner(object);
  const bool bare = key.empty();
  if (bare) {
    const kube::OwnerReference owner = kube::controller_of(object);
    // Groups that the scheduler makes for single pods belong to those.
    if (owner.kind == "Pod")
      key = job_id(kube::namespace_of(object), JobKind::kPod, owner.name);
    else
      key = job_id(kube::namespace_of(object), JobKind::kPodGroup, kube::name_of(object));
    if (owner.kind != "Pod") {
      Entry& gang = entry(key);
      gang.object = new_object;
      if (new_object) gang.facts = job_facts(JobKind::kPodGroup, object);
    }
  }
  entry(key).group = new_object;
  if (new_object) {
    by_uid_[std::string(kube::uid_of(object))] = key;
    job_of_group_[client::key_of(object)] = key;
  } else {
    by_uid_.erase(std::string(kube::uid_of(object)));
    job_of_group_.erase(client::key_of(object));
  }
  mark(key);
}

void JobIndex::Node::let_go(const TaskFacts& task, Millis at) {
  for (const std::int16_t device : task.devices) {
    const auto index = static_cast<std::size_t>(device);
    if (freed.size() <= index) freed.resize(index + 1);
    freed[index] = std::max(freed[index], at);
  }
}

void JobIndex::take_off(const std::string& node, const std::string& pod_key) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  const auto pod = found->second.pods.find(pod_key);
  if (pod == found->second.pods.end()) return;
  found->second.let_go(*pod->second.task, env_.now().us / 1000);
  found->second.pods.erase(pod);
  found->second.version = ++version_;
}

void JobIndex::drop_task(const std::string& pod_key) {
  const auto found = job_of_pod_.find(pod_key);
  if (found == job_of_pod_.end()) return;
  const std::string key = found->second;
  job_of_pod_.erase(found);
  const auto job = entries_.find(key);
  if (job == entries_.end()) return;
  const std::string name = pod_key.substr(pod_key.find('/') + 1);
  const auto task = job->second->tasks.find(name);
  if (task == job->second->tasks.end()) return;
  take_off(task->second.node, pod_key);
  by_uid_.erase(task->second.uid);
  warnings_.erase(task->second.uid);
  std::optional<TaskFacts>& broken = job->second->broken;
  if (task->second.state == TaskState::kFailed && task->second.has_exit &&
      (!broken || task->second.ended < broken->ended))
    broken = task->second;
  // A pod that is a job of its own: with the pod the job is gone.
  if (job->second->object && kube::uid_of(*job->second->object) == task->second.uid)
    job->second->object = nullptr;
  job->second->tasks.erase(task);
  mark(key);
}

void JobIndex::read_warning(TaskFacts& task) const {
  if (task.state != TaskState::kStarting || !task.reason.empty()) return;
  const auto found = warnings_.find(task.uid);
  // What was wrong before it had a node is over.
  if (found != warnings_.end() && found->second.at >= task.scheduled)
    task.reason = found->second.text;
}

void JobIndex::warn(Warning warning) {
  if (warnings_.size() >= kWarningsMax) warnings_.clear();
  const std::string uid = warning.uid;
  Warning& newest = warnings_[uid];
  if (newest.at > warning.at) return;
  newest = std::move(warning);
  const auto key = by_uid_.find(uid);
  const auto job = key == by_uid_.end() ? entries_.end() : entries_.find(key->second);
  if (job == entries_.end()) return;
  for (auto& [name, task] : job->second->tasks) {
    if (task.uid != uid) continue;
    const std::string before = task.reason;
    read_warning(task);
    if (task.reason == before) continue;
    task.version = ++version_;
    mark(key->second);
    push(JobKind::kPod, nullptr, nullptr);
  }
}

void JobIndex::apply_pod(const client::ObjectPtr& old_object, const client::ObjectPtr& new_object) {
  const std::string pod_key = client::key_of(new_object ? *new_object : *old_object);
  if (!new_object) {
    drop_task(pod_key);
    ++version_;
    return;
  }
  const std::string key = owner_key(*new_object);
  const auto known = job_of_pod_.find(pod_key);
  if (known != job_of_pod_.end() && known->second != key) drop_task(pod_key);
  if (key.empty()) return;
  Entry& job = entry(key);
  TaskFacts facts = task_facts(*new_object);
  facts.version = ++version_;
  if (facts.state == TaskState::kStarting)
    read_warning(facts);
  else if (facts.state != TaskState::kWaiting)
    warnings_.erase(facts.uid);
  if (key.ends_with("/" + facts.pod) && kube::controller_of(*new_object).uid.empty() &&
      group_of_pod(*new_object).empty()) {
    job.object = new_object;
    job.facts = job_facts(JobKind::kPod, *new_object);
  } else if (!job.object && job.facts.name.empty()) {
    // Its job has not been seen, or is gone already.
    job.facts.kind =
        kube::controller_of(*new_object).uid.empty() ? JobKind::kPodGroup : JobKind::kPod;
    job.facts.name = key.substr(key.rfind('/') + 1);
    job.facts.ns = kube::namespace_of(*new_object);
    job.facts.id = key;
    job.facts.submitted = facts.created;
  }
  TaskFacts& task = job.tasks[facts.pod];
  if (task.node != facts.node) take_off(task.node, pod_key);
  by_uid_[facts.uid] = key;
  task = std::move(facts);
  const bool holds = task.state != TaskState::kSucceeded && task.state != TaskState::kFailed;
  if (!task.node.empty() && holds) {
    Node& node = nodes_[task.node];
    node.pods[pod_key] = {&job, &task};
    node.version = version_;
  }
  if (!holds) {
    take_off(task.node, pod_key);
    // Also of what had ended before this was read.
    if (!task.node.empty()) nodes_[task.node].let_go(task, task.ended);
  }
  job_of_pod_[pod_key] = key;
  mark(key);
}

/// A Job whose owner is a job of its own has no row; nor has what nothing is left of.
bool JobIndex::belongs_elsewhere(const Entry& entry) const {
  return entry.object && entry.facts.kind == JobKind::kJob &&
         !answers::key_of_owner(*entry.object).empty();
}

void JobIndex::settle(const std::string& key) {
  const auto found = entries_.find(key);
  if (found == entries_.end()) return;
  Entry& job = *found->second;
  job.version = ++version_;
  const bool gone = !job.object && job.tasks.empty();
  const std::int32_t number = class_number(key, job);
  // A bare group without pods of its own is told of by its job, or by nobody yet.
  const bool shown = !gone && !belongs_elsewhere(job) && !job.facts.name.empty();
  if (!shown) {
    if (job.shown) {
      table_.remove(job.slot);
      by_slot_[job.slot] = nullptr;
      by_id_.erase(job.facts.id);
      job.shown = false;
    }
    if (gone) entries_.erase(found);
    return;
  }
  JobFacts with_exit;
  const JobFacts* facts = &job.facts;
  if (job.broken && !job.facts.has_exit && job.facts.final_state == State::kFailed) {
    with_exit = job.facts;
    with_exit.has_exit = true;
    with_exit.exit_code = job.broken->exit_code;
    with_exit.exit_phrase = job.broken->exit_phrase;
    facts = &with_exit;
  }
  RowParts parts = make_row({.facts = *facts,
                             .object = job.object.get(),
                             .group = job.group.get(),
                             .tasks = job.tasks,
                             .class_number = number},
                            table_.words());
  if (!job.shown) {
    job.slot = table_.add(parts.keys, std::move(parts.texts));
    job.shown = true;
    by_id_[job.facts.id] = key;
    if (by_slot_.size() <= job.slot) by_slot_.resize(job.slot + 1);
    by_slot_[job.slot] = &job;
  } else {
    if (table_.texts(job.slot).id != job.facts.id) {
      by_id_.erase(table_.texts(job.slot).id);
      by_id_[job.facts.id] = key;
    }
    table_.set(job.slot, parts.keys, std::move(parts.texts));
  }
}

const JobIndex::Entry* JobIndex::at(Slot slot) const {
  return slot < by_slot_.size() ? by_slot_[slot] : nullptr;
}

const JobIndex::Entry* JobIndex::by(const std::unordered_map<std::string, std::string>& keys,
                                    const std::string& word) const {
  const auto key = keys.find(word);
  if (key == keys.end()) return nullptr;
  const auto found = entries_.find(key->second);
  return found == entries_.end() ? nullptr : found->second.get();
}

const JobIndex::Entry* JobIndex::find(const std::string& id) const { return by(by_id_, id); }
const JobIndex::Entry* JobIndex::of_key(const std::string& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() || !found->second->shown ? nullptr : found->second.get();
}
const JobIndex::Entry* JobIndex::of_pod(const std::string& pod_key) const {
  return by(job_of_pod_, pod_key);
}
const JobIndex::Entry* JobIndex::of_group(const std::string& group_key) const {
  return by(job_of_group_, group_key);
}
const JobIndex::Entry* JobIndex::of_uid(const std::string& uid) const { return by(by_uid_, uid); }

const std::map<std::string, JobIndex::OnNode>& JobIndex::on_node(const std::string& node) const {
  static const std::map<std::string, OnNode> kNone;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? kNone : found->second.pods;
}

const std::vector<Millis>& JobIndex::freed(const std::string& node) const {
  static const std::vector<Millis> kNone;
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? kNone : found->second.freed;
}

std::uint64_t JobIndex::node_version(const std::string& node) const {
  const auto found = nodes_.find(node);
  return found == nodes_.end() ? 0 : found->second.version;
}

}  // namespace muster::portal
