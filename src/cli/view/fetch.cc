#include "cli/view/fetch.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <set>
#include <unordered_map>

#include "base/strings.h"
#include "cli/view/members.h"
#include "kube/framework.h"
#include "kube/meta.h"
#include "kube/names.h"
#include "pai/protocol/submit.h"

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

/// The kinds, each with the trainers of its versions.
std::vector<std::vector<const Trainer*>> kinds_of_type(const std::string& type) {
  std::vector<std::vector<const Trainer*>> kinds;
  for (const Trainer& trainer : trainers()) {
    if (!type.empty() && trainer.type != type) continue;
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const auto& versions) {
      return versions[0]->resource.group == trainer.resource.group &&
             versions[0]->resource.plural == trainer.resource.plural;
    });
    if (same == kinds.end()) {
      kinds.push_back({&trainer});
    } else {
      same->push_back(&trainer);
    }
  }
  return kinds;
}

/// A kind that is being looked for: its versions share their objects, so the first that the server
/// has is enough.
struct Kind {
  std::vector<const Trainer*> versions;
  std::size_t next = 0;
  [[nodiscard]] const Trainer* trainer() const { return versions[next]; }
};

/// What is read, and where each answer goes.
class Fetch {
 public:
  Fetch(Session& session, Snapshot& into, const std::string& type)
      : session_(session), into_(into) {
    for (auto& versions : kinds_of_type(type)) kinds_.push_back({std::move(versions)});
  }

  /// Reads the job objects with `make`, and the other lists with them in the first round trip.
  Task<void> run(std::function<Read(const Trainer&)> make) {
    std::vector<Kind*> open;
    for (Kind& kind : kinds_) open.push_back(&kind);
    do {
      std::vector<Read> reads;
      for (const Kind* kind : open) reads.push_back(make(*kind->trainer()));
      for (const auto& list : lists_) reads.push_back(list.read);
      if (reads.empty()) co_return;
      auto answers = co_await read_all(session_, into_.block, std::move(reads));
      if (!answers) {
        fail_with(answers.error());
        co_return;
      }
      std::vector<Kind*> missing;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (!take_jobs(*open[i], (*answers)[i])) missing.push_back(open[i]);
      }
      for (std::size_t i = 0; i < lists_.size(); ++i)
        take_list(lists_[i], (*answers)[open.size() + i]);
      lists_.clear();
      open = std::move(missing);
    } while (!open.empty());
  }
  /// Only the lists.
  Task<void> run() {
    kinds_.clear();
    return run([](const Trainer&) { return Read{}; });
  }

  /// `optional`: whoever may not read it has none.
  void add(Read read, std::vector<json::Value>& into, bool optional = false) {
    lists_.push_back({std::move(read), &into, optional});
  }
  void add_pods(const std::string& ns, std::string selector, Detail detail) {
    add(read_list(
            client::resources::kPods, options_of(ns, std::move(selector)), pod_members(detail)),
        into_.pods);
  }
  /// `boards`: tensorboards too, which rows do not show.
  void add_helpers(const std::string& ns, const std::string& job, bool boards) {
    const std::string mpi =
        std::string(kube::names::kubeflow::kMpiJobName) + (job.empty() ? "" : "=" + job);
    const std::string board =
        job.empty() ? "release,role=tensorboard" : fmt::format("release={},role=tensorboard", job);
    add(read_list(client::resources::kJobs, options_of(ns, mpi), launcher_job_members()),
        into_.launcher_jobs);
    if (boards)
      add(read_list(client::resources::kServices, options_of(ns, board), service_members()),
          into_.services);
  }
  std::optional<Error> failure;

 private:
  struct Wanted {
    Read read;
    std::vector<json::Value>* into = nullptr;
    bool optional = false;
  };

  void fail_with(const Error& error) {
    if (!failure) failure = error;
  }

  /// False when the next version must be tried.
  bool take_jobs(Kind& kind, Result<json::Value>& answer) {
    const Trainer* trainer = kind.trainer();
    if (answer) {
      if (json::at(*answer, "items").is_array()) {
        for (json::Value& object : take_items(*answer))
          into_.objects.push_back({trainer, std::move(object)});
      } else {
        into_.objects.push_back({trainer, std::move(*answer)});
      }
      return true;
    }
    const Error& error = answer.error();
    if (absent(error)) {
      // An answer about the object, not about the path: the other versions would say the same.
      return !error.subject.name.empty() || ++kind.next == kind.versions.size();
    }
    // A cluster that never had OpenPAI's jobs lets nobody ask for them.
    if (error.code == Code::kForbidden && trainer->type == "paijob") return true;
    if (error.code == Code::kForbidden) {
      fail_with(
          Error{.code = Code::kForbidden,
                .message = fmt::format(
                    "no privileges to read jobs of type {}: {}", trainer->type, error.message)});
    } else if (error.code == Code::kUnavailable || error.code == Code::kTimeout ||
               error.code == Code::kUnauthorized) {
      fail_with(error);
    } else {
      session_.console.debug(
          fmt::format("reading {} failed: {}", trainer->kind_group(), error.message));
    }
    return true;
  }

  void take_list(const Wanted& list, Result<json::Value>& answer) {
    if (answer) {
      *list.into = take_items(*answer);
    } else if (!absent(answer.error()) &&
               !(list.optional && answer.error().code == Code::kForbidden)) {
      fail_with(answer.error());
    }
  }

  Session& session_;
  Snapshot& into_;
  std::vector<Kind> kinds_;
  std::vector<Wanted> lists_;
};

/// What is asked only when the first answers call for it.
Task<void> add_details(Fetch& fetch, Snapshot& all, JobsQuery query) {
  // A failed v1alpha1 MPIJob has run until its launcher's conditions last changed, which rows leave
  // out.
  const bool failed =
      query.detail == Detail::kRow &&
      std::any_of(all.objects.begin(), all.objects.end(), [](const Snapshot::Found& found) {
        return json::string_at(found.object, "status", "launcherStatus") == "Failed";
      });
  std::vector<json::Value> others;
  if (failed) {
    for (json::Value& pod : all.pods) {
      if (kube::label(pod, kube::names::kubeflow::kMpiRoleType) != "launcher")
        others.push_back(std::move(pod));
    }
    fetch.add_pods(query.ns, "mpi_role_type=launcher", Detail::kWhole);
  }
  if (!all.services.empty())
    fetch.add(read_list(client::resources::kNodes, ListOptions{}, node_members()), all.nodes);
  if (!failed && all.services.empty()) co_return;
  co_await fetch.run();
  for (json::Value& pod : others) all.pods.push_back(std::move(pod));
}

/// Which pods have which key: long lists are joined by sorting numbers, and texts are compared only
/// where these are equal.
class PodIndex {
 public:
  explicit PodIndex(const std::vector<const json::Value*>& pods) {
    entries_.reserve(pods.size() * 4);
    for (const json::Value* pod : pods) {
      for (std::string& key : keys_of_pod(*pod)) {
        const std::size_t hash = std::hash<std::string>()(key);
        entries_.push_back({hash, std::move(key), pod});
      }
    }
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
      return a.hash != b.hash ? a.hash < b.hash : a.pod < b.pod;
    });
  }

  [[nodiscard]] bool empty() const { return entries_.empty(); }
  void find(const std::string& key, std::vector<const json::Value*>& into) const {
    const std::size_t hash = std::hash<std::string>()(key);
    auto at = std::lower_bound(
        entries_.begin(), entries_.end(), hash, [](const Entry& entry, std::size_t wanted) {
          return entry.hash < wanted;
        });
    for (; at != entries_.end() && at->hash == hash; ++at) {
      if (at->key == key) into.push_back(at->pod);
    }
  }

 private:
  struct Entry {
    std::size_t hash;
    std::string key;
    const json::Value* pod;
  };
  std::vector<Entry> entries_;
};

/// Newest first, then by namespace, name and type. Times of one form compare as texts do.
std::vector<const Snapshot::Found*> newest_first(const std::vector<Snapshot::Found>& objects) {
  struct Key {
    std::string_view created, ns, name;
    const Snapshot::Found* found;
  };
  std::vector<Key> keys;
  keys.reserve(objects.size());
  for (const Snapshot::Found& found : objects) {
    const json::Value& metadata = json::at(found.object, "metadata");
    keys.push_back({json::string_at(metadata, "creationTimestamp"),
                    json::string_at(metadata, "namespace"),
                    json::string_at(metadata, "name"),
                    &found});
  }
  std::sort(keys.begin(), keys.end(), [](const Key& a, const Key& b) {
    if (a.created != b.created) return a.created > b.created;
    return std::tie(a.ns, a.name, a.found->trainer) < std::tie(b.ns, b.name, b.found->trainer);
  });
  std::vector<const Snapshot::Found*> order;
  order.reserve(keys.size());
  for (const Key& key : keys) order.push_back(key.found);
  return order;
}

void compute_jobs(Snapshot& snapshot, Time now) {
  const std::vector<const Snapshot::Found*> order = newest_first(snapshot.objects);
  // Most pods name their job as their owner; only the others are looked for by labels.
  std::unordered_map<std::string_view, std::size_t> by_uid;
  by_uid.reserve(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) by_uid.emplace(kube::uid_of(order[i]->object), i);
  std::vector<std::vector<const json::Value*>> owned(order.size());
  std::vector<const json::Value*> others;
  for (const json::Value& pod : snapshot.pods) {
    bool found = false;
    for (const json::Value& owner : json::array_at(pod, "metadata", "ownerReferences")) {
      const auto job = by_uid.find(json::string_at(owner, "uid"));
      if (job == by_uid.end()) continue;
      owned[job->second].push_back(&pod);
      found = true;
    }
    if (!found) others.push_back(&pod);
  }
  const PodIndex pods(others);
  std::unordered_map<std::string, const json::Value*> launchers, boards;
  for (const json::Value& job : snapshot.launcher_jobs) {
    launchers[fmt::format(
        "{} {}", kube::namespace_of(job), kube::label(job, kube::names::kubeflow::kMpiJobName))] =
        &job;
  }
  for (const json::Value& service : snapshot.services) {
    boards[fmt::format("{} {} {}",
                       kube::namespace_of(service),
                       kube::label(service, "app"),
                       kube::label(service, "release"))] = &service;
  }
  std::unordered_map<std::string, const json::Value*> board_pods;
  for (const json::Value& pod : snapshot.pods) {
    if (!boards.empty() && kube::label(pod, "role") == "tensorboard") {
      board_pods[fmt::format("{} {} {}",
                             kube::namespace_of(pod),
                             kube::label(pod, "app"),
                             kube::label(pod, "release"))] = &pod;
    }
  }
  snapshot.jobs.reserve(snapshot.objects.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Snapshot::Found& found = *order[i];
    JobParts parts;
    parts.trainer = found.trainer;
    parts.object = &found.object;
    parts.pods = std::move(owned[i]);
    if (!pods.empty()) {
      for (const std::string& key : keys_of_job(found.object, found.trainer->type))
        pods.find(key, parts.pods);
    }
    std::sort(parts.pods.begin(), parts.pods.end());
    parts.pods.erase(std::unique(parts.pods.begin(), parts.pods.end()), parts.pods.end());
    const std::string_view ns = kube::namespace_of(found.object),
                           name = kube::name_of(found.object);
    if (!launchers.empty()) {
      if (const auto job = launchers.find(fmt::format("{} {}", ns, name)); job != launchers.end())
        parts.launcher_job = job->second;
    }
    if (!boards.empty()) {
      const auto board = boards.find(fmt::format("{} {} {}", ns, found.trainer->type, name));
      if (board != boards.end()) parts.tensorboard_service = board->second;
      if (const auto pod = board_pods.find(fmt::format("{} {} {}", ns, found.trainer->type, name));
          pod != board_pods.end())
        parts.tensorboard_pod = pod->second;
    }
    if (!snapshot.nodes.empty()) parts.first_node = &snapshot.nodes[0];
    snapshot.jobs.push_back(make_job(parts, now));
  }
}

/// OpenPAI's jobs are named by a digest of their owner and name: `job` or `owner~job` finds them by
/// their labels.
class PaiJobs {
 public:
  PaiJobs(const std::string& name, const std::string& type)
      : wanted_(type.empty() || type == "paijob") {
    const std::size_t tilde = name.find('~');
    const std::string job = tilde == std::string::npos ? name : name.substr(tilde + 1);
    release = pai::label_value(job);
    selector_ = fmt::format("{}={}", kube::names::pai::kRelease, release);
    if (tilde != std::string::npos)
      selector_ += fmt::format(
          ",{}={}", kube::names::pai::kUserName, pai::label_value(name.substr(0, tilde)));
  }

  void ask(Fetch& fetch, const std::string& ns) {
    if (!wanted_) return;
    Read whole = read_list(kube::resources::kFrameworks,
                           options_of(ns, selector_),
                           job_members(Detail::kWhole, "paijob"));
    whole.members = nullptr;
    fetch.add(std::move(whole), found_, /*optional=*/true);
  }
  void take(Snapshot& snapshot) {
    for (json::Value& each : found_)
      snapshot.objects.push_back({find_trainer("paijob"), std::move(each)});
  }
  /// The label that their pods carry, too.
  std::string release;

 private:
  bool wanted_;
  std::string selector_;
  std::vector<json::Value> found_;
};

Result<void> check_one(Session& session, const Snapshot& snapshot, const std::string& name) {
  if (snapshot.objects.size() == 1) return {};
  if (snapshot.objects.empty()) {
    return fail(
        Code::kNotFound,
        fmt::format(
            "not found training job {} in namespace {}, please use '{} submit' to create it",
            name,
            session.ns,
            session.program));
  }
  std::vector<std::string> types;
  for (const Snapshot::Found& found : snapshot.objects) types.push_back(found.trainer->type);
  return fail(
      Code::kConflict,
      fmt::format(
          "there are several training jobs named {} ({}), see '{} list' and choose one with --type",
          name,
          join(types, ", "),
          session.program));
}

}  // namespace

Task<Result<SnapshotPtr>> fetch_jobs(Session& session, JobsQuery query) {
  auto snapshot = std::make_unique<Snapshot>();
  Fetch fetch(session, *snapshot, query.type);
  fetch.add_pods(query.ns, "", query.detail);
  fetch.add_helpers(query.ns, "", query.detail == Detail::kWhole);
  co_await fetch.run([&](const Trainer& trainer) {
    return read_list(
        trainer.resource, options_of(query.ns), job_members(query.detail, trainer.type));
  });
  if (!fetch.failure) co_await add_details(fetch, *snapshot, query);
  if (fetch.failure) co_return fail(*fetch.failure);
  compute_jobs(*snapshot, session.now());
  co_return std::move(snapshot);
}

Task<Result<SnapshotPtr>> fetch_job(Session& session, std::string name, std::string type) {
  auto snapshot = std::make_unique<Snapshot>();
  Fetch fetch(session, *snapshot, type);
  PaiJobs pai_jobs(name, type);
  fetch.add_pods(session.ns, "release=" + pai_jobs.release, Detail::kWhole);
  fetch.add_helpers(session.ns, name, true);
  pai_jobs.ask(fetch, session.ns);
  co_await fetch.run(
      [&](const Trainer& trainer) { return read_object(trainer.resource, session.ns, name); });
  if (fetch.failure) co_return fail(*fetch.failure);
  pai_jobs.take(*snapshot);
  if (const auto one = check_one(session, *snapshot, name); !one) co_return fail(one.error());
  // Pods of a job that was not made by submit are known by their operator's labels or their owner.
  const bool submitted = kube::label(snapshot->objects[0].object, "release") == pai_jobs.release;
  if (!submitted) fetch.add_pods(session.ns, "", Detail::kWhole);
  JobsQuery query;
  query.ns = session.ns;
  query.detail = Detail::kWhole;
  co_await add_details(fetch, *snapshot, query);
  if (!submitted) co_await fetch.run();
  if (fetch.failure) co_return fail(*fetch.failure);
  compute_jobs(*snapshot, session.now());
  co_return std::move(snapshot);
}

Task<Result<Snapshot::Found>> fetch_job_object(Session& session,
                                               std::string name,
                                               std::string type) {
  Snapshot snapshot;
  Fetch fetch(session, snapshot, type);
  PaiJobs pai_jobs(name, type);
  pai_jobs.ask(fetch, session.ns);
  co_await fetch.run(
      [&](const Trainer& trainer) { return read_object(trainer.resource, session.ns, name); });
  if (fetch.failure) co_return fail(*fetch.failure);
  pai_jobs.take(snapshot);
  if (const auto one = check_one(session, snapshot, name); !one) co_return fail(one.error());
  // A copy: the snapshot's memory goes with it.
  co_return Snapshot::Found{snapshot.objects[0].trainer,
                            json::Value(snapshot.objects[0].object, boost::json::storage_ptr())};
}

Result<std::string> type_flag(const Session& session, const Values& values) {
  const std::string word = values.text("type");
  if (word.empty()) return std::string();
  const std::string type = training_type(word);
  if (type.empty())
    return fail(Code::kInvalid,
                fmt::format("unsupported training job type: {}, {} only supports: [{}]",
                            word,
                            session.program,
                            supported_types()));
  return type == "horovodjob" ? std::string("mpijob") : type;
}

Task<Result<std::vector<json::Value>>> fetch_events(Session& session,
                                                    std::string ns,
                                                    std::vector<std::string> uids) {
  const std::set<std::string> wanted(uids.begin(), uids.end());
  auto list =
      co_await session.cluster().list(client::resources::kEvents, options_of(std::move(ns)));
  if (!list) co_return fail(list.error());
  std::vector<json::Value> events;
  for (json::Value& event : list->items) {
    if (wanted.contains(json::text_at(event, "involvedObject", "uid")))
      events.push_back(std::move(event));
  }
  const auto when = [](const json::Value& event) {
    for (const char* key : {"lastTimestamp", "eventTime"}) {
      if (const auto time = parse_time(json::string_at(event, key)); time) return *time;
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
