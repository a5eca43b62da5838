/// get, list and top: reading commands.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/view/fetch.h"
#include "cli/view/job_watch.h"
#include "cli/view/members.h"
#include "cli/view/node.h"
#include "cli/view/reads.h"
#include "cli/view/view_job.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

Result<void> check_output(const std::string& output, const std::set<std::string>& known) {
  if (output.empty() || known.contains(output)) return {};
  return fail(Code::kInvalid,
              fmt::format("unsupported output format: {}, wanted one of {}",
                          output,
                          join({known.begin(), known.end()}, ", ")));
}

/// Arena's JSON ends without a line break; on a terminal the prompt would stand behind it.
std::string json_text(const Session& session, const json::Value& value) {
  return dump_arena_json(value) + (session.console.terminal() ? "\n" : "");
}

/// The text of one job in the asked-for form.
std::string job_text(Session& session,
                     const Values& values,
                     const Job& job,
                     const std::vector<json::Value>& events) {
  const std::string output = values.text("output");
  if (output == "json") return json_text(session, job_as_json(job));
  if (output == "yaml") return dump_ordered_yaml(job_as_yaml(job));
  if (output == "name") return fmt::format("{}/{}\n", job.trainer->kind_group(), job.name);
  std::string text =
      output == "wide" ? view_job_wide(job) : view_job(job, session.console.columns());
  if (values.yes("gpus")) text += view_job_gpus(job);
  if (values.yes("events")) {
    std::vector<const json::Value*> shown;
    for (const json::Value& event : events) shown.push_back(&event);
    text += view_job_events(shown, session.now());
  }
  return session.console.paint_table(text);
}

/// The job itself and what belongs to it; a snapshot holds every pod of the namespace.
std::vector<std::string> uids_of(const Snapshot& snapshot) {
  const Job& job = snapshot.jobs[0];
  std::vector<std::string> uids{job.uid};
  for (const Instance& instance : job.instances) uids.emplace_back(kube::uid_of(*instance.pod));
  for (const json::Value& launcher : snapshot.launcher_jobs) {
    if (kube::controller_of(launcher).uid == job.uid) uids.emplace_back(kube::uid_of(launcher));
  }
  return uids;
}

/// What a watcher looks for: anything but the passing of time.
std::string shape_of(const Job& job) {
  std::string shape = job.status;
  for (const Instance& instance : job.instances)
    shape += fmt::format(" {} {} {}", instance.name, instance.status, instance.node);
  return shape;
}

Task<int> watch_job(Invocation& call, std::string name, std::string type) {
  Session& session = call.session;
  JobWatch watch(session);
  std::string last;
  bool watching = false;
  for (;;) {
    const auto fetched = co_await fetch_job(session, name, type);
    if (!fetched && watching && fetched.error().code == Code::kNotFound)
      co_return session.failed(fmt::format("the training job {} has been deleted", name));
    if (!fetched) co_return session.failed(fetched.error());
    const Job& job = (*fetched)->jobs[0];
    if (!watching) {
      watching = true;
      watch.start(name, job.trainer->resource, kube::label(*job.object, "release") == name);
    }
    if (const std::string shape = shape_of(job); shape != last) {
      if (!last.empty()) session.console.out("\n");
      session.console.out(job_text(session, call.values, job, {}));
      session.console.flush();
      last = shape;
    }
    if (job.finished()) co_return job.status == "FAILED" ? kExitJobFailed : 0;
    co_await watch.wait(std::chrono::seconds(30));
  }
}

GpuMode mode_of_word(const std::string& word, bool* known) {
  const std::string lower = to_lower(word);
  *known = true;
  if (lower == "n" || lower == "none") return GpuMode::kNone;
  if (lower == "e" || lower == "exclusive") return GpuMode::kExclusive;
  if (lower == "t" || lower == "topology") return GpuMode::kTopology;
  if (lower == "s" || lower == "share") return GpuMode::kShare;
  *known = false;
  return GpuMode::kNone;
}

Task<Result<std::vector<NodeInfo>>> fetch_nodes(Session& session) {
  client::ListOptions maps;
  maps.ns = "kube-system";
  maps.label_selector = "ack.node.gpu.schedule=topology";
  client::ListOptions pods;
  pods.field_selector = "status.phase!=Failed,status.phase!=Succeeded";
  std::vector<Read> reads;
  reads.push_back(read_list(client::resources::kNodes, client::ListOptions{}, node_members()));
  reads.push_back(read_list(client::resources::kPods, pods, node_pod_members()));
  reads.push_back(read_list(client::resources::kConfigMaps, maps, topology_members()));
  json::Block block;
  auto answers = co_await read_all(session, block, std::move(reads));
  if (!answers) co_return fail(answers.error());
  NodeSources sources;
  const auto add = [&](std::size_t which, std::vector<const json::Value*>& into) {
    if (!(*answers)[which]) return;
    for (const json::Value& item : json::array_at(*(*answers)[which], "items"))
      into.push_back(&item);
  };
  add(0, sources.nodes);
  add(1, sources.pods);
  add(2, sources.topology_maps);
  for (std::size_t i = 0; i < answers->size(); ++i) {
    const auto& answer = (*answers)[i];
    // The maps of GPU topology are shown where there are any and this user may see them; without
    // them a node is shown all the same.
    const bool map = i == 2 && !answer && answer.error().code == Code::kForbidden;
    if (!answer && !map && answer.error().code != Code::kNotFound) co_return fail(answer.error());
  }
  co_return make_nodes(sources);
}

std::string nodes_text(Session& session,
                       const Values& values,
                       std::vector<NodeInfo> nodes,
                       bool named) {
  const std::string output = values.text("output");
  if (!output.empty()) use_newer_words(nodes);
  if (output == "json") return json_text(session, nodes_as_json(nodes));
  if (output == "yaml") return dump_ordered_yaml(nodes_as_json(nodes));
  if (values.yes("details"))
    return output == "wide" ? view_nodes_wide(nodes) : view_nodes_details(nodes, !named);
  const bool all_share =
      !nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [](const NodeInfo& node) {
        return node.mode == GpuMode::kShare;
      });
  if (all_share) return session.console.paint_table(view_share_nodes(nodes));
  const int columns = session.console.columns();
  return session.console.paint_table(output == "wide"
                                         ? view_nodes_grouped(std::move(nodes), columns)
                                         : view_nodes(nodes, columns));
}

std::string rule_with_time(Session& session) {
  return fmt::format(
      "------------------------------------------- {} -------------------------------------------\n",
      local_time(session.now()));
}

}  // namespace

Task<int> run_get(Invocation& call) {
  Session& session = call.session;
  if (call.values.args.size() > 1)
    co_return session.failed(
        fmt::format("accepts 1 job name, received {}", call.values.args.size()));
  const auto type = type_flag(session, call.values);
  if (!type) co_return session.failed(type.error());
  if (const auto known = check_output(call.values.text("output"), {"wide", "json", "yaml", "name"});
      !known)
    co_return session.failed(known.error());
  const std::string name = call.values.args[0];
  if (call.values.yes("watch")) {
    const int code = co_await watch_job(call, name, *type);
    co_return code;
  }
  const auto fetched = co_await fetch_job(session, name, *type);
  if (!fetched) co_return session.failed(fetched.error());
  std::vector<json::Value> events;
  if (call.values.yes("events")) {
    auto found = co_await fetch_events(session, session.ns, uids_of(**fetched));
    if (!found) co_return session.failed(found.error());
    events = std::move(*found);
  }
  session.console.out(job_text(session, call.values, (*fetched)->jobs[0], events));
  co_return 0;
}

Task<int> run_list(Invocation& call) {
  Session& session = call.session;
  const auto type = type_flag(session, call.values);
  if (!type) co_return session.failed(type.error());
  const std::string output = call.values.text("output");
  if (const auto known = check_output(output, {"wide", "json", "yaml", "name"}); !known)
    co_return session.failed(known.error());
  JobsQuery query;
  query.ns = call.values.yes("all-namespaces") ? "" : session.ns;
  query.type = *type;
  query.detail = output == "json" || output == "yaml" ? Detail::kWhole : Detail::kRow;
  auto fetched = co_await fetch_jobs(session, query);
  if (!fetched) co_return session.failed(fetched.error());
  std::vector<Job>& jobs = (*fetched)->jobs;
  if (const std::string status = call.values.text("status"); !status.empty()) {
    std::erase_if(jobs, [&](const Job& job) { return to_lower(job.status) != to_lower(status); });
  }
  if (const std::string queue = call.values.text("queue"); !queue.empty())
    std::erase_if(jobs, [&](const Job& job) { return job.queue != queue; });
  std::string text;
  if (call.values.yes("quiet") || output == "name") {
    for (const Job& job : jobs)
      text += (output == "name" ? job.trainer->kind_group() + "/" : "") + job.name + "\n";
  } else if (output == "json" || output == "yaml") {
    json::Array array;
    for (const Job& job : jobs)
      array.push_back(output == "json" ? job_as_json(job) : job_as_yaml(job));
    text = output == "json" ? json_text(session, array) : dump_ordered_yaml(array);
  } else {
    ListView view;
    view.all_namespaces = query.ns.empty();
    view.columns = session.console.columns();
    text = session.console.paint_table(view_jobs(jobs, view));
  }
  session.console.out(text);
  session.keep(std::move(*fetched));
  co_return 0;
}

Task<int> run_top_node(Invocation& call) {
  Session& session = call.session;
  const Values& values = call.values;
  if (const auto known = check_output(values.text("output"), {"wide", "json", "yaml"}); !known)
    co_return session.failed(known.error());
  const std::string mode_flag = values.yes("share") ? "s" : values.text("gpu-mode");
  bool known_mode = true;
  const GpuMode mode = mode_of_word(mode_flag, &known_mode);
  if (!mode_flag.empty() && !known_mode) {
    co_return session.failed(fmt::format(
        "unknown gpu mode {}, wanted n(none), e(exclusive), t(topology) or s(share)", mode_flag));
  }
  const std::set<std::string> names(values.args.begin(), values.args.end());
  const bool repeat = values.yes("refresh");
  for (;;) {
    auto nodes = co_await fetch_nodes(session);
    if (!nodes) co_return session.failed(nodes.error());
    std::erase_if(*nodes, [&](const NodeInfo& node) {
      if (!names.empty() && !names.contains(node.name)) return true;
      if (!mode_flag.empty()) return node.mode != mode;
      // Details are about GPUs: nodes without any show nothing unless they are asked for.
      return values.yes("details") && names.empty() && node.mode == GpuMode::kNone &&
             values.text("output").empty();
    });
    for (const std::string& name : names) {
      if (std::none_of(nodes->begin(), nodes->end(), [&](const NodeInfo& node) {
            return node.name == name;
          })) {
        co_return session.failed(fmt::format("not found nodes: {}", name));
      }
    }
    if (nodes->empty() && !values.yes("details")) co_return session.failed("not found nodes");
    session.console.out(nodes_text(session, values, *nodes, !names.empty()));
    if (!repeat) co_return 0;
    co_await session.env.sleep(std::chrono::seconds(2));
    session.console.out(rule_with_time(session));
  }
}

Task<int> run_top_job(Invocation& call) {
  Session& session = call.session;
  const Values& values = call.values;
  const auto type = type_flag(session, values);
  if (!type) co_return session.failed(type.error());
  const std::string output = values.text("output");
  if (const auto known = check_output(output, {"wide", "json", "yaml"}); !known)
    co_return session.failed(known.error());
  const std::string name = values.args.empty() ? "" : values.args[0];
  if (name.empty() && values.yes("refresh"))
    co_return session.failed("--refresh needs the name of a job");
  for (;;) {
    JobsQuery query;
    query.ns = values.yes("all-namespaces") ? "" : session.ns;
    query.type = *type;
    query.detail = output == "json" || output == "yaml" ? Detail::kWhole : Detail::kRow;
    Result<SnapshotPtr> fetched = SnapshotPtr{};
    if (name.empty()) {
      fetched = co_await fetch_jobs(session, query);
    } else {
      fetched = co_await fetch_job(session, name, *type);
    }
    if (!fetched) co_return session.failed(fetched.error());
    const std::vector<Job>& jobs = (*fetched)->jobs;
    std::string text;
    if (output == "json" || output == "yaml") {
      json::Array array;
      for (const Job& job : jobs)
        array.push_back(output == "json" ? job_as_json(job) : job_as_yaml(job));
      json::Value whole = name.empty() ? json::Value(std::move(array)) : array[0];
      text = output == "json" ? json_text(session, whole) : dump_ordered_yaml(whole);
    } else if (name.empty()) {
      ListView view;
      view.all_namespaces = query.ns.empty();
      view.columns = session.console.columns();
      text = session.console.paint_table(view_top_jobs(jobs, view));
    } else {
      text = session.console.paint_table(view_top_job(jobs[0], values.text("instance")));
    }
    session.console.out(text);
    if (!values.yes("refresh")) {
      session.keep(std::move(*fetched));
      co_return 0;
    }
    co_await session.env.sleep(std::chrono::seconds(2));
    session.console.out(rule_with_time(session));
  }
}

}  // namespace muster::cli
