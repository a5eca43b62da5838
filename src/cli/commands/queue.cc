/// queue: the tenants' queues (scheduling.volcano.sh/v1beta1), seen and changed.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/quantity.h"
#include "base/strings.h"
#include "cli/shell/commands.h"
#include "cli/shell/session.h"
#include "cli/submit/submit_values.h"
#include "cli/view/queue_view.h"
#include "cli/view/tabwriter.h"
#include "cli/view/view_job.h"
#include "kube/meta.h"
#include "kube/resources.h"

namespace muster::cli {
namespace {

using json::at;

/// "nvidia.com/gpu=4,cpu=16" to a resource map.
Result<json::Object> resources_of(const std::string& flag, const std::string& text) {
  json::Object out;
  for (const std::string& entry : split_nonempty(text, ',')) {
    const std::size_t equals = entry.find('=');
    const std::string amount = equals == std::string::npos ? "" : entry.substr(equals + 1);
    if (equals == 0 || amount.empty() || !parse_quantity(amount)) {
      return fail(
          Code::kInvalid,
          fmt::format("--{} \"{}\": wanted resource=quantity, such as nvidia.com/gpu=4,cpu=16",
                      flag,
                      entry));
    }
    const std::string name = entry.substr(0, equals);
    out[name == "gpu" || name == "gpus" ? std::string("nvidia.com/gpu") : name] = amount;
  }
  return out;
}

/// The spec that the flags ask for; only what was given.
Result<json::Object> spec_of(const Values& values) {
  json::Object spec;
  if (values.given("weight")) spec["weight"] = values.number("weight");
  if (values.given("priority")) spec["priority"] = values.number("priority");
  if (values.given("parent")) spec["parent"] = values.text("parent");
  if (values.given("reclaimable")) spec["reclaimable"] = values.yes("reclaimable");
  for (const char* flag : {"capability", "deserved", "guarantee"}) {
    if (!values.given(flag)) continue;
    const auto amounts = resources_of(flag, values.text(flag));
    if (!amounts) return fail(amounts.error());
    if (std::string_view(flag) == "guarantee") {
      spec["guarantee"] = json::Object{{"resource", *amounts}};
    } else {
      spec[flag] = *amounts;
    }
  }
  return spec;
}

/// How many gangs a queue still has.
Task<std::size_t> gangs_of(Session& session, std::string queue) {
  const auto groups =
      co_await session.cluster().list(client::resources::kPodGroups, client::ListOptions{});
  if (!groups) co_return 0;
  co_return static_cast<std::size_t>(
      std::count_if(groups->items.begin(), groups->items.end(), [&](const json::Value& group) {
        return json::as_string(json::at(group, "spec", "queue"), "default") == queue;
      }));
}

/// A queue that still has gangs is closing; the queue controller closes it with the last of them.
Task<int> set_state(Invocation& call, bool open) {
  Session& session = call.session;
  int code = 0;
  for (const std::string& name : call.values.args) {
    const std::size_t gangs = open ? 0 : co_await gangs_of(session, name);
    const std::string state = open ? "Open" : gangs > 0 ? "Closing" : "Closed";
    json::Value patch = json::Object{{"status", json::Object{{"state", state}}}};
    const auto patched = co_await session.cluster().patch(client::resources::kQueues,
                                                          "",
                                                          name,
                                                          "status",
                                                          client::PatchType::kMerge,
                                                          std::move(patch));
    if (!patched) {
      code = session.failed(patched.error());
      continue;
    }
    if (open || gangs == 0)
      session.console.info(
          fmt::format("The queue {} is {}", name, open ? "open" : "closed: nothing new starts"));
    else
      session.console.info(fmt::format(
          "The queue {} is closing: running gangs continue, nothing new starts, and it is closed when its {} gang{} gone",
          name,
          gangs,
          gangs == 1 ? " is" : "s are"));
  }
  co_return code;
}

Task<Result<std::vector<QueueRow>>> fetch_queues(Session& session) {
  auto queues = co_await session.cluster().list(client::resources::kQueues, client::ListOptions{});
  if (!queues) co_return fail(queues.error());
  auto groups =
      co_await session.cluster().list(client::resources::kPodGroups, client::ListOptions{});
  std::vector<const json::Value*> queue_objects, group_objects;
  for (const json::Value& queue : queues->items) queue_objects.push_back(&queue);
  if (groups) {
    for (const json::Value& group : groups->items) group_objects.push_back(&group);
  }
  co_return make_queues(queue_objects, group_objects);
}

}  // namespace

Task<int> run_queue_list(Invocation& call) {
  Session& session = call.session;
  const auto rows = co_await fetch_queues(session);
  if (!rows) co_return session.failed(rows.error());
  const std::string output = call.values.text("output");
  if (output == "json" || output == "yaml") {
    auto queues =
        co_await session.cluster().list(client::resources::kQueues, client::ListOptions{});
    if (!queues) co_return session.failed(queues.error());
    json::Array array;
    for (json::Value& queue : queues->items) array.push_back(std::move(queue));
    session.console.out(output == "json" ? dump_arena_json(array) + "\n"
                                         : dump_ordered_yaml(array));
    co_return 0;
  }
  session.console.out(session.console.paint_table(view_queues(*rows)));
  co_return 0;
}

Task<int> run_queue_get(Invocation& call) {
  Session& session = call.session;
  const std::string name = call.values.args[0];
  const auto queue = co_await session.cluster().get(client::resources::kQueues, "", name);
  if (!queue) co_return session.failed(queue.error());
  if (const std::string output = call.values.text("output"); output == "json" || output == "yaml") {
    session.console.out(output == "json" ? dump_arena_json(*queue) + "\n"
                                         : dump_ordered_yaml(*queue));
    co_return 0;
  }
  const auto rows = co_await fetch_queues(session);
  if (!rows) co_return session.failed(rows.error());
  for (const QueueRow& row : *rows) {
    if (row.name == name) session.console.out(view_queue(row, *queue));
  }
  co_return 0;
}

Task<int> run_queue_create(Invocation& call) {
  Session& session = call.session;
  const auto spec = spec_of(call.values);
  if (!spec) co_return session.failed(spec.error());
  const std::string name = call.values.args[0];
  json::Value queue = json::Object{{"apiVersion", kube::resources::kQueues.api_version()},
                                   {"kind", "Queue"},
                                   {"metadata", json::Object{{"name", name}}},
                                   {"spec", *spec}};
  if (call.values.yes("dry-run")) {
    session.console.out(dump_ordered_yaml(queue));
    co_return 0;
  }
  const auto made =
      co_await session.cluster().create(client::resources::kQueues, "", std::move(queue));
  if (!made) co_return session.failed(made.error());
  session.console.out(fmt::format("queue.scheduling.volcano.sh/{} created\n", name));
  co_return 0;
}

Task<int> run_queue_set(Invocation& call) {
  Session& session = call.session;
  const auto spec = spec_of(call.values);
  if (!spec) co_return session.failed(spec.error());
  if (spec->empty())
    co_return session.failed(
        "nothing to change: give --weight, --capability, --deserved, --guarantee, --priority or --parent");
  const std::string name = call.values.args[0];
  json::Value patch = json::Object{{"spec", *spec}};
  const auto patched = co_await session.cluster().patch(
      client::resources::kQueues, "", name, "", client::PatchType::kMerge, std::move(patch));
  if (!patched) co_return session.failed(patched.error());
  session.console.out(fmt::format("queue.scheduling.volcano.sh/{} patched\n", name));
  co_return 0;
}

Task<int> run_queue_open(Invocation& call) {
  const int code = co_await set_state(call, true);
  co_return code;
}

Task<int> run_queue_close(Invocation& call) {
  const int code = co_await set_state(call, false);
  co_return code;
}

Task<int> run_queue_delete(Invocation& call) {
  Session& session = call.session;
  int code = 0;
  for (const std::string& name : call.values.args) {
    client::DeleteOptions options;
    const auto removed =
        co_await session.cluster().remove(client::resources::kQueues, "", name, options);
    if (removed) {
      session.console.out(fmt::format("queue.scheduling.volcano.sh \"{}\" deleted\n", name));
    } else {
      code = session.failed(removed.error());
    }
  }
  co_return code;
}

}  // namespace muster::cli
