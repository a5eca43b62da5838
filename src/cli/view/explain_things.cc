#include "cli/view/explain_things.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/strings.h"
#include "cli/view/job.h"
#include "cli/view/node.h"
#include "cli/view/queue_view.h"
#include "cli/view/tabwriter.h"
#include "kube/kinds/pod.h"
#include "kube/meta.h"

namespace muster::cli {
namespace {

constexpr std::size_t kShown = 10;

/// What the scheduler wrote on a group that waits.
std::string reason_of(const json::Value& group) {
  for (const json::Value& condition : json::array_at(group, "status", "conditions")) {
    if (json::string_at(condition, "status") == "True" &&
        json::string_at(condition, "type") != "Scheduled")
      return replace_all(json::string_at(condition, "message"), "\n", " ");
  }
  return "";
}

bool runs(const json::Value& group) {
  return json::string_at(group, "status", "phase") == "Running" ||
         json::int_at(group, "status", "running") > 0;
}

std::string more(std::size_t all) {
  return all > kShown ? fmt::format("  and {} more\n", all - kShown) : "";
}

std::string groups_part(std::string_view title,
                        const std::vector<const json::Value*>& groups,
                        bool with_reason,
                        Time now) {
  if (groups.empty()) return "";
  std::string table;
  for (std::size_t i = 0; i < std::min(groups.size(), kShown); ++i) {
    const json::Value& group = *groups[i];
    table += fmt::format("  {}/{}\t{}\t{}\t{}\n",
                         kube::namespace_of(group),
                         kube::name_of(group),
                         json::as_string(json::at(group, "status", "phase"), "Pending"),
                         short_human_duration(now - kube::creation_time(group)),
                         with_reason ? reason_of(group) : "");
  }
  return fmt::format("\n{}:\n{}{}", title, tabulate(table), more(groups.size()));
}

}  // namespace

std::string explain_queue(const json::Value& queue,
                          const std::vector<const json::Value*>& groups,
                          Time now) {
  const std::string_view name = kube::name_of(queue);
  std::vector<const json::Value*> waiting, running;
  for (const json::Value* group : groups) {
    const std::string_view phase = json::string_at(*group, "status", "phase");
    if (json::as_string(json::at(*group, "spec", "queue"), "default") != name ||
        phase == "Completed" || phase == "Succeeded" || phase == "Failed")
      continue;
    (runs(*group) ? running : waiting).push_back(group);
  }
  const auto older = [](const json::Value* a, const json::Value* b) {
    return kube::creation_time(*a) < kube::creation_time(*b);
  };
  std::sort(waiting.begin(), waiting.end(), older);
  std::sort(running.begin(), running.end(), older);
  const std::string state(json::as_string(json::at(queue, "status", "state"), "Open"));
  std::string out = fmt::format("Queue {} is {}: {} of its gangs run, {} wait.\n",
                                name,
                                to_lower(state),
                                running.size(),
                                waiting.size());
  if (state != "Open")
    out += fmt::format("  It takes no new work until it is opened (`queue open {}`).\n", name);
  const auto rows = make_queues({&queue}, groups);
  if (!rows.empty()) out += "\n" + view_queue(rows.front(), queue);
  return out + groups_part("Waiting, oldest first", waiting, true, now) +
         groups_part("Running, oldest first", running, false, now);
}

std::string explain_node(const json::Value& node,
                         const std::vector<const json::Value*>& pods,
                         Time now) {
  const std::string name(kube::name_of(node));
  const json::Value& ready = kube::condition(node, "Ready");
  const bool is_ready = json::string_at(ready, "status") == "True";
  const bool cordoned = json::bool_at(node, "spec", "unschedulable");
  std::string out = fmt::format("Node {} is {}.\n",
                                name,
                                !is_ready  ? "not ready: nothing starts there"
                                : cordoned ? "cordoned: nothing new starts there"
                                           : "ready");
  if (!is_ready && !json::string_at(ready, "message").empty())
    out += fmt::format("  {}\n", json::string_at(ready, "message"));
  if (cordoned) out += fmt::format("  `kubectl uncordon {}` opens it.\n", name);
  for (const json::Value& taint : json::array_at(node, "spec", "taints"))
    out += fmt::format("  Pods that do not tolerate {}{}{} are kept away ({}).\n",
                       json::string_at(taint, "key"),
                       json::string_at(taint, "value").empty() ? "" : "=",
                       json::string_at(taint, "value"),
                       json::string_at(taint, "effect"));
  NodeSources sources;
  sources.nodes = {&node};
  sources.pods = pods;
  for (const NodeInfo& info : make_nodes(sources)) {
    if (info.total > 0)
      out += fmt::format("\nGPUs: {} of {} given away, {} free{}.\n",
                         info.allocated,
                         info.total,
                         info.total - info.allocated,
                         info.unhealthy > 0 ? fmt::format(", {} unhealthy", info.unhealthy) : "");
  }
  std::vector<const json::Value*> here;
  for (const json::Value* pod : pods) {
    if (json::string_at(*pod, "spec", "nodeName") == name && !kube::pod_finished(*pod))
      here.push_back(pod);
  }
  std::stable_sort(here.begin(), here.end(), [](const json::Value* a, const json::Value* b) {
    return pod_gpus(*a) > pod_gpus(*b);
  });
  std::string table;
  for (std::size_t i = 0; i < std::min(here.size(), kShown); ++i) {
    const std::int64_t gpus = pod_gpus(*here[i]);
    table += fmt::format("  {}/{}\t{} GPU{}\t{}\tfor {}\n",
                         kube::namespace_of(*here[i]),
                         kube::name_of(*here[i]),
                         gpus,
                         gpus == 1 ? "" : "s",
                         pod_status_text(*here[i]),
                         short_human_duration(now - kube::creation_time(*here[i])));
  }
  if (!table.empty()) out += "\nPods:\n" + tabulate(table) + more(here.size());
  return out;
}

}  // namespace muster::cli
