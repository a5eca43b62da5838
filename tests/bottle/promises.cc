#include "promises.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "hived/annotations.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::bottle {
namespace {

/// A scheduler may be stopped for a minute and a half, and then does what it had decided before.
constexpr Duration kSettled = std::chrono::minutes(3);

/// Whoever is guaranteed cells there; the others may be anywhere.
std::string virtual_cluster_of(const json::Value& pod) {
  const auto text = kube::annotation(pod, hived::kSchedulingSpec);
  if (text.empty()) return "";
  const auto spec = hived::parse_scheduling_spec(
      text, std::string(kube::namespace_of(pod)), std::string(kube::name_of(pod)));
  return spec && spec->priority >= 0 ? spec->vc : "";
}

/// When it joined its queue, which a job that is suspended or requeued does only once.
std::string joined(const json::Value& object) {
  const auto noted = kube::annotation(object, kube::names::kSubmittedAt);
  return noted.empty() ? json::text_at(object, "metadata", "creationTimestamp")
                       : std::string(noted);
}

/// Others were told to leave for it: it has its place, and waits for them alone.
bool has_room(const json::Value& pod) {
  const auto why = json::string_at(kube::condition(pod, "PodScheduled"), "message");
  return why.starts_with("its room is held") || why.starts_with("waiting for the pods it preempts");
}

/// Where `a` has room, `b` has.
bool covers(const std::vector<int>& a, const std::vector<int>& b) {
  if (b.size() > a.size()) return false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b[i] > a[i]) return false;
  }
  return true;
}

}  // namespace

int gpus_of(const json::Value& pod) {
  std::int64_t sum = 0;
  for (const json::Value& container : json::array_at(pod, "spec", "containers"))
    sum +=
        parse_int(json::string_at(container, "resources", "limits", "nvidia.com/gpu")).value_or(0);
  return static_cast<int>(sum);
}

void Promises::begin_again() {
  before_ = std::exchange(pods_, {});
  groups_.clear();
}

void Promises::see_group(const json::Value& group, bool gone) {
  const std::string name(kube::name_of(group));
  if (gone) {
    groups_.erase(name);
    return;
  }
  groups_[name] = {json::text_at(group, "spec", "queue"),
                   joined(group),
                   static_cast<std::size_t>(json::as_int(json::at(group, "spec", "minMember"), 1))};
}

void Promises::see_pod(const json::Value& pod, bool gone, Time now) {
  const std::string uid(kube::uid_of(pod));
  Pod made;
  if (const auto found = pods_.find(uid); found != pods_.end())
    made = found->second;
  else if (const auto known = before_.find(uid); known != before_.end())
    made = known->second;
  if (gone) {
    pods_.erase(uid);
    return;
  }
  const bool placed_before = !made.node.empty();
  if (made.name.empty()) made.seen = now;
  made.name = kube::name_of(pod);
  made.node = json::text_at(pod, "spec", "nodeName");
  made.group = kube::annotation(pod, kube::names::volcano::kGroupName);
  made.created = joined(pod);
  made.has_room = has_room(pod);
  made.gpus = gpus_of(pod);
  made.priority = json::as_int(json::at(pod, "spec", "priority"), 0);
  made.ended = kube::pod_finished(pod);
  made.virtual_cluster = virtual_cluster_of(pod);
  made.devices.clear();
  for (const std::string_view each :
       split_nonempty(kube::annotation(pod, hived::kLeafCellIsolation), ','))
    made.devices.emplace_back(each);
  const bool just_placed = !placed_before && !made.node.empty();
  if (just_placed) made.placed = now;
  pods_[uid] = made;
  if (!just_placed || made.ended) return;
  check_limit(made, "queue " + queue_of(made), true);
  if (!made.virtual_cluster.empty())
    check_limit(made, "virtual cluster " + made.virtual_cluster, false);
  check_devices(made);
  check_order(uid, made, now);
}

std::string Promises::queue_of(const Pod& pod) const {
  const auto group = groups_.find(pod.group);
  return group == groups_.end() || group->second.queue.empty() ? "default" : group->second.queue;
}

void Promises::check_limit(const Pod& last, const std::string& tenant, bool of_queue) {
  const auto found = limits_.find(tenant);
  if (found == limits_.end() || last.placed < found->second.second || last.gpus == 0) return;
  ++counts_.limits;
  int sum = 0;
  for (const auto& [uid, pod] : pods_) {
    const std::string its =
        of_queue ? "queue " + queue_of(pod) : "virtual cluster " + pod.virtual_cluster;
    const bool counts = !pod.node.empty() && !pod.ended && pod.placed >= found->second.second;
    if (counts && its == tenant) sum += pod.gpus;
  }
  if (sum > found->second.first)
    fail_("limits kept",
          fmt::format("{} has {} GPUs, {} being the last; it may have {}",
                      tenant,
                      sum,
                      last.name,
                      found->second.first));
}

void Promises::check_devices(const Pod& last) {
  for (const auto& [uid, pod] : pods_) {
    if (pod.node != last.node || pod.ended || pod.name == last.name) continue;
    for (const std::string& device : pod.devices) {
      if (std::find(last.devices.begin(), last.devices.end(), device) != last.devices.end())
        fail_("devices once",
              fmt::format(
                  "GPU {} of {} is given to {} and to {}", device, pod.node, pod.name, last.name));
    }
  }
}

std::string Promises::key_of(const std::string& uid, const Pod& pod) {
  return pod.group.empty() ? uid : pod.group;
}

std::map<std::string, Promises::Gang> Promises::gangs() const {
  std::map<std::string, Gang> out;
  for (const auto& [uid, pod] : pods_) {
    Gang& gang = out[key_of(uid, pod)];
    const auto group = groups_.find(pod.group);
    if (!pod.group.empty() && group == groups_.end()) gang.members = ~std::size_t{0};
    if (group != groups_.end()) gang.members = group->second.members;
    gang.name = pod.group.empty() ? pod.name : pod.group;
    gang.queue = queue_of(pod);
    gang.created = group != groups_.end() ? group->second.created : pod.created;
    gang.priority = pod.priority;
    gang.placed += pod.node.empty() || pod.ended ? 0 : 1;
    gang.ended += pod.ended ? 1 : 0;
    gang.since = std::max(gang.since, pod.seen);
    gang.has_room = gang.has_room || pod.has_room;
    if (!pod.ended) gang.gpus.push_back(pod.gpus);
  }
  for (auto& [key, gang] : out) std::sort(gang.gpus.rbegin(), gang.gpus.rend());
  return out;
}

/// Of two whole gangs of a queue and a priority the older one starts first, unless it asks for more or
/// has a place already and waits for others to leave it.
void Promises::check_order(const std::string& uid, const Pod& last, Time now) {
  const auto all = gangs();
  const Gang& gang = all.at(key_of(uid, last));
  if (!is_whole(gang) || gang.placed != 1) return;
  for (const auto& [key, other] : all) {
    const bool first = other.queue == gang.queue && other.priority == gang.priority &&
                       other.created < gang.created && covers(gang.gpus, other.gpus);
    if (!first || other.placed > 0 || other.has_room || !is_whole(other)) continue;
    ++counts_.starts;
    if (now - other.since < kSettled) continue;
    passed_.try_emplace(
        key,
        Passed{fmt::format(
                   "{} (of {}) starts, and {} (of {}), which asks for no more, waits in queue {}",
                   gang.name,
                   gang.created,
                   other.name,
                   other.created,
                   gang.queue),
               now});
  }
}

/// Bindings that are decided together arrive in any order.
void Promises::look_again(Time now) {
  const auto all = gangs();
  std::erase_if(passed_, [&](const auto& each) {
    const auto& [key, passed] = each;
    if (now - passed.when < std::chrono::minutes(1)) return false;
    const auto found = all.find(key);
    if (found != all.end() && found->second.placed == 0 && !found->second.has_room &&
        is_whole(found->second) && found->second.since < passed.when)
      fail_("order kept", passed.what);
    return true;
  });
}

}  // namespace muster::bottle
