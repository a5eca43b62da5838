#include "cli/fetch.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/strings.h"
#include "cli/lean.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

using client::ListOptions;

/// "No such resource here" and "no such object" both mean: not this kind.
bool absent(const Error& error) { return error.code == Code::kNotFound; }

ListOptions options_of(std::string ns, std::string selector = "") {
  ListOptions options;
  options.ns = std::move(ns);
  options.label_selector = std::move(selector);
  return options;
}

struct Fetch {
  Session& session;
  Snapshot& into;
  std::optional<Error> failure;

  void fail_with(const Error& error) {
    if (!failure) failure = error;
  }
};

Task<void> list_into(Fetch& fetch, const client::Resource& resource, ListOptions options, std::vector<json::Value>& into) {
  auto list = co_await fetch.session.cluster().list(resource, std::move(options));
  if (list) {
    into = std::move(list->items);
  } else if (!absent(list.error())) {
    fetch.fail_with(list.error());
  }
}

/// The API groups and versions that the server has, as "group/version"; empty when it does not say.
Task<std::set<std::string>> served_versions(Session& session) {
  std::set<std::string> served;
  const auto groups = co_await session.cluster().raw("GET", "/apis", nullptr);
  if (!groups) co_return served;
  for (const json::Value& group : json::as_array(json::at(*groups, "groups"))) {
    for (const json::Value& version : json::as_array(json::at(group, "versions"))) served.insert(json::text(json::at(version, "groupVersion")));
  }
  co_return served;
}

Task<void> list_kinds(Fetch& fetch, JobsQuery query) {
  const std::set<std::string> served = co_await served_versions(fetch.session);
  std::set<std::string> seen;
  for (const Trainer& trainer : trainers()) {
    if (!query.type.empty() && trainer.type != query.type) continue;
    if (!served.empty() && !served.contains(trainer.resource.api_version())) continue;
    auto list = co_await lean_list(fetch.session, trainer.resource, query.ns, job_members());
    if (!list && list.error().code == Code::kForbidden) {
      fetch.fail_with(Error{.code = Code::kForbidden, .message = fmt::format("no privileges to list {}: {}", trainer.type, list.error().message)});
    } else if (!list && list.error().code == Code::kUnavailable) {
      fetch.fail_with(list.error());
    } else if (!list) {
      fetch.session.console.debug(fmt::format("list of {} failed: {}", trainer.kind_group(), list.error().message));
    } else {
      for (json::Value& object : *list) {
        // The versions of MPIJob share their objects.
        if (seen.insert(std::string(kube::uid_of(object))).second) fetch.into.objects.push_back({&trainer, std::move(object)});
      }
    }
  }
}

Task<void> list_helpers(Fetch& fetch, std::string ns, std::string job) {
  const std::string mpi = job.empty() ? "mpi_job_name" : "mpi_job_name=" + job;
  const std::string board = job.empty() ? "release,role=tensorboard" : fmt::format("release={},role=tensorboard", job);
  co_await list_into(fetch, client::resources::kJobs, options_of(ns, mpi), fetch.into.launcher_jobs);
  co_await list_into(fetch, client::resources::kServices, options_of(ns, board), fetch.into.services);
  if (!fetch.into.services.empty()) co_await list_into(fetch, client::resources::kNodes, ListOptions{}, fetch.into.nodes);
}

Task<void> list_pods(Fetch& fetch, std::string ns, std::string selector) {
  co_await list_into(fetch, client::resources::kPods, options_of(std::move(ns), std::move(selector)), fetch.into.pods);
}

Task<void> list_all_pods(Fetch& fetch, std::string ns) {
  auto pods = co_await lean_list(fetch.session, client::resources::kPods, std::move(ns), pod_members());
  if (pods) {
    fetch.into.pods = std::move(*pods);
  } else {
    fetch.fail_with(pods.error());
  }
}

void compute_jobs(Snapshot& snapshot, Time now) {
  std::unordered_map<std::string, std::vector<const json::Value*>> pods;
  for (const json::Value& pod : snapshot.pods) {
    for (std::string& key : keys_of_pod(pod)) pods[std::move(key)].push_back(&pod);
  }
  std::unordered_map<std::string, const json::Value*> launchers, boards;
  for (const json::Value& job : snapshot.launcher_jobs) {
    launchers[fmt::format("{} {}", kube::namespace_of(job), kube::label(job, "mpi_job_name"))] = &job;
  }
  for (const json::Value& service : snapshot.services) {
    boards[fmt::format("{} {} {}", kube::namespace_of(service), kube::label(service, "app"), kube::label(service, "release"))] = &service;
  }
  for (const Snapshot::Found& found : snapshot.objects) {
    JobParts parts;
    parts.trainer = found.trainer;
    parts.object = &found.object;
    std::set<const json::Value*> mine;
    for (const std::string& key : keys_of_job(found.object, found.trainer->type)) {
      if (const auto match = pods.find(key); match != pods.end()) mine.insert(match->second.begin(), match->second.end());
    }
    parts.pods.assign(mine.begin(), mine.end());
    const std::string place = fmt::format("{} {}", kube::namespace_of(found.object), kube::name_of(found.object));
    if (const auto job = launchers.find(place); job != launchers.end()) parts.launcher_job = job->second;
    const auto board = boards.find(fmt::format("{} {} {}", kube::namespace_of(found.object), found.trainer->type, kube::name_of(found.object)));
    if (board != boards.end()) parts.tensorboard_service = board->second;
    if (!snapshot.nodes.empty()) parts.first_node = &snapshot.nodes[0];
    snapshot.jobs.push_back(make_job(parts, now));
  }
  std::sort(snapshot.jobs.begin(), snapshot.jobs.end(), [](const Job& a, const Job& b) {
    return a.created != b.created ? a.created > b.created : std::tie(a.ns, a.name, a.trainer) < std::tie(b.ns, b.name, b.trainer);
  });
}

Task<void> get_kinds(Fetch& fetch, std::string name, std::string type) {
  std::set<std::string> seen;
  for (const Trainer& trainer : trainers()) {
    if (!type.empty() && trainer.type != type) continue;
    auto object = co_await fetch.session.cluster().get(trainer.resource, fetch.session.ns, name);
    if (object) {
      if (seen.insert(std::string(kube::uid_of(*object))).second) fetch.into.objects.push_back({&trainer, std::move(*object)});
    } else if (object.error().code == Code::kForbidden) {
      fetch.fail_with(Error{.code = Code::kForbidden, .message = fmt::format("no privileges to get {} {}: {}", trainer.type, name, object.error().message)});
    } else if (!absent(object.error())) {
      fetch.fail_with(object.error());
    }
  }
}

Result<void> check_one(Session& session, const Snapshot& snapshot, const std::string& name) {
  if (snapshot.objects.size() == 1) return {};
  if (snapshot.objects.empty()) {
    return fail(Code::kNotFound, fmt::format("not found training job {} in namespace {}, please use '{} submit' to create it", name, session.ns, session.program));
  }
  std::vector<std::string> types;
  for (const Snapshot::Found& found : snapshot.objects) types.push_back(found.trainer->type);
  return fail(Code::kConflict, fmt::format("there are several training jobs named {} ({}), see '{} list' and choose one with --type", name, join(types, ", "), session.program));
}

}  // namespace

Task<Result<SnapshotPtr>> fetch_jobs(Session& session, JobsQuery query) {
  auto snapshot = std::make_unique<Snapshot>();
  Fetch fetch{session, *snapshot, std::nullopt};
  std::vector<Task<void>> tasks;
  tasks.push_back(list_kinds(fetch, query));
  tasks.push_back(list_all_pods(fetch, query.ns));
  tasks.push_back(list_helpers(fetch, query.ns, ""));
  co_await run_all(session.env, std::move(tasks));
  if (fetch.failure) co_return fail(*fetch.failure);
  compute_jobs(*snapshot, session.now());
  co_return std::move(snapshot);
}

Task<Result<SnapshotPtr>> fetch_job(Session& session, std::string name, std::string type) {
  auto snapshot = std::make_unique<Snapshot>();
  Fetch fetch{session, *snapshot, std::nullopt};
  std::vector<Task<void>> tasks;
  tasks.push_back(get_kinds(fetch, name, type));
  tasks.push_back(list_pods(fetch, session.ns, "release=" + name));
  tasks.push_back(list_helpers(fetch, session.ns, name));
  co_await run_all(session.env, std::move(tasks));
  if (fetch.failure) co_return fail(*fetch.failure);
  if (const auto one = check_one(session, *snapshot, name); !one) co_return fail(one.error());
  if (kube::label(snapshot->objects[0].object, "release") != name) {
    // Not made by submit: its pods are known by their operator's labels or their owner.
    co_await list_pods(fetch, session.ns, "");
    if (fetch.failure) co_return fail(*fetch.failure);
  }
  compute_jobs(*snapshot, session.now());
  co_return std::move(snapshot);
}

Task<Result<Snapshot::Found>> fetch_job_object(Session& session, std::string name, std::string type) {
  Snapshot snapshot;
  Fetch fetch{session, snapshot, std::nullopt};
  co_await get_kinds(fetch, name, type);
  if (fetch.failure) co_return fail(*fetch.failure);
  if (const auto one = check_one(session, snapshot, name); !one) co_return fail(one.error());
  co_return std::move(snapshot.objects[0]);
}

Result<std::string> type_flag(const Values& values) {
  const std::string word = values.text("type");
  if (word.empty()) return std::string();
  const std::string type = training_type(word);
  if (type.empty()) return fail(Code::kInvalid, fmt::format("unsupported training job type: {}, arena only supports: [{}]", word, supported_types()));
  return type == "horovodjob" ? std::string("mpijob") : type;
}

Task<Result<std::vector<json::Value>>> fetch_events(Session& session, std::string ns, std::vector<std::string> uids) {
  const std::set<std::string> wanted(uids.begin(), uids.end());
  auto list = co_await session.cluster().list(client::resources::kEvents, options_of(std::move(ns)));
  if (!list) co_return fail(list.error());
  std::vector<json::Value> events;
  for (json::Value& event : list->items) {
    if (wanted.contains(json::text(json::at(event, "involvedObject", "uid")))) events.push_back(std::move(event));
  }
  const auto when = [](const json::Value& event) {
    for (const char* key : {"lastTimestamp", "eventTime"}) {
      if (const auto time = parse_time(json::as_string(json::at(event, key))); time) return *time;
    }
    return kube::creation_time(event);
  };
  std::sort(events.begin(), events.end(), [&](const json::Value& a, const json::Value& b) {
    const Time left = when(a), right = when(b);
    return left != right ? left < right : kube::name_of(a) < kube::name_of(b);
  });
  co_return events;
}

}  // namespace muster::cli
