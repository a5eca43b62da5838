#include "checks.h"

#include <fmt/core.h>

#include "base/strings.h"
#include "hived/annotations.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::bottle {
namespace {

namespace r = client::resources;

/// Far above what any job needs: 60 writes a minute for each that exists, and some for the cluster.
constexpr std::uint64_t kWritesAMinute = 600;
constexpr std::uint64_t kWritesAJobAndMinute = 120;

bool is_true(const json::Value& job, std::string_view type) {
  return json::string_at(kube::condition(job, type), "status") == "True";
}

/// Kinds that others belong to, and those that belong to others.
const client::Resource* const kKinds[] = {&r::kPods,
                                          &r::kServices,
                                          &r::kConfigMaps,
                                          &r::kSecrets,
                                          &r::kPodGroups,
                                          &r::kJobs,
                                          &r::kPyTorchJobs,
                                          &r::kVolcanoJobs,
                                          &r::kMPIJobsV2Beta1};

/// Kubeflow's jobs leave their pods as they are when they end, those that wait as well.
bool of_ended(const json::Value& pod, const std::map<std::string, json::Value>& objects) {
  for (const json::Value& owner : json::array_at(pod, "metadata", "ownerReferences")) {
    const auto found = objects.find(json::text_at(owner, "uid"));
    if (found != objects.end() && !end_of(found->second).empty()) return true;
  }
  return false;
}

std::string line_of(const json::Value& pod, bool gone) {
  auto devices = kube::annotation(pod, kube::names::kGpuIndices);
  if (devices.empty()) devices = kube::annotation(pod, hived::kLeafCellIsolation);
  std::string why(json::string_at(kube::condition(pod, "PodScheduled"), "message"));
  for (const json::Value& container : json::array_at(pod, "status", "containerStatuses")) {
    why += fmt::format("{}container {}: {}",
                       why.empty() ? "" : "; ",
                       json::string_at(container, "name"),
                       json::dump(json::at(container, "state")));
  }
  return fmt::format("pod {} ({}, {}): {} GPUs{}, priority {}, {} on \"{}\"{}{}{}",
                     kube::name_of(pod),
                     kube::uid_of(pod).substr(0, 8),
                     kube::annotation(pod, "scheduling.k8s.io/group-name"),
                     gpus_of(pod),
                     devices.empty() ? "" : fmt::format(" ({})", devices),
                     json::int_at(pod, "spec", "priority"),
                     json::string_at(pod, "status", "phase"),
                     json::string_at(pod, "spec", "nodeName"),
                     json::at(pod, "metadata", "deletionTimestamp").is_null() ? "" : ", leaving",
                     gone ? ", gone" : "",
                     why.empty() ? "" : fmt::format(": {}", why));
}

}  // namespace

std::string end_of(const json::Value& job) {
  for (const char* type : {"Succeeded", "Complete", "Failed"}) {
    if (is_true(job, type)) return type;
  }
  for (const std::string_view phase : {json::string_at(job, "status", "phase"),
                                       json::string_at(job, "status", "state", "phase")}) {
    if (phase == "Succeeded" || phase == "Failed" || phase == "Completed" || phase == "Aborted" ||
        phase == "Terminated")
      return std::string(phase);
  }
  return "";
}

void Checks::fail(std::string check, std::string what) {
  if (!violation_) violation_ = Violation{std::move(check), std::move(what)};
}

void Checks::acknowledged(const std::string& name, std::int64_t number) {
  auto& known = registers_[name];
  known = std::max(known, number);
}

Task<void> Checks::follow(SimEnv& env, ServerPart& server) {
  pods_.clear();
  used_.clear();
  promises_.begin_again();
  const auto kept = co_await server.direct->list(r::kConfigMaps, {.ns = "default"});
  if (!kept) {
    fail("durable", "a server that has just started cannot be read: " + kept.error().message);
    co_return;
  }
  std::map<std::string, std::int64_t> there;
  for (const json::Value& each : kept->items)
    there[json::text_at(each, "metadata", "name")] =
        parse_int(json::string_at(each, "data", "number")).value_or(0);
  for (const auto& [name, number] : registers_) {
    if (there[name] < number)
      fail("durable",
           fmt::format(
               "{} was acknowledged as {} and is {} after a restart", name, number, there[name]));
  }
  const auto version = static_cast<std::uint64_t>(parse_int(kept->resource_version).value_or(0));
  if (version < highest_)
    fail("revisions", fmt::format("revision {} after {} had been seen", version, highest_));
  if (promising_) env.spawn(watch_groups(env, *server.direct));
  env.spawn(watch_pods(env, *server.direct));
  env.spawn(watch_leases(env, *server.direct));
}

Task<void> Checks::watch_leases(SimEnv& env, client::Client& direct) {
  client::WatchOptions options;
  options.initial_events = true;
  const auto each = [this](const client::WatchEvent& event) {
    renewals_ += event.type == "MODIFIED" ? 1 : 0;
    return true;
  };
  // A server ends watches that last long; what it had to say of before is said again.
  while (true) {
    (void)co_await direct.watch(r::kLeases, options, each);
    co_await env.sleep(std::chrono::seconds(1));
  }
}

Task<void> Checks::watch_groups(SimEnv& env, client::Client& direct) {
  client::WatchOptions options;
  options.initial_events = true;
  const auto each = [this](const client::WatchEvent& event) {
    if (event.type != "BOOKMARK") promises_.see_group(*event.object, event.type == "DELETED");
    return true;
  };
  while (true) {
    (void)co_await direct.watch(r::kPodGroups, options, each);
    co_await env.sleep(std::chrono::seconds(1));
  }
}

Task<void> Checks::watch_pods(SimEnv& env, client::Client& direct) {
  client::WatchOptions options;
  options.initial_events = true;
  bool initial = true;
  const auto each = [&](const client::WatchEvent& event) {
    ++seen_;
    const auto revision =
        static_cast<std::uint64_t>(parse_int(kube::resource_version_of(*event.object)).value_or(0));
    if (event.type == "BOOKMARK") {
      initial = false;
    } else {
      if (!initial && revision <= highest_)
        fail("revisions", fmt::format("revision {} comes after {}", revision, highest_));
      world_.mix(revision);
      see_pod(*event.object, event.type == "DELETED");
    }
    highest_ = std::max(highest_, revision);
    return true;
  };
  while (true) {
    initial = true;
    (void)co_await direct.watch(r::kPods, options, each);
    co_await env.sleep(std::chrono::seconds(1));
  }
}

void Checks::see_pod(const json::Value& pod, bool gone) {
  if (tell_pods_) tell_pods_(line_of(pod, gone));
  if (promising_) promises_.see_pod(pod, gone, world_.now());
  const std::string uid(kube::uid_of(pod));
  if (const auto known = pods_.find(uid); known != pods_.end()) {
    if (!known->second.ended) used_[known->second.node] -= known->second.gpus;
    pods_.erase(known);
  }
  if (gone) {
    deleted_.insert(uid);
    return;
  }
  const std::string name(kube::name_of(pod)), node = json::text_at(pod, "spec", "nodeName");
  if (deleted_.contains(uid))
    fail("durable", fmt::format("pod {} was deleted and is there again", name));
  if (!node.empty()) {
    const auto [first, added] = bound_.emplace(uid, node);
    if (!added && first->second != node)
      fail("bound once", fmt::format("pod {} is on {} and was on {}", name, node, first->second));
  } else if (bound_.contains(uid)) {
    fail("bound once", fmt::format("pod {} was on {} and is nowhere", name, bound_.at(uid)));
  }
  for (const json::Value& container : json::array_at(pod, "status", "containerStatuses")) {
    // All that the pods of this world ask for is there.
    if (json::string_at(container, "state", "waiting", "reason") == "CreateContainerConfigError")
      fail("configured",
           fmt::format(
               "pod {}: {}", name, json::string_at(container, "state", "waiting", "message")));
  }
  const Pod made{name, node, gpus_of(pod), kube::pod_finished(pod)};
  pods_[uid] = made;
  if (made.ended || node.empty()) return;
  int& used = used_[node];
  used += made.gpus;
  if (used > gpus_)
    fail("GPUs once",
         fmt::format("{} GPUs of {} are given to pods, {} being the last; it has {}",
                     used,
                     node,
                     name,
                     gpus_));
}

void Checks::minute(store::Revision revision, std::size_t jobs) {
  promises_.look_again(world_.now());
  const store::Revision written = revision - minute_ago_;
  if (written == 0) return;
  minute_ago_ = revision;
  // Writes that a full disk refuses take numbers, too; they show when one is written again.
  const auto minutes = static_cast<std::uint64_t>(std::max<std::int64_t>(
      1, (world_.now() - std::exchange(written_at_, world_.now())) / std::chrono::minutes(1)));
  // A server that was not closed leaves out a range of numbers.
  if (written > 60'000) return;
  const std::uint64_t most = minutes * (kWritesAMinute + kWritesAJobAndMinute * jobs);
  if (written > most)
    fail("writes bounded",
         fmt::format(
             "{} writes in {} minutes with {} jobs; {} are enough", written, minutes, jobs, most));
}

Task<void> Checks::not_quiet(client::Client& client, std::uint64_t writes) {
  std::pair<std::int64_t, std::string> last;
  std::vector<const client::Resource*> all(std::begin(kKinds), std::end(kKinds));
  all.insert(all.end(), {&r::kEvents, &r::kNodes, &r::kQueues, &r::kLeases, &r::kEndpointSlices});
  for (const client::Resource* kind : all) {
    const auto listed = co_await client.list(*kind, {});
    if (!listed) continue;
    for (const json::Value& each : listed->items) {
      const std::int64_t version = parse_int(kube::resource_version_of(each)).value_or(0);
      if (version > last.first && kind != &r::kLeases)
        last = {version, kind->kind + " " + json::dump(each)};
    }
  }
  fail("quiet", fmt::format("{} writes in ten minutes; the last is {}", writes, last.second));
}

Task<void> Checks::at_rest(client::Client& client) {
  Objects objects;
  for (const client::Resource* kind : kKinds) {
    const auto listed = co_await client.list(*kind, {});
    if (!listed) {
      fail("readable", fmt::format("{}: {}", kind->plural, listed.error().message));
      co_return;
    }
    for (const json::Value& each : listed->items)
      objects.emplace(std::string(kube::uid_of(each)), each);
  }
  check_gangs(objects);
  check_owners(objects);
  check_ends(objects);
}

void Checks::check_ends(const Objects& objects) {
  for (const auto& [uid, object] : objects) {
    const std::string_view kind = json::string_at(object, "kind");
    // What only uses what is left over has no end.
    if (kube::name_of(object).starts_with("filler")) continue;
    const bool job = kind.ends_with("Job") || (kind == "Pod" && !of_ended(object, objects));
    if (job && end_of(object).empty())
      fail("every job ends",
           fmt::format("{} {} has not ended: {}",
                       kind,
                       kube::name_of(object),
                       json::dump(json::at(object, "status"))));
  }
}

void Checks::check_gangs(const Objects& objects) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> members;  // placed, all
  for (const auto& [uid, object] : objects) {
    if (json::string_at(object, "kind") != "Pod" || kube::pod_finished(object)) continue;
    const std::string group(kube::annotation(object, "scheduling.k8s.io/group-name"));
    if (group.empty()) continue;
    auto& [placed, all] = members[group];
    ++all;
    if (!json::string_at(object, "spec", "nodeName").empty()) ++placed;
  }
  for (const auto& [name, count] : members) {
    if (count.first > 0 && count.first < count.second)
      fail("gangs whole",
           fmt::format("{} of {} live pods of group {} have a node, for good",
                       count.first,
                       count.second,
                       name));
  }
}

void Checks::check_owners(const Objects& objects) {
  for (const auto& [uid, object] : objects) {
    for (const json::Value& owner : json::array_at(object, "metadata", "ownerReferences")) {
      if (objects.contains(json::text_at(owner, "uid"))) continue;
      fail("nothing leaked",
           fmt::format("{} {} belongs to {} {}, which is gone",
                       json::string_at(object, "kind"),
                       kube::name_of(object),
                       json::string_at(owner, "kind"),
                       json::string_at(owner, "name")));
    }
    if (!json::at(object, "metadata", "deletionTimestamp").is_null())
      fail("nothing leaked",
           fmt::format("{} {} is being deleted for ever",
                       json::string_at(object, "kind"),
                       kube::name_of(object)));
  }
}

}  // namespace muster::bottle
