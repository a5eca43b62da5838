#include "cli/view/explain_subject.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

/// What else has pods, by the word that people put before its name.
struct Workload {
  std::string_view word;
  const client::Resource& resource;
};
const Workload kWorkloads[] = {{"job", client::resources::kJobs},
                               {"deployment", client::resources::kDeployments},
                               {"statefulset", client::resources::kStatefulSets},
                               {"daemonset", client::resources::kDaemonSets}};

/// The pods that an object controls, itself or through ReplicaSets.
Task<std::vector<json::Value>> fetch_pods_of(Session& session, std::string uid) {
  client::ListOptions here;
  here.ns = session.ns;
  std::set<std::string, std::less<>> owners{uid};
  const auto sets = co_await session.cluster().list(client::resources::kReplicaSets, here);
  for (const json::Value& set : sets ? sets->items : std::vector<json::Value>()) {
    if (kube::controller_of(set).uid == uid) owners.emplace(kube::uid_of(set));
  }
  std::vector<json::Value> out;
  auto pods = co_await session.cluster().list(client::resources::kPods, here);
  if (!pods) co_return out;
  for (json::Value& pod : pods->items) {
    if (owners.contains(kube::controller_of(pod).uid)) out.push_back(std::move(pod));
  }
  co_return out;
}

/// "deployment/web", or "web" for any kind; NotFound when there is none.
Task<Result<std::unique_ptr<Subject>>> fetch_workload(Session& session, std::string name) {
  const std::size_t slash = name.find('/');
  const std::string word = slash == std::string::npos ? "" : name.substr(0, slash);
  const std::string bare = slash == std::string::npos ? name : name.substr(slash + 1);
  for (const Workload& workload : kWorkloads) {
    if (!word.empty() && word != workload.word) continue;
    auto found = co_await session.cluster().get(workload.resource, session.ns, bare);
    if (!found && found.error().code == Code::kNotFound) continue;
    if (!found) co_return fail(found.error());
    auto subject = std::make_unique<Subject>();
    subject->object = std::move(*found);
    subject->pods = co_await fetch_pods_of(session, std::string(kube::uid_of(subject->object)));
    std::vector<const json::Value*> pods;
    for (const json::Value& pod : subject->pods) pods.push_back(&pod);
    subject->job = job_of_workload(subject->object, pods, session.now());
    co_return subject;
  }
  co_return fail(Code::kNotFound, "");
}

Task<Result<std::unique_ptr<Subject>>> fetch_subject(Session& session,
                                                     std::string name,
                                                     std::string type) {
  auto subject = std::make_unique<Subject>();
  const bool pod_asked = name.starts_with("pod/");
  const bool kind_asked = name.find('/') != std::string::npos;
  if (!kind_asked) {
    auto fetched = co_await fetch_job(session, name, type);
    if (fetched) {
      subject->snapshot = std::move(*fetched);
      subject->job = subject->snapshot->jobs[0];
      co_return subject;
    }
    if (fetched.error().code != Code::kNotFound || !type.empty()) co_return fail(fetched.error());
  }
  if (!pod_asked) {
    auto workload = co_await fetch_workload(session, name);
    if (workload || workload.error().code != Code::kNotFound) co_return workload;
  }
  const bool pod_meant = pod_asked || !kind_asked;
  Result<json::Value> pod = fail(Code::kNotFound, "");
  if (pod_meant)
    pod = co_await session.cluster().get(
        client::resources::kPods, session.ns, pod_asked ? name.substr(4) : name);
  if (!pod && pod.error().code == Code::kNotFound) {
    co_return fail(
        Code::kNotFound,
        fmt::format(
            "found neither a training job nor a pod {} in namespace {}, see '{} list' and 'kubectl get pods'",
            name,
            session.ns,
            session.program));
  }
  if (!pod) co_return fail(pod.error());
  subject->object = std::move(*pod);
  subject->job = job_of_pod(subject->object, session.now());
  co_return subject;
}

/// A pod that was made just now, and that the scheduler has not answered yet.
bool too_fresh(const Job& job, Time now) {
  return std::any_of(job.instances.begin(), job.instances.end(), [&](const Instance& instance) {
    return instance.phase == "PENDING" && now - instance.created < std::chrono::seconds(10) &&
           json::string_at(kube::condition(*instance.pod, "PodScheduled"), "status").empty();
  });
}

}  // namespace

Task<Result<std::unique_ptr<Subject>>> fetch_answered(Session& session,
                                                      std::string name,
                                                      std::string type) {
  auto subject = co_await fetch_subject(session, name, type);
  for (int looks = 0; looks < 20 && subject && !session.fixed_now; ++looks) {
    if (!too_fresh((*subject)->job, session.now())) break;
    co_await session.env.sleep(std::chrono::milliseconds(150));
    subject = co_await fetch_subject(session, name, type);
  }
  co_return subject;
}

Task<void> read_last_lines(Session& session, std::string ns, std::vector<Crash>& crashes) {
  for (Crash& crash : crashes) {
    const std::string target =
        fmt::format("/api/v1/namespaces/{}/pods/{}/log?tailLines=3{}{}",
                    ns,
                    crash.instance->name,
                    crash.container.empty() ? "" : "&container=" + crash.container,
                    crash.waits ? "&previous=true" : "");
    auto stream = co_await session.cluster().http().stream(session.request("GET", target));
    if (!stream || (*stream)->status() != 200) continue;
    std::string text;
    for (;;) {
      const auto piece = co_await (*stream)->read();
      if (!piece || piece->empty() || text.size() > 4096) break;
      text += *piece;
    }
    for (const std::string& line : split_nonempty(text, '\n'))
      crash.lines.push_back(line.substr(0, 200));
  }
}

Task<Others> fetch_others(Session& session) {
  JobsQuery everywhere;
  everywhere.detail = Detail::kWhole;  // with the priority
  auto fetched = co_await fetch_jobs(session, everywhere);
  if (!fetched) {
    // Not everybody may look into all namespaces.
    everywhere.ns = session.ns;
    fetched = co_await fetch_jobs(session, everywhere);
  }
  Others others;
  if (!fetched) co_return others;
  others.snapshot = std::move(*fetched);
  std::set<const json::Value*> of_jobs;
  for (const Job& job : others.snapshot->jobs) {
    for (const Instance& instance : job.instances) of_jobs.insert(instance.pod);
  }
  for (const json::Value& pod : others.snapshot->pods) {
    if (!of_jobs.contains(&pod) && pod_gpus(pod) > 0)
      others.pods.push_back(job_of_pod(pod, session.now()));
  }
  co_return others;
}

}  // namespace muster::cli
