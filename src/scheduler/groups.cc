#include "scheduler/groups.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/log.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::scheduler {
namespace {

constexpr Duration kCountDelay = std::chrono::milliseconds(200);
constexpr Duration kQueueDelay = std::chrono::milliseconds(500);
constexpr std::string_view kVolcanosScheduler = "volcano";

Result<void> end_of(const Result<json::Value>& done) {
  if (done) return {};
  return fail(done.error());
}

std::string reason_for(const engine::Refusal& refusal) {
  return refusal.reason == engine::Reason::kNotEnoughMembers ? "NotEnoughTasks"
                                                             : "NotEnoughResources";
}

}  // namespace

void Groups::group_seen(const std::string& key,
                        GroupKind kind,
                        const client::Resource& resource,
                        const client::ObjectPtr& object) {
  Group& group = groups_[key];
  const bool fresh = !group.object || kube::uid_of(*group.object) != kube::uid_of(*object);
  if (fresh) {
    group.phase = json::text_at(*object, "status", "phase");
    group.message.clear();
    group.scheduled = kube::condition_true(*object, "PodGroupInitiallyScheduled");
  }
  group.kind = kind;
  group.resource = resource;
  group.object = object;
  if (fresh) mark(key, kCountDelay);
}

void Groups::group_gone(const std::string& key) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second.object.reset();
  found->second.phase.clear();
  if (found->second.members.empty()) groups_.erase(found);
}

bool Groups::pod_seen(const engine::Pod& pod, const json::Value& object) {
  if (pod.group.empty()) return false;
  Group& group = groups_[pod.group];
  const std::int32_t before = member_priority(group);
  const std::string disagreed = disagreement(group);
  Member& member = members_[pod.key];
  const std::string phase = json::text_at(object, "status", "phase");
  const bool changed =
      member.group != pod.group || member.phase != phase || member.bound != !pod.node.empty();
  tally(member, -1);
  member = {pod.group,
            phase,
            pod.priority,
            !pod.node.empty(),
            !pod.finished,
            std::string(json::as_string(json::at(object, "spec", "preemptionPolicy"),
                                        "PreemptLowerPriority")),
            std::string(json::string_at(object, "spec", "schedulerName"))};
  tally(member, 1);
  group.members.insert(pod.key);
  if (changed) mark(pod.group, kCountDelay);
  return member_priority(group) != before || disagreement(group) != disagreed;
}

void Groups::tally(const Member& member, int sign) {
  if (member.group.empty()) return;
  const auto found = groups_.find(member.group);
  if (found == groups_.end()) return;
  const auto add = [sign](auto& counts, const auto& what) {
    if ((counts[what] += sign) <= 0) counts.erase(what);
  };
  add(found->second.phases, member.phase);
  if (!member.live) return;
  add(found->second.priorities, member.priority);
  add(found->second.policies, member.policy);
  add(found->second.schedulers, member.scheduler);
}

std::string Groups::disagreement(const Group& group) {
  if (group.kind != GroupKind::kNative || !group.object) return "";
  const auto differ = [](const auto& counts) { return counts.size() > 1; };
  if (differ(group.schedulers)) {
    return fmt::format(
        "all pods in a single pod group should have the same .spec.schedulerName set, got: \"{}\" and \"{}\"",
        group.schedulers.begin()->first,
        std::next(group.schedulers.begin())->first);
  }
  const json::Value& spec = json::at(*group.object, "spec");
  const auto own = static_cast<std::int32_t>(json::int_at(spec, "priority"));
  for (const auto& [priority, n] : group.priorities) {
    if (priority != own) {
      return fmt::format(
          "all pods in a single pod group should have the same priority as the pod group's priority, got {} and {}",
          priority,
          own);
    }
  }
  const std::string_view policy = json::string_at(spec, "preemptionPolicy");
  for (const auto& [other, n] : group.policies) {
    if (!policy.empty() && other != policy) {
      return fmt::format(
          "all pods in a single pod group should have the same preemption policy as the pod group's preemption policy, got {} and {}",
          other,
          policy);
    }
  }
  if (differ(group.policies)) {
    return fmt::format(
        "all pods in a single pod group should have the same preemption policy, got {} and {}",
        group.policies.begin()->first,
        std::next(group.policies.begin())->first);
  }
  return "";
}

std::string Groups::disagreement(const std::string& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? "" : disagreement(found->second);
}

std::string Groups::story(const std::string& key,
                          const engine::Refusal& refusal,
                          const std::string& message) const {
  const auto found = groups_.find(key);
  const bool room = refusal.reason == engine::Reason::kNoNodeFits ||
                    refusal.reason == engine::Reason::kNeverFits ||
                    refusal.reason == engine::Reason::kTopology;
  if (found == groups_.end() || found->second.kind != GroupKind::kNative || !found->second.object ||
      !room)
    return message;
  const auto need =
      json::int_at(*found->second.object, "spec", "schedulingPolicy", "gang", "minCount");
  if (need < 2) return message;
  std::int64_t bound = 0;
  for (const std::string& pod : found->second.members) {
    const auto member = members_.find(pod);
    bound += member != members_.end() && member->second.bound && member->second.live ? 1 : 0;
  }
  if (bound >= need) return message;
  // Kubernetes stops at the first member too many: what is scheduled and what remains make one less
  // than needed.
  const std::int64_t scheduled = std::min<std::int64_t>(bound + refusal.members_found, need - 1);
  std::string text = fmt::format(
      "pod group is unschedulable, minCount ({}) cannot be satisfied: {} scheduled, {} remaining; {}",
      need,
      scheduled,
      need - 1 - scheduled,
      message);
  if (text.size() > 1024) text.resize(1024);
  return text;
}

void Groups::pod_gone(const std::string& pod) {
  const auto found = members_.find(pod);
  if (found == members_.end()) return;
  const std::string key = found->second.group;
  tally(found->second, -1);
  members_.erase(found);
  const auto group = groups_.find(key);
  if (group == groups_.end()) return;
  group->second.members.erase(pod);
  if (group->second.members.empty() && !group->second.object)
    groups_.erase(group);
  else
    mark(key, kCountDelay);
}

void Groups::pod_bound(const std::string& pod) {
  const auto found = members_.find(pod);
  if (found == members_.end()) return;
  found->second.bound = true;
  Group& group = groups_[found->second.group];
  group.message.clear();
  if (!group.scheduled) {
    group.scheduled = true;
    mark(found->second.group, Duration{0});
  }
}

std::optional<engine::Group> Groups::translate(const std::string& key,
                                               const TranslateOptions& options) const {
  const auto found = groups_.find(key);
  if (found == groups_.end() || !found->second.object) return std::nullopt;
  const Group& group = found->second;
  engine::Group out = translate_group(group.kind, *group.object, options);
  // A gang that names no class is as important as its pods.
  if (!says_priority(group.kind, *group.object) && !group.members.empty())
    out.priority = member_priority(group);
  out.hold = out.hold || !disagreement(group).empty();
  return out;
}

std::int32_t Groups::member_priority(const Group& group) const {
  std::int32_t highest = 0;
  bool first = true;
  // Gangs are uniform in practice; a few members tell, and a gang of 10,000 must not cost 10,000
  // look-ups a pod.
  int looked = 0;
  for (const std::string& pod : group.members) {
    const auto member = members_.find(pod);
    if (member == members_.end()) continue;
    highest = first ? member->second.priority : std::max(highest, member->second.priority);
    first = false;
    if (++looked == 8) break;
  }
  return highest;
}

std::vector<std::string> Groups::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, group] : groups_) {
    if (group.object) out.push_back(key);
  }
  return out;
}

std::size_t Groups::member_count(const std::string& key) const {
  const auto found = groups_.find(key);
  return found == groups_.end() ? 0 : found->second.members.size();
}

std::vector<std::string> Groups::unbound_members(const std::string& key) const {
  std::vector<std::string> out;
  const auto found = groups_.find(key);
  if (found == groups_.end()) return out;
  for (const std::string& pod : found->second.members) {
    const auto member = members_.find(pod);
    if (member != members_.end() && !member->second.bound) out.push_back(pod);
  }
  return out;
}

void Groups::phase_changed(const engine::PhaseChange& change) {
  const auto found = groups_.find(change.group);
  if (found == groups_.end()) return;
  found->second.phase = std::string(engine::phase_name(change.phase));
  if (change.phase == engine::GroupPhase::kRunning) found->second.message.clear();
  mark(change.group, Duration{0});
}

void Groups::waits(const std::string& key,
                   const engine::Refusal& refusal,
                   const std::string& message) {
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  found->second.message = message;
  if (refusal.reason == engine::Reason::kNotAdmitted && found->second.phase.empty())
    found->second.phase = "Pending";
  found->second.reason =
      found->second.kind == GroupKind::kNative
          ? (refusal.reason == engine::Reason::kInvalidGroup ? "SchedulerError" : "Unschedulable")
          : reason_for(refusal);
  mark(key, Duration{0});
}

void Groups::waits_no_more(const std::string& key) {
  const auto found = groups_.find(key);
  if (found != groups_.end()) found->second.message.clear();
}

void Groups::mark(const std::string& key, Duration delay) {
  if (delay.count() == 0) {
    dirty_.erase(key);
    write(key);
    return;
  }
  dirty_.insert(key);
  if (!flush_timer_) {
    flush_timer_ = env_.after(delay, [this] {
      flush_timer_.reset();
      flush();
    });
  }
}

void Groups::note_written(const std::string& what,
                          const std::string& key,
                          const Result<void>& done) {
  if (done) {
    retry_delay_ = kRetryFirst;
    return;
  }
  if (done.error().code == Code::kNotFound) return;
  log::warn("scheduler", "status failed of={} {} reason={}", what, key, done.error().message);
  failed_.insert(key);
  if (!retry_timer_) retry_timer_ = env_.after(retry_delay_, [this] { write_failed_again(); });
}

void Groups::write_failed_again() {
  retry_timer_.reset();
  retry_delay_ = std::min(retry_delay_ * 2, kRetryMost);
  for (const std::string& key : std::exchange(failed_, {})) {
    if (!key.empty())
      write(key);
    else
      allocations_changed();
  }
}

void Groups::flush() {
  for (const std::string& key : std::exchange(dirty_, {})) write(key);
}

void Groups::write(const std::string& key) {
  const auto found = groups_.find(key);
  if (found == groups_.end() || !found->second.object) return;
  switch (found->second.kind) {
    case GroupKind::kVolcano:
    case GroupKind::kPlugins:
      lane_.add_latest("group " + key, [this, key] { return write_volcano(key); });
      return;
    case GroupKind::kNative:
      lane_.add_latest("group " + key, [this, key] { return write_native(key); });
      return;
    case GroupKind::kT9k:
      lane_.add_latest("group " + key, [this, key] { return write_t9k(key); });
      return;
    case GroupKind::kComposite:
      return;
  }
}

GroupCounts Groups::count(const Group& group) {
  GroupCounts counts;
  for (const auto& [phase, members] : group.phases) {
    if (phase == "Running")
      counts.running += members;
    else if (phase == "Succeeded")
      counts.succeeded += members;
    else if (phase == "Failed")
      counts.failed += members;
    else
      counts.pending += members;
  }
  return counts;
}

bool Groups::ours(const Group& group) const {
  if (names_.empty()) return true;
  if (group.members.empty()) return names_.contains(kVolcanosScheduler);
  return std::ranges::any_of(group.members, [&](const std::string& pod) {
    const auto member = members_.find(pod);
    return member != members_.end() && names_.contains(member->second.scheduler);
  });
}

Task<void> Groups::write_volcano(std::string key) {
  const auto found = groups_.find(key);
  if (found == groups_.end() || !found->second.object) co_return;
  const client::ObjectPtr object = found->second.object;
  const Group& group = found->second;
  const bool mine = ours(group);
  if (!mine && !group.members.empty()) co_return;
  const GroupCounts counts = count(group);
  json::Object status;
  if (!group.phase.empty()) status["phase"] = group.phase;
  // A zero counter is left out, so that its column stays blank, as Volcano's does.
  const auto counter = [&](const char* name, int value) {
    if (value > 0)
      status[name] = value;
    else if (!json::at(*object, "status", name).is_null())
      status[name] = nullptr;
  };
  counter("running", counts.running);
  counter("succeeded", counts.succeeded);
  counter("failed", counts.failed);

  json::Array conditions = json::array_at(*object, "status", "conditions");
  const auto set = [&](const json::Value& condition) {
    for (json::Value& existing : conditions) {
      if (json::at(existing, "type") == json::at(condition, "type")) {
        if (json::at(existing, "message") != json::at(condition, "message") ||
            json::at(existing, "status") != json::at(condition, "status"))
          existing = condition;
        return;
      }
    }
    conditions.push_back(condition);
  };
  if (!group.message.empty()) {
    set(volcano_condition(false, group.reason, group.message, env_.now()));
  } else if (group.scheduled) {
    set(volcano_condition(true, "tasks in gang are ready to be scheduled", "", env_.now()));
    for (auto it = conditions.begin(); it != conditions.end();) {
      it = json::string_at(*it, "type") == "Unschedulable" ? conditions.erase(it) : it + 1;
    }
  }
  if (!json::equal(json::Value(conditions), json::at(*object, "status", "conditions")) &&
      !(conditions.empty() && json::at(*object, "status", "conditions").is_null())) {
    status["conditions"] = conditions;
  }

  json::Value merged = json::at(*object, "status");
  json::merge_patch(merged, json::Value(status));
  if (json::equal(merged, json::at(*object, "status"))) co_return;
  json::Value patch = json::Object{};
  json::make(patch, {"status"}) = std::move(status);
  const std::string ns(kube::namespace_of(*object)), name(kube::name_of(*object));
  const client::Resource resource = group.resource;
  const bool waits =
      !group.message.empty() &&
      json::string_at(kube::condition(*object, "Unschedulable"), "message") != group.message;
  const std::string message = group.message;
  auto done = co_await client_.patch(
      resource, ns, name, "status", client::PatchType::kMerge, json::Value(patch));
  // The kind that Volcano brings has no subresource for the status.
  if (!done && done.error().code == Code::kNotFound && mine)
    done =
        co_await client_.patch(resource, ns, name, "", client::PatchType::kMerge, std::move(patch));
  note_written("group", key, end_of(done));
  if (done && waits) events_.record(*object, "Warning", "Unschedulable", message);
}

Task<void> Groups::write_native(std::string key) {
  const auto found = groups_.find(key);
  if (found == groups_.end() || !found->second.object) co_return;
  const client::ObjectPtr object = found->second.object;
  const Group& group = found->second;
  // Once True it is never set to False again, whatever happens to the pods.
  if (kube::condition_true(*object, "PodGroupInitiallyScheduled")) co_return;
  if (!group.scheduled && group.message.empty()) co_return;
  kube::Condition condition;
  condition.type = "PodGroupInitiallyScheduled";
  condition.status = group.scheduled ? "True" : "False";
  condition.reason = group.scheduled ? "Scheduled" : group.reason;
  condition.message = group.scheduled ? "" : group.message;
  json::Value updated = *object;
  if (!kube::set_condition(updated, condition, env_.now())) co_return;
  json::Value patch = json::Object{};
  json::make(patch, {"status", "conditions"}) =
      json::Array{kube::condition(updated, condition.type)};
  const std::string ns(kube::namespace_of(*object)), name(kube::name_of(*object));
  const client::Resource resource = group.resource;
  const auto done = co_await client_.patch(
      resource, ns, name, "status", client::PatchType::kStrategic, std::move(patch));
  note_written("group", key, end_of(done));
}

Task<void> Groups::write_t9k(std::string key) {
  const auto found = groups_.find(key);
  if (found == groups_.end() || !found->second.object) co_return;
  const client::ObjectPtr object = found->second.object;
  const Group& group = found->second;
  const GroupCounts counts = count(group);
  json::Value updated = *object;
  json::Object& status = json::make_object(updated, {"status"});
  status["pending"] = counts.pending;
  status["running"] = counts.running;
  status["succeeded"] = counts.succeeded;
  status["failed"] = counts.failed;
  const auto wanted = json::as_int(json::at(*object, "spec", "minMember"), 1);
  const bool enough = static_cast<std::int64_t>(group.members.size()) - counts.failed >= wanted;
  kube::set_condition(updated,
                      {"SufficientGroupMember",
                       enough ? "True" : "False",
                       enough ? "SufficientMemberPods" : "InsufficientMemberPods",
                       enough ? "" : "Insufficient members in PodGroup, waiting for more"},
                      env_.now());
  // GroupScheduled says "was allocated at some time" and stays.
  if (group.scheduled) {
    kube::set_condition(updated,
                        {"GroupScheduled",
                         "True",
                         "PodGroupScheduled",
                         "Resources have been allocated to PodGroup"},
                        env_.now());
  } else if (!kube::condition_true(*object, "GroupScheduled")) {
    kube::set_condition(
        updated, {"GroupScheduled", "False", "GroupNotScheduled", group.message}, env_.now());
  }
  if (json::equal(json::at(updated, "status"), json::at(*object, "status"))) co_return;
  json::Value patch = json::Object{};
  json::make(patch, {"status"}) = json::at(updated, "status");
  const std::string ns(kube::namespace_of(*object)), name(kube::name_of(*object));
  const client::Resource resource = group.resource;
  const auto done = co_await client_.patch(
      resource, ns, name, "status", client::PatchType::kMerge, std::move(patch));
  note_written("group", key, end_of(done));
}

void Groups::allocations_changed() {
  if (queue_timer_) return;
  queue_timer_ = env_.after(kQueueDelay, [this] {
    queue_timer_.reset();
    const bool looked = look_([this](const engine::Engine& engine) {
      for (const auto& [name, queue] : informers_.get(client::resources::kQueues).objects()) {
        const auto view = engine.queue(name);
        if (view)
          lane_.add_latest("queue " + name, [this, key = name, allocated = view->allocated] {
            return write_queue(key, allocated);
          });
      }
    });
    if (!looked) allocations_changed();
  });
}

Task<void> Groups::write_queue(std::string name, engine::ResourceList allocated) {
  const client::ObjectPtr queue = informers_.get(client::resources::kQueues).find(name);
  if (!queue) co_return;
  json::Object status;
  json::Object amounts;
  for (const engine::Amount& amount : allocated) {
    if (amount.value != 0) amounts[amount.name] = amount_text(amount);
  }
  for (const auto& member : json::object_at(*queue, "status", "allocated")) {
    if (!amounts.contains(member.key())) amounts[member.key()] = nullptr;
  }
  if (!amounts.empty()) status["allocated"] = std::move(amounts);
  json::Value merged = json::at(*queue, "status");
  json::merge_patch(merged, json::Value(status));
  if (json::equal(merged, json::at(*queue, "status"))) co_return;
  json::Value patch = json::Object{};
  json::make(patch, {"status"}) = std::move(status);
  const auto done = co_await client_.patch(
      client::resources::kQueues, "", name, "status", client::PatchType::kMerge, std::move(patch));
  note_written("queue " + name, "", end_of(done));
}

void Groups::ensure_default_queues(const std::string& default_queue) {
  lane_.add([this]() -> Task<void> { co_await ensure_t9k_queue(); });
  for (const std::string& name : {std::string("root"), default_queue}) {
    lane_.add([this, name]() -> Task<void> {
      if (informers_.get(client::resources::kQueues).find(name)) co_return;
      json::Value queue = json::Object{};
      json::make(queue, {"apiVersion"}) = client::resources::kQueues.api_version();
      json::make(queue, {"kind"}) = "Queue";
      json::make(queue, {"metadata", "name"}) = name;
      json::make(queue, {"spec", "weight"}) = 1;
      json::make(queue, {"spec", "reclaimable"}) = name != "root";
      const auto made = co_await client_.create(client::resources::kQueues, "", std::move(queue));
      // A cluster without the kind has no queues, and needs none.
      if (!made && made.error().code != Code::kNotFound &&
          made.error().code != Code::kAlreadyExists) {
        log::warn("scheduler", "queue {} could not be created: {}", name, made.error().message);
      }
    });
  }
}

/// T9k's queue of pods that name none. Only a cluster that knows the kind gets it.
Task<void> Groups::ensure_t9k_queue() {
  constexpr std::string_view kNamespace = "t9k-system";
  const auto listed = co_await client_.list(client::resources::kT9kQueues, {});
  if (!listed) co_return;
  for (const json::Value& queue : listed->items) {
    if (kube::name_of(queue) == "default") co_return;
  }
  Result<json::Value> home = json::Value();
  if (!informers_.get(client::resources::kNamespaces).find(std::string(kNamespace))) {
    json::Value ns = json::Object{};
    json::make(ns, {"metadata", "name"}) = kNamespace;
    home = co_await client_.create(client::resources::kNamespaces, "", std::move(ns));
  }
  json::Value queue = json::Object{};
  json::make(queue, {"apiVersion"}) = client::resources::kT9kQueues.api_version();
  json::make(queue, {"kind"}) = "Queue";
  json::make(queue, {"metadata", "name"}) = "default";
  json::make(queue, {"metadata", "namespace"}) = kNamespace;
  json::make(queue, {"spec", "closed"}) = false;
  const auto made = co_await client_.create(
      client::resources::kT9kQueues, std::string(kNamespace), std::move(queue));
  const bool there = home || home.error().code == Code::kAlreadyExists;
  if (!there || (!made && made.error().code != Code::kAlreadyExists)) {
    log::warn("scheduler",
              "queue {}/default could not be created: {}",
              kNamespace,
              made ? home.error().message : made.error().message);
  }
}

void Groups::stop() {
  retry_timer_.reset();
  flush_timer_.reset();
  queue_timer_.reset();
}

}  // namespace muster::scheduler
