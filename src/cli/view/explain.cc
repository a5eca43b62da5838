/// `explain`: why a job, or a pod without one, is where it is, from what the scheduler and the
/// controllers wrote down.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/answers.h"
#include "cli/view/explain_ends.h"
#include "cli/view/explain_subject.h"
#include "cli/view/explain_things.h"
#include "cli/view/fetch.h"
#include "cli/view/job.h"
#include "cli/view/starts.h"
#include "cli/view/tabwriter.h"
#include "kube/meta.h"
#include "kube/names.h"

namespace muster::cli {
namespace {

using json::at;

struct ExplainSources {
  const Job* job = nullptr;
  std::vector<const json::Value*> groups;  // PodGroups of the job
  std::vector<const json::Value*> events;  // about the job, its pods and groups; oldest first
  const json::Value* queue = nullptr;
  /// Jobs of the cluster and pods without one, for a job that waits: who has what it waits for.
  std::vector<const Job*> others;
  std::vector<Crash> crashes;
  Fit fit;                         // of a job that waits
  std::string program = "muster";  // how hints name the program
};
Time event_time(const json::Value& event) {
  for (const char* key : {"lastTimestamp", "eventTime", "firstTimestamp"}) {
    if (const auto time = parse_time(json::string_at(event, key)); time) return *time;
  }
  return kube::creation_time(event);
}

std::string headline(const Job& job, const std::string& program, Time now) {
  const std::string since = short_human_duration(now - job.created);
  const std::string gpus =
      job.requested_gpus > 0
          ? fmt::format("{} GPU{}", job.requested_gpus, job.requested_gpus == 1 ? "" : "s")
          : "no GPUs";
  if (job.status == "RUNNING" && crash_loops(job))
    return fmt::format("{} does not run: it crashes again and again, for {} now.", job.name, since);
  if (job.status == "RUNNING")
    return fmt::format("{} runs for {} on {} of {}.",
                       job.name,
                       short_human_duration(job.duration),
                       job.allocated_gpus,
                       gpus);
  if (job.status == "SUCCEEDED")
    return fmt::format("{} has succeeded after {}.", job.name, short_human_duration(job.duration));
  if (job.status == "FAILED")
    return fmt::format("{} has failed after {}.", job.name, short_human_duration(job.duration));
  if (job.status == "SUSPENDED")
    return fmt::format(
        "{} is suspended; `{} resume {}` queues it again.", job.name, program, job.name);
  return fmt::format("{} has waited {} for {}.", job.name, since, gpus);
}

/// "a; b. c" in its parts, each of which says one thing.
std::vector<std::string> sentences_of(std::string_view message) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  const auto add = [&](std::size_t end) {
    std::string_view part = trim(message.substr(begin, end - begin));
    while (part.ends_with('.')) part.remove_suffix(1);
    if (!part.empty() && std::find(out.begin(), out.end(), part) == out.end())
      out.emplace_back(part);
  };
  for (std::size_t i = 0; i + 1 < message.size(); ++i) {
    if (message[i + 1] != ' ' || (message[i] != '.' && message[i] != ';')) continue;
    add(i);
    begin = i + 1;
  }
  add(message.size());
  return out;
}

/// What was said already is not said again.
class Told {
 public:
  /// The parts that are new, which are then told.
  std::vector<std::string> news(std::string_view message) {
    std::vector<std::string> fresh;
    for (std::string& sentence : sentences_of(message)) {
      if (told_.insert(sentence).second) fresh.push_back(std::move(sentence));
    }
    return fresh;
  }
  [[nodiscard]] bool holds(std::string_view message) const {
    const std::vector<std::string> parts = sentences_of(message);
    return std::all_of(
        parts.begin(), parts.end(), [&](const std::string& part) { return told_.contains(part); });
  }
  /// "nvidia.com/gpu: wants 4, 2 left of 2": more than there will ever be.
  [[nodiscard]] bool beyond_limit() const {
    return std::any_of(told_.begin(), told_.end(), [](const std::string& part) {
      const std::size_t wants = part.find(": wants "), limit = part.find(" left of ");
      if (wants == std::string::npos || limit == std::string::npos) return false;
      const auto wanted = parse_int(part.substr(wants + 8, part.find(',', wants) - wants - 8));
      const auto most = parse_int(part.substr(limit + 9, part.find(',', limit) - limit - 9));
      return wanted && most && *wanted > *most;
    });
  }
  [[nodiscard]] bool mentions(std::string_view words) const {
    return std::any_of(told_.begin(), told_.end(), [&](const std::string& part) {
      return part.find(words) != std::string::npos;
    });
  }

 private:
  std::set<std::string> told_;
};

/// Instances that share a reason are told together.
std::string waiting_part(const Job& job, Told& told) {
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const Instance& instance : job.instances) {
    if (instance.phase != "PENDING") continue;
    const json::Value& scheduled = kube::condition(*instance.pod, "PodScheduled");
    std::string reason;
    if (json::string_at(scheduled, "status") == "False") {
      reason = json::text_at(scheduled, "message");
      if (reason.empty()) reason = json::as_string(at(scheduled, "reason"), "Unschedulable");
    } else if (json::string_at(scheduled, "status") == "True") {
      reason = fmt::format("has its node ({}) and is {}", instance.node, instance.status);
    } else {
      reason = "the scheduler has not looked at it yet";
    }
    if (!by_reason.contains(reason)) order.push_back(reason);
    by_reason[reason].push_back(instance.name);
  }
  std::string out;
  for (const std::string& reason : order) {
    const std::vector<std::string>& names = by_reason[reason];
    out +=
        fmt::format("  {}\n",
                    names.size() <= 3
                        ? join(names, ", ")
                        : fmt::format("{}, {} and {} more", names[0], names[1], names.size() - 2));
    (void)told.news(reason);
    for (const std::string& sentence : sentences_of(reason))
      out += fmt::format("    {}\n", sentence);
  }
  return out.empty() ? "" : "\nWaiting:\n" + out;
}

std::string group_part(const std::vector<const json::Value*>& groups, Told& told) {
  std::string out;
  for (const json::Value* group : groups) {
    out += fmt::format("  {} is {}, {} of at least {} running, queue {}\n",
                       kube::name_of(*group),
                       json::as_string(at(*group, "status", "phase"), "Pending"),
                       json::int_at(*group, "status", "running"),
                       json::int_at(*group, "spec", "minMember"),
                       json::as_string(at(*group, "spec", "queue"), "default"));
    for (const json::Value& condition : json::array_at(*group, "status", "conditions")) {
      if (json::string_at(condition, "status") != "True" ||
          json::string_at(condition, "type") == "Scheduled")
        continue;
      for (const std::string& sentence : told.news(json::string_at(condition, "message")))
        out += fmt::format("    {}\n", sentence);
    }
  }
  return out.empty() ? "" : "\nGang:\n" + out;
}

/// The jobs that have what this one waits for, the largest first.
std::string holders_part(const ExplainSources& sources) {
  constexpr std::size_t kShown = 5;
  std::vector<const Job*> holders;
  std::int64_t rest = 0;
  for (const Job* job : sources.others) {
    if (job->allocated_gpus > 0 && job->uid != sources.job->uid) holders.push_back(job);
  }
  std::stable_sort(holders.begin(), holders.end(), [](const Job* a, const Job* b) {
    return a->allocated_gpus > b->allocated_gpus;
  });
  if (holders.empty()) return "";
  std::string table;
  for (std::size_t i = 0; i < holders.size(); ++i) {
    const Job& job = *holders[i];
    if (i >= kShown) {
      rest += job.allocated_gpus;
      continue;
    }
    table += fmt::format("  {}{}{}\t{} GPU{}\tpriority {}\tfor {}\n",
                         job.ns == sources.job->ns ? "" : job.ns + "/",
                         job.trainer == nullptr ? "pod/" : "",
                         job.name,
                         job.allocated_gpus,
                         job.allocated_gpus == 1 ? "" : "s",
                         job.priority,
                         short_human_duration(job.duration));
  }
  std::string out = "\nGPUs are held by:\n" + tabulate(table);
  if (rest > 0)
    out += fmt::format("  and {} more jobs with {} GPUs\n", holders.size() - kShown, rest);
  return out;
}

std::string advice_part(const ExplainSources& sources, const Told& told) {
  const std::string& program = sources.program;
  const std::string queue =
      sources.queue == nullptr ? sources.job->queue : std::string(kube::name_of(*sources.queue));
  std::vector<std::string> lines;
  if (told.mentions("even when empty")) {
    lines.push_back(
        "No node is large enough for one instance: ask for less for each (--gpus, --cpu, --memory), or add a larger node.");
  } else if (told.beyond_limit()) {
    lines.push_back(fmt::format(
        "It asks for more than queue {0} may ever use: ask for less, or give the queue more (`{1} queue set {0} --capability …`).",
        queue,
        program));
  } else if (told.mentions("is at its limit") || told.mentions("has used up its share") ||
             told.mentions("not admitted to queue")) {
    lines.push_back(fmt::format(
        "Queue {0} has no room left: its jobs must end first, or it gets more (`{1} queue set {0} --capability …`).",
        queue,
        program));
  } else if (told.mentions("queue") && told.mentions("does not exist")) {
    lines.push_back(fmt::format(
        "Create the queue (`{} queue create NAME`); the job then starts by itself.", program));
  } else if (told.mentions("takes no new work")) {
    lines.push_back(fmt::format(
        "The queue is closed: `{} queue open {}` lets its jobs start.", program, queue));
  } else if (sources.fit.never()) {
    // Said where it is shown.
  } else if (told.mentions("Insufficient") || told.mentions("members can be placed")) {
    lines.push_back(fmt::format(
        "It starts by itself when enough is free. A higher --priority than a holder's takes its place (`{} priority list`).",
        program));
  }
  if (told.mentions("untolerated taint"))
    lines.emplace_back("Some nodes are tainted: --toleration lets the job use them.");
  if (told.mentions("node affinity/selector"))
    lines.emplace_back("Some nodes do not match its --selector.");
  if (told.mentions("were unschedulable"))
    lines.emplace_back("Some nodes are cordoned: `kubectl uncordon NODE` opens them.");
  if (lines.empty()) return "";
  return "\nWhat helps:\n  " + join(lines, "\n  ") + "\n";
}

std::string queue_part(const json::Value* queue) {
  if (queue == nullptr) return "";
  std::string out = fmt::format("\nQueue {}, {}:\n",
                                kube::name_of(*queue),
                                json::as_string(at(*queue, "status", "state"), "Open"));
  const auto gpus = [&](const json::Value& map) {
    return at(map, "nvidia.com/gpu").is_null()
               ? std::string("-")
               : std::string(json::as_string(at(map, "nvidia.com/gpu"), "0"));
  };
  return out + fmt::format("  GPUs allocated {}, guaranteed {}, deserved {}, at most {}\n",
                           gpus(at(*queue, "status", "allocated")),
                           gpus(at(*queue, "spec", "guarantee", "resource")),
                           gpus(at(*queue, "spec", "deserved")),
                           gpus(at(*queue, "spec", "capability")));
}

/// Conditions of the job itself, in the order in which they changed.
std::string history_part(const Job& job) {
  std::string table;
  for (const json::Value& condition : json::array_at(*job.object, "status", "conditions")) {
    if (json::string_at(condition, "status") != "True") continue;
    const auto when = parse_time(json::string_at(condition, "lastTransitionTime"));
    table += fmt::format("  {}\t{}\t{}\n",
                         when ? local_time(*when) : "-",
                         json::string_at(condition, "type"),
                         json::string_at(condition, "message"));
  }
  return table.empty() ? "" : "\nConditions:\n" + tabulate(table);
}

std::string event_part(const std::vector<const json::Value*>& events, const Told& told, Time now) {
  // What tells why: scheduling, preemption, failures. Routine (pulled, created, started) stays with
  // `get -e`.
  std::string table;
  for (const json::Value* event : events) {
    const std::string_view reason = json::string_at(*event, "reason");
    const bool tells = json::string_at(*event, "type") == "Warning" || reason == "Preempted" ||
                       reason == "Scheduled" || reason == "Preempting" ||
                       reason == "Unschedulable" || reason.ends_with("Failed") ||
                       reason.ends_with("Restarting") || reason.ends_with("Suspended") ||
                       reason.ends_with("Resumed");
    // The pod's own event says the same, without "Error pod … condition message".
    const bool repeats =
        reason == "Unschedulable" && json::string_at(*event, "involvedObject", "kind") != "Pod";
    const bool known = (reason == "FailedScheduling" || reason == "Unschedulable") &&
                       told.holds(json::string_at(*event, "message"));
    if (!tells || repeats || known) continue;
    table += fmt::format("  {}\t{}\t{}/{}\t{}\n",
                         short_human_duration(now - event_time(*event)),
                         reason,
                         to_lower(json::string_at(*event, "involvedObject", "kind")),
                         json::string_at(*event, "involvedObject", "name"),
                         replace_all(json::string_at(*event, "message"), "\n", " "));
  }
  return table.empty() ? "" : "\nWhat happened (time ago):\n" + tabulate(table);
}

/// `queue/Q`, `node/N` and `vc/V`; nothing when another thing is meant.
Task<std::optional<int>> explain_thing(Session& session, std::string asked) {
  if (asked.starts_with("vc/")) {
    const int code = co_await explain_virtual_cluster(session, asked.substr(3));
    co_return code;
  }
  const bool queue = asked.starts_with("queue/"), node = asked.starts_with("node/");
  if (!queue && !node) co_return std::nullopt;
  const std::string name = asked.substr(asked.find('/') + 1);
  const auto& resource = queue ? client::resources::kQueues : client::resources::kNodes;
  const auto found = co_await session.cluster().get(resource, "", name);
  if (!found) co_return session.failed(found.error());
  const auto listed = co_await session.cluster().list(
      queue ? client::resources::kPodGroups : client::resources::kPods, {});
  std::vector<const json::Value*> all;
  if (listed) {
    for (const json::Value& object : listed->items) all.push_back(&object);
  }
  session.console.out(session.console.paint_table(queue
                                                      ? explain_queue(*found, all, session.now())
                                                      : explain_node(*found, all, session.now())));
  co_return 0;
}

/// The PodGroup that a pod names, in the ways that the scheduler understands.
std::string_view group_of_pod(const json::Value& pod) {
  for (const std::string_view key :
       {kube::names::volcano::kGroupName, kube::names::volcano::kNewGroupName}) {
    if (const std::string_view name = kube::annotation(pod, key); !name.empty()) return name;
  }
  return "";
}

bool has_group(const Job& job, const json::Value& group) {
  const std::string_view name = kube::name_of(group);
  if (job.trainer == nullptr) return name == group_of_pod(*job.object);
  return name == job.name || name == job.trainer->type + "-" + job.name ||
         kube::controller_of(group).uid == job.uid;
}

/// What the pods of a job are called between its name and their number: "master", "ps", the name of
/// a Volcano task.
std::vector<std::string> roles_of(const json::Value& job) {
  std::vector<std::string> roles{"launcher", "worker"};
  for (const auto& [field, value] : json::object_at(job, "spec")) {
    if (!field.ends_with("ReplicaSpecs")) continue;
    for (const auto& [role, spec] : json::as_object(value)) roles.push_back(to_lower(role));
  }
  for (const json::Value& task : json::array_at(job, "spec", "tasks"))
    roles.emplace_back(json::string_at(task, "name"));
  return roles;
}

std::string explain_text(const ExplainSources& sources, Time now) {
  const Job& job = *sources.job;
  std::string out = headline(job, sources.program, now) + "\n";
  if (!job.reason.empty()) out += fmt::format("  {}\n", job.reason);
  if (const kube::OwnerReference owner = kube::controller_of(*job.object);
      job.trainer == nullptr && !owner.name.empty())
    out += fmt::format("  It belongs to {} {}.\n", owner.kind, owner.name);
  if (job.instances.empty() && !job.finished() && job.status != "SUSPENDED")
    out +=
        "  It has no instances yet: its controller has not made them, or waits for its gang to be admitted.\n";
  Told told;
  out += crash_part(sources.crashes);
  if (!job.finished()) {
    if (job.status != "RUNNING" && job.status != "SUSPENDED") out += never_part(sources.fit);
    // In this order: each part leaves out what those before it said.
    out += waiting_part(job, told);
    out += group_part(sources.groups, told);
    out += queue_part(sources.queue);
    if (job.status != "RUNNING" && job.status != "SUSPENDED")
      out += (sources.fit.never() ? "" : holders_part(sources)) + advice_part(sources, told);
  }
  return out + history_part(job) + event_part(sources.events, told, now);
}

/// When it starts, and what would start it now. An older server, or one that does not decide, has no
/// such answer.
Task<std::string> foretold_part(Session& session, const Job& job) {
  if (job.finished() || job.status == "RUNNING" || job.status == "SUSPENDED") co_return "";
  const auto foretold = co_await ask(session,
                                     fmt::format("namespaces/{}/when", job.ns),
                                     {{"name", job.name}, {"alternatives", "true"}});
  if (!foretold || json::array_at(*foretold, "items").empty()) co_return "";
  co_return starts_part(json::array_at(*foretold, "items")[0], session.now());
}

}  // namespace

/// One piece: what is read decides what is read next.
Task<int> run_explain(Invocation& call) {
  Session& session = call.session;
  const auto type = type_flag(session, call.values);
  if (!type) co_return session.failed(type.error());
  const auto thing = co_await explain_thing(session, call.values.args[0]);
  if (thing) co_return *thing;
  const auto subject = co_await fetch_answered(session, call.values.args[0], *type);
  if (!subject) co_return session.failed(subject.error());
  const Job& job = (*subject)->job;
  Others others;
  if (!job.finished() && job.status != "RUNNING") others = co_await fetch_others(session);

  client::ListOptions here;
  here.ns = session.ns;
  const auto groups = co_await session.cluster().list(client::resources::kPodGroups, here);
  ExplainSources sources;
  sources.job = &job;
  if (others.snapshot) {
    for (const Job& other : others.snapshot->jobs) sources.others.push_back(&other);
  }
  for (const Job& other : others.pods) sources.others.push_back(&other);
  sources.program = session.program;
  std::vector<std::string> uids{job.uid};
  std::string queue_name = job.queue;
  if (groups) {
    for (const json::Value& group : groups->items) {
      if (!has_group(job, group)) continue;
      sources.groups.push_back(&group);
      uids.emplace_back(kube::uid_of(group));
      if (queue_name.empty()) queue_name = json::string_at(group, "spec", "queue");
    }
  }
  sources.crashes = crashes_of(job, 3);
  co_await read_last_lines(session, job.ns, sources.crashes);
  if (!job.finished() && job.status != "RUNNING" && job.requested_gpus > 0) {
    if (const auto nodes = co_await session.cluster().list(client::resources::kNodes, {})) {
      std::vector<const json::Value*> all;
      for (const json::Value& node : nodes->items) all.push_back(&node);
      const auto least =
          sources.groups.empty() ? 0 : json::int_at(*sources.groups[0], "spec", "minMember");
      sources.fit = fit_on_empty_nodes(job, least, all);
    }
  }
  Result<json::Value> queue = fail(Code::kNotFound, "");
  if (!queue_name.empty())
    queue = co_await session.cluster().get(client::resources::kQueues, "", queue_name);
  if (queue) sources.queue = &*queue;
  for (const Instance& instance : job.instances) uids.emplace_back(kube::uid_of(*instance.pod));
  // Pods that are gone left events too; they are known by their names.
  const std::vector<std::string> roles = roles_of(*job.object);
  auto listed = co_await session.cluster().list(client::resources::kEvents, here);
  std::vector<json::Value> events;
  if (listed) {
    for (json::Value& event : listed->items) {
      const std::string_view kind = json::string_at(event, "involvedObject", "kind");
      const std::string_view name = json::string_at(event, "involvedObject", "name");
      const bool of_job =
          std::find(uids.begin(), uids.end(), json::text_at(event, "involvedObject", "uid")) !=
          uids.end();
      const bool of_gone_pod =
          kind == "Pod" && event_time(event) >= job.created &&
          std::any_of(roles.begin(), roles.end(), [&](const std::string& role) {
            return name.starts_with(fmt::format("{}-{}-", job.name, role));
          });
      if (of_job || of_gone_pod) events.push_back(std::move(event));
    }
  }
  std::sort(events.begin(), events.end(), [](const json::Value& a, const json::Value& b) {
    const Time left = event_time(a), right = event_time(b);
    return left != right ? left < right : kube::name_of(a) < kube::name_of(b);
  });
  for (const json::Value& event : events) sources.events.push_back(&event);
  std::string text = explain_text(sources, session.now());
  text += co_await foretold_part(session, job);
  session.console.out(session.console.paint_table(text));
  co_return 0;
}

}  // namespace muster::cli
