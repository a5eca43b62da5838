#include "cli/fetch.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/strings.h"
#include "cli/members.h"
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

/// The versions of a kind share their objects: the first version that the server has is enough.
Task<void> list_kind(Fetch& fetch, std::vector<const Trainer*> versions, JobsQuery query) {
  for (const Trainer* trainer : versions) {
    auto list = co_await list_members(fetch.session, trainer->resource, options_of(query.ns), job_members(query.detail));
    if (list) {
      for (json::Value& object : *list) fetch.into.objects.push_back({trainer, std::move(object)});
      co_return;
    }
    if (absent(list.error())) continue;
    if (list.error().code == Code::kForbidden) {
      fetch.fail_with(Error{.code = Code::kForbidden, .message = fmt::format("no privileges to list {}: {}", trainer->type, list.error().message)});
    } else if (list.error().code == Code::kUnavailable || list.error().code == Code::kTimeout || list.error().code == Code::kUnauthorized) {
      fetch.fail_with(list.error());
    } else {
      fetch.session.console.debug(fmt::format("list of {} failed: {}", trainer->kind_group(), list.error().message));
    }
    co_return;
  }
}

/// The kinds, each with the trainers of its versions.
std::vector<std::vector<const Trainer*>> kinds_of_type(const std::string& type) {
  std::vector<std::vector<const Trainer*>> kinds;
  for (const Trainer& trainer : trainers()) {
    if (!type.empty() && trainer.type != type) continue;
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& versions) {
      return versions[0]->resource.group == trainer.resource.group && versions[0]->resource.plural == trainer.resource.plural;
    });
    if (same == kinds.end()) {
      kinds.push_back({&trainer});
    } else {
      same->push_back(&trainer);
    }
  }
  return kinds;
}

Task<void> list_helpers(Fetch& fetch, std::string ns, std::string job) {
  const std::string mpi = job.empty() ? "mpi_job_name" : "mpi_job_name=" + job;
  const std::string board = job.empty() ? "release,role=tensorboard" : fmt::format("release={},role=tensorboard", job);
  co_await list_into(fetch, client::resources::kJobs, options_of(ns, mpi), fetch.into.launcher_jobs);
  co_await list_into(fetch, client::resources::kServices, options_of(ns, board), fetch.into.services);
  if (!fetch.into.services.empty()) co_await list_into(fetch, client::resources::kNodes, ListOptions{}, fetch.into.nodes);
}

Task<void> list_pods(Fetch& fetch, std::string ns, std::string selector, Detail detail) {
  auto pods = co_await list_members(fetch.session, client::resources::kPods, options_of(std::move(ns), std::move(selector)), pod_members(detail));
  if (pods) {
    fetch.into.pods = std::move(*pods);
  } else {
    fetch.fail_with(pods.error());
  }
}

/// A failed v1alpha1 MPIJob has run until its launcher's conditions last changed, which rows leave out.
Task<void> add_failed_launchers(Fetch& fetch, JobsQuery query) {
  Snapshot& all = fetch.into;
  const bool needed = query.detail == Detail::kRow && std::any_of(all.objects.begin(), all.objects.end(), [](const Snapshot::Found& found) {
    return json::as_string(json::at(found.object, "status", "launcherStatus")) == "Failed";
  });
  if (!needed) co_return;
  std::vector<json::Value> others;
  for (json::Value& pod : all.pods) {
    if (kube::label(pod, "mpi_role_type") != "launcher") others.push_back(std::move(pod));
  }
  co_await list_pods(fetch, query.ns, "mpi_role_type=launcher", Detail::kWhole);
  for (json::Value& pod : others) all.pods.push_back(std::move(pod));
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
  std::unordered_map<std::string, const json::Value*> board_pods;
  for (const json::Value& pod : snapshot.pods) {
    if (!boards.empty() && kube::label(pod, "role") == "tensorboard") {
      board_pods[fmt::format("{} {} {}", kube::namespace_of(pod), kube::label(pod, "app"), kube::label(pod, "release"))] = &pod;
    }
  }
  snapshot.jobs.reserve(snapshot.objects.size());
  for (const Snapshot::Found& found : snapshot.objects) {
    JobParts parts;
    parts.trainer = found.trainer;
    parts.object = &found.object;
    for (const std::string& key : keys_of_job(found.object, found.trainer->type)) {
      if (const auto match = pods.find(key); match != pods.end()) parts.pods.insert(parts.pods.end(), match->second.begin(), match->second.end());
    }
    std::sort(parts.pods.begin(), parts.pods.end());
    parts.pods.erase(std::unique(parts.pods.begin(), parts.pods.end()), parts.pods.end());
    const std::string_view ns = kube::namespace_of(found.object), name = kube::name_of(found.object);
    if (!launchers.empty()) {
      if (const auto job = launchers.find(fmt::format("{} {}", ns, name)); job != launchers.end()) parts.launcher_job = job->second;
    }
    if (!boards.empty()) {
      const auto board = boards.find(fmt::format("{} {} {}", ns, found.trainer->type, name));
      if (board != boards.end()) parts.tensorboard_service = board->second;
      if (const auto pod = board_pods.find(fmt::format("{} {} {}", ns, found.trainer->type, name)); pod != board_pods.end()) parts.tensorboard_pod = pod->second;
    }
    if (!snapshot.nodes.empty()) parts.first_node = &snapshot.nodes[0];
    snapshot.jobs.push_back(make_job(parts, now));
  }
  std::sort(snapshot.jobs.begin(), snapshot.jobs.end(), [](const Job& a, const Job& b) {
    return a.created != b.created ? a.created > b.created : std::tie(a.ns, a.name, a.trainer) < std::tie(b.ns, b.name, b.trainer);
  });
}

Task<void> get_kind(Fetch& fetch, std::vector<const Trainer*> versions, std::string name) {
  for (const Trainer* trainer : versions) {
    auto object = co_await fetch.session.cluster().get(trainer->resource, fetch.session.ns, name);
    if (object) {
      fetch.into.objects.push_back({trainer, std::move(*object)});
      co_return;
    }
    // An answer about the object, not about the path: the other versions would say the same.
    if (absent(object.error()) && !object.error().subject.name.empty()) co_return;
    if (absent(object.error())) continue;
    if (object.error().code == Code::kForbidden) {
      fetch.fail_with(Error{.code = Code::kForbidden, .message = fmt::format("no privileges to get {} {}: {}", trainer->type, name, object.error().message)});
    } else {
      fetch.fail_with(object.error());
    }
    co_return;
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
  for (const auto& versions : kinds_of_type(query.type)) tasks.push_back(list_kind(fetch, versions, query));
  tasks.push_back(list_pods(fetch, query.ns, "", query.detail));
  tasks.push_back(list_helpers(fetch, query.ns, ""));
  co_await run_all(session.env, std::move(tasks));
  co_await add_failed_launchers(fetch, query);
  if (fetch.failure) co_return fail(*fetch.failure);
  compute_jobs(*snapshot, session.now());
  co_return std::move(snapshot);
}

Task<Result<SnapshotPtr>> fetch_job(Session& session, std::string name, std::string type) {
  auto snapshot = std::make_unique<Snapshot>();
  Fetch fetch{session, *snapshot, std::nullopt};
  std::vector<Task<void>> tasks;
  for (const auto& versions : kinds_of_type(type)) tasks.push_back(get_kind(fetch, versions, name));
  tasks.push_back(list_pods(fetch, session.ns, "release=" + name, Detail::kWhole));
  tasks.push_back(list_helpers(fetch, session.ns, name));
  co_await run_all(session.env, std::move(tasks));
  if (fetch.failure) co_return fail(*fetch.failure);
  if (const auto one = check_one(session, *snapshot, name); !one) co_return fail(one.error());
  if (kube::label(snapshot->objects[0].object, "release") != name) {
    // Not made by submit: its pods are known by their operator's labels or their owner.
    co_await list_pods(fetch, session.ns, "", Detail::kWhole);
    if (fetch.failure) co_return fail(*fetch.failure);
  }
  compute_jobs(*snapshot, session.now());
  co_return std::move(snapshot);
}

Task<Result<Snapshot::Found>> fetch_job_object(Session& session, std::string name, std::string type) {
  Snapshot snapshot;
  Fetch fetch{session, snapshot, std::nullopt};
  std::vector<Task<void>> tasks;
  for (const auto& versions : kinds_of_type(type)) tasks.push_back(get_kind(fetch, versions, name));
  co_await run_all(session.env, std::move(tasks));
  if (fetch.failure) co_return fail(*fetch.failure);
  if (const auto one = check_one(session, snapshot, name); !one) co_return fail(one.error());
  co_return std::move(snapshot.objects[0]);
}

Result<std::string> type_flag(const Session& session, const Values& values) {
  const std::string word = values.text("type");
  if (word.empty()) return std::string();
  const std::string type = training_type(word);
  if (type.empty()) return fail(Code::kInvalid, fmt::format("unsupported training job type: {}, {} only supports: [{}]", word, session.program, supported_types()));
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
